"""The stand-ins for names of typing behave as classes need."""

from __future__ import annotations

import copy
import inspect
import pickle
import typing
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from rdc.lean import typed
from rdc.lean.typed import Generic, NamedTuple, TypeVar

NamedTupleBase = vars(typed)["NamedTuple"]

T = TypeVar("T")


class Spot(NamedTuple):
    """A docstring."""

    row: int
    name: str

    def shown(self) -> str:
        return f"{self.name}:{self.row}"


class Plain(typing.NamedTuple):
    row: int
    name: str


class Box(Generic[T]):
    __slots__ = ("content",)

    def __init__(self, content: T) -> None:
        self.content = content


def test_a_named_tuple_is_one() -> None:
    spot = Spot(3, name="a")
    assert spot == (3, "a") == Plain(*spot)
    assert (spot.row, spot.name, spot.shown()) == (3, "a", "a:3")
    assert repr(spot) == "Spot(row=3, name='a')"
    assert spot._replace(row=4) == (4, "a")
    assert (Spot.__doc__, Spot.__module__, Spot.__qualname__) == ("A docstring.", __name__, "Spot")
    assert not hasattr(spot, "__dict__")


def test_a_named_tuple_does_what_those_of_typing_do() -> None:
    spot, plain = Spot(3, "a"), Plain(3, "a")
    assert spot._fields == plain._fields == Spot.__match_args__
    assert spot._asdict() == plain._asdict() == {"row": 3, "name": "a"}
    assert tuple(Spot._make([4, "b"])) == tuple(Plain._make([4, "b"]))
    assert [*inspect.signature(Spot).parameters] == [*inspect.signature(Plain).parameters]
    assert type(pickle.loads(pickle.dumps(spot))) is Spot  # noqa: S301 - of this line
    assert pickle.loads(pickle.dumps(spot)) == spot == copy.deepcopy(spot)  # noqa: S301 - of this line
    match spot:
        case Spot(row, name=name):
            assert (row, name) == (3, "a")
    kinds: tuple[Any, Any] = (Spot, Plain)
    for kind in kinds:
        made = kind(3, "a")
        cases: list[tuple[type[Exception], Callable[[], object]]] = [
            (TypeError, partial(kind, 3)),
            (TypeError, partial(kind, 3, "a", 5)),
            (TypeError, partial(kind, 3, "a", row=4)),
            (TypeError, partial(kind, 3, other="a")),
            (TypeError, partial(kind._make, [3])),
            (ValueError, partial(made._replace, other=4)),
            (AttributeError, partial(setattr, made, "row", 4)),
        ]
        for error, case in cases:
            with pytest.raises(error):
                case()


def test_a_named_tuple_may_have_many_fields() -> None:
    made: list[type[tuple[int, ...]]] = []
    for count in range(1, 14):
        names = [f"field{number}" for number in range(count)]
        body = {
            "__annotations__": dict.fromkeys(names, "int"),
            "__module__": __name__,
            "__qualname__": "Made",
        }
        made.append(type(NamedTupleBase)("Made", (NamedTupleBase,), body))
        one = made[-1](*range(count))
        assert [getattr(one, name) for name in names] == [*one] == [*range(count)]
        assert made[-1](**dict(zip(names, one, strict=True))) == one


def test_bases_say_nothing() -> None:
    box: Box[int] = Box(3)
    assert box.content == 3
    assert not hasattr(box, "__dict__")


def test_what_is_annotated_is_its_codec() -> None:
    assert vars(typed)["Annotated"][tuple[int, ...], "codec"] == "codec"


def test_all_names_are_typings() -> None:
    assert all(hasattr(typing, name) for name in typed.__all__)
