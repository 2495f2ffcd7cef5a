"""rdc.typing stands in for typing where code runs: what rdc uses of both behaves alike."""

from __future__ import annotations

import copy
import pickle
import typing
from collections.abc import Callable
from typing import Any

import pytest

import rdc.typing


class Theirs(typing.NamedTuple):
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


class Ours(rdc.typing.NamedTuple):
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def outcome(work: Callable[[], object]) -> object:
    """What came of it; the two refuse with errors of different types."""
    try:
        return work()
    except (TypeError, ValueError, AttributeError):
        return "refused"


@pytest.mark.parametrize(
    "work",
    [
        lambda made: made(1, 2) == (1, 2),
        lambda made: made(1, end=2).length,
        lambda made: made(end=2, start=1).start,
        lambda made: tuple(made._make([1, 2])),
        lambda made: tuple(made(1, 2)._replace(end=5)),
        lambda made: made(1, 2)._replace(other=5),
        lambda made: made(1),
        lambda made: made(1, 2, 3),
        lambda made: made(1, 2, start=1),
        lambda made: made(1, other=2),
        lambda made: made._make([1]),
        lambda made: setattr(made(1, 2), "start", 3),
        lambda made: setattr(made(1, 2), "other", 3),
        lambda made: repr(made(1, 2)).replace("Ours", "Theirs"),
        lambda made: hash(made(1, 2)),
        lambda made: tuple(copy.copy(made(1, 2))),
        lambda made: pickle.loads(pickle.dumps(made(1, 2))) == made(1, 2),  # noqa: S301
        lambda made: type(pickle.loads(pickle.dumps(made(1, 2)))) is made,  # noqa: S301
        lambda made: (made._fields, made.__match_args__, made.__slots__),
        lambda made: made.start.__get__(made(1, 2)),
    ],
)
def test_a_named_tuple(work: Callable[[Any], object]) -> None:
    assert outcome(lambda: work(Ours)) == outcome(lambda: work(Theirs))


def test_a_default_of_a_named_tuple_is_refused() -> None:
    with pytest.raises(TypeError, match="no defaults"):

        class Wrong(rdc.typing.NamedTuple):
            start: int = 0


def test_what_was_annotated_is_found() -> None:
    assert rdc.typing.Annotated[int, "one", 2].__metadata__ == ("one", 2)  # type: ignore[attr-defined]
    assert rdc.typing.Annotated[int, "one"].__origin__ is int  # type: ignore[attr-defined]


def test_parameters_of_a_class_change_nothing() -> None:
    item = rdc.typing.TypeVar("item")

    class Box(rdc.typing.Generic[item]):
        __slots__ = ("content",)

    assert Box[int] is Box
    assert vars(rdc.typing.Protocol)["__slots__"] == ()
    assert not hasattr(Box(), "__dict__")
