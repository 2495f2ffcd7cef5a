"""Compares the classes of rdc.lean.records with those of dataclasses, field by field."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import types
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rdc.lean.records
from rdc.lean.records import Record, asdict, field, field_names, replace

KINDS = ("plain", "default", "factory", "hidden", "late")


def standard(name: str, body: dict[str, Any], options: dict[str, bool]) -> type:
    """Makes a class by dataclasses, with the defaults of records."""
    return dataclasses.dataclass(slots=True, **{"frozen": True, **options})(type(name, (), body))


def record(name: str, body: dict[str, Any], options: dict[str, bool]) -> type:
    return types.new_class(name, (Record,), options, lambda namespace: namespace.update(body))


Makers = tuple[Callable[[str, dict[str, Any], dict[str, bool]], type], Any]
OURS: Makers = (record, rdc.lean.records)
THEIRS: Makers = (standard, dataclasses)


def made(by: Makers, kinds: list[str], options: dict[str, bool], check: bool) -> type:
    """Makes a class with the fields f0, f1, ... by dataclasses or rdc.lean.records."""
    make, module = by
    body: dict[str, Any] = {"__annotations__": {}, "__module__": __name__, "__doc__": "Made."}
    for number, kind in enumerate(kinds):
        name = f"f{number}"
        body["__annotations__"][name] = "object"
        if kind == "default":
            body[name] = number
        elif kind == "factory":
            body[name] = module.field(default_factory=list)
        elif kind == "hidden":
            body[name] = module.field(default=b"x", repr=False)
        elif kind == "late":
            body[name] = module.field(init=False)
    if check or "late" in kinds:

        def __post_init__(self: Any) -> None:  # noqa: N807 - put into a class below
            for number, kind in enumerate(kinds):
                if kind == "late":
                    object.__setattr__(self, f"f{number}", 7)
            if check and [getattr(self, f"f{n}") for n in range(len(kinds))].count("bad"):
                raise ValueError("bad")

        body["__post_init__"] = __post_init__
    return make("Made", body, options)


def outcome(work: Callable[[], object]) -> object:
    """Returns the result, or the type of the error. Error texts differ between Python versions."""
    try:
        return work()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


@given(
    st.lists(st.sampled_from(KINDS), max_size=12).map(
        lambda kinds: sorted(kinds, key=lambda k: k != "plain")
    ),
    st.fixed_dictionaries({name: st.booleans() for name in ("frozen", "eq", "repr")}),
    st.booleans(),
    st.lists(st.sampled_from([1, "a", "bad", None]), max_size=13),
    st.dictionaries(st.sampled_from(["f0", "f1", "f3", "f8", "g"]), st.integers(0, 3), max_size=3),
)
def test_they_do_what_dataclasses_do(
    kinds: list[str],
    options: dict[str, bool],
    check: bool,
    values: list[object],
    named: dict[str, object],
) -> None:
    assume(
        set(kinds) - {"late"} or not (kinds or check)
    )  # rdc.lean.records needs an argument for __post_init__
    ours, theirs = (made(m, kinds, options, check) for m in (OURS, THEIRS))
    one, other = (outcome(partial(made_, *values, **named)) for made_ in (ours, theirs))
    if isinstance(other, type):
        assert one is other
        return
    names = field_names(ours)
    assert (
        names
        == tuple(f.name for f in dataclasses.fields(theirs))
        == tuple(f.name for f in dataclasses.fields(ours))
    )
    state = [getattr(other, name) for name in names]
    assert [getattr(one, name) for name in names] == state
    assert ours.__match_args__ == theirs.__match_args__  # type: ignore[attr-defined] # no stub declares it
    assert [*inspect.signature(ours).parameters] == [*inspect.signature(theirs).parameters]
    assert hasattr(one, "__dict__") == hasattr(other, "__dict__")
    if options["repr"]:
        assert repr(one) == repr(other)
    for made_, record in ((ours, one), (theirs, other)):
        same = copy.copy(record)
        assert type(same) is made_
        assert (same == record) == options["eq"]
        assert same != state
    assert isinstance(outcome(lambda: hash(one)), int) == isinstance(outcome(lambda: hash(other)), int)
    for change in ("f0", "other"):
        results = [outcome(partial(setattr, record, change, 1)) for record in (one, other)]
        # A frozen dataclass with slots may raise TypeError for an unknown name, because super() fails.
        assert results[0] == results[1] or change not in names


@pytest.mark.parametrize("count", range(26))
def test_each_number_of_fields_is_stored_in_order(count: int) -> None:
    cls = made(OURS, ["plain"] * count, {}, False)
    record = cls(*range(count))
    assert [getattr(record, f"f{number}") for number in range(count)] == [*range(count)]
    assert list(inspect.signature(cls).parameters) == [f"f{number}" for number in range(count)]


class Point(Record):
    kind: ClassVar[str] = "point"
    x: int
    y: int = 0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("left of all")

    @property
    def sum(self) -> int:
        return self.x + self.y


class Named(Point, Record):
    name: str = "n"
    tags: list[str] = field(default_factory=list)


class Loose(Record, frozen=False):
    count: int = 0


def removed(record: object, name: str) -> None:
    delattr(record, name)


def test_a_record_is_checked_frozen_and_replaced() -> None:
    point = Point(1, y=2)
    assert (point.sum, Point.kind, repr(point)) == (3, "point", "Point(x=1, y=2)")
    assert replace(point, y=5) == Point(1, 5) == dataclasses.replace(point, y=5)
    assert asdict(point) == {"x": 1, "y": 2} == dataclasses.asdict(point)
    with pytest.raises(ValueError, match="left of all"):
        replace(point, x=-1)
    with pytest.raises(ValueError, match="left of all"):
        dataclasses.replace(point, x=-1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="x"):
        point.x = 4  # type: ignore[misc] # this is the question
    with pytest.raises(dataclasses.FrozenInstanceError, match="x"):
        removed(point, "x")
    assert len({point, Point(1, 2), Point(2, 1)}) == 2
    assert point.__eq__((1, 2)) is NotImplemented
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_what_is_inherited_comes_first() -> None:
    assert field_names(Named) == ("x", "y", "name", "tags")
    one, other = Named(1), Named(1, 0, "n", [])
    assert one == other
    assert one != Point(1)
    assert one.tags is not other.tags
    with pytest.raises(ValueError, match="left of all"):
        Named(-1)


class Shared:
    """A base that is no record."""

    __slots__ = ()

    def shown(self) -> str:
        return "a shared method"


class Kept(Shared, Record, eq=False):
    value: int

    def shown(self) -> str:
        return f"{super().shown()} of {self.value}"


def test_the_class_is_the_one_that_its_methods_know() -> None:
    """super() without arguments needs it; a second class in place of the first one would break it."""
    kept = Kept(3)
    assert kept.shown() == "a shared method of 3"
    assert type(Kept) is type
    assert Kept.__bases__ == (Shared,)
    assert (Kept.__qualname__, Kept.__module__) == ("Kept", __name__)
    assert kept != Kept(3)


def test_records_travel() -> None:
    assert pickle.loads(pickle.dumps(Named(1, 2, "z", ["t"]))) == Named(1, 2, "z", ["t"])  # noqa: S301 - of this line
    assert copy.deepcopy(Named(3)) == Named(3)


def test_what_may_change_has_no_hash() -> None:
    loose = Loose()
    loose.count = 3
    assert loose == Loose(3)
    with pytest.raises(TypeError):
        hash(loose)


def test_mistakes_in_a_class_are_named() -> None:
    with pytest.raises(TypeError, match=r"Made\.b has no default"):
        record("Made", {"__annotations__": {"a": "int", "b": "int"}, "a": 1}, {})
    with pytest.raises(TypeError, match=r"Made\.a: all would share"):
        record("Made", {"__annotations__": {"a": "list[int]"}, "a": []}, {})
    with pytest.raises(TypeError, match=r"Made\.a: its module lacks"):
        record("Made", {"__annotations__": {"a": int}}, {})
    with pytest.raises(TypeError, match=r"Made: nothing is given"):
        made(OURS, ["late"], {}, False)()
