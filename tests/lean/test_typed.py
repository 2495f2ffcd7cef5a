"""The stand-ins for names of typing behave as classes need."""

from __future__ import annotations

import typing

from rdc.lean import typed
from rdc.lean.typed import Generic, NamedTuple, TypeVar

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


def test_bases_say_nothing() -> None:
    box: Box[int] = Box(3)
    assert box.content == 3
    assert not hasattr(box, "__dict__")


def test_what_is_annotated_is_its_codec() -> None:
    assert vars(typed)["Annotated"][tuple[int, ...], "codec"] == "codec"


def test_all_names_are_typings() -> None:
    assert all(hasattr(typing, name) for name in typed.__all__)
