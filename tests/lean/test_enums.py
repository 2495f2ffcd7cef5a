"""The stand-ins for enumerations do what those of `enum` do, and step aside where `enum` is loaded."""

from __future__ import annotations

import copy
import enum
import importlib.util
import json
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rdc.errors
import rdc.lean.enums


def stand_ins() -> Any:
    """Load rdc.lean.enums as a command does, which has no `enum` loaded."""
    source = rdc.lean.enums.__file__
    spec = importlib.util.spec_from_file_location("stand_ins", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    loaded = sys.modules.pop("enum")
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules["enum"] = loaded
    return module


def classes(of: ModuleType | Any) -> Any:
    """Make one enumeration of each sort from the bases in `of`."""

    class Colour(of.Enum):  # type: ignore[name-defined,misc]  # the bases are what is compared
        """Has a docstring, a method, a property and two names for one member."""

        RED = "red"
        GREEN = ("green", 2)
        CRIMSON = "red"

        def loud(self) -> str:
            return str(self.name).upper()

        @property
        def short(self) -> str:
            return str(self.name)[0]

    class Number(of.IntEnum):  # type: ignore[name-defined,misc]  # the bases are what is compared
        ZERO = 0
        TWO = 2
        PAIR = 2
        MINUS = -1

    class Bits(of.IntFlag):  # type: ignore[name-defined,misc]  # the bases are what is compared
        NONE = 0
        ONE = 1
        FOUR = 4
        EIGHT = 8

    class Masks(of.IntFlag):  # type: ignore[name-defined,misc]  # the bases are what is compared
        TWO = 2
        ALL = 6
        FOUR = 4

    return Colour, Number, Bits, Masks


OURS = classes(stand_ins())
THEIRS = classes(enum)

ROOT = Path(rdc.lean.enums.__file__).parents[2]
PAIRS = [pytest.param(ours, theirs, id=theirs.__name__) for ours, theirs in zip(OURS, THEIRS, strict=True)]


def told(value: object) -> object:
    """Return what is seen of a member: its class by name, so that both sorts compare."""
    if isinstance(value, (*OURS, *THEIRS)):
        seen: Any = value
        return type(value).__name__, seen.name, seen.value, repr(value), str(value), f"{value}", hash(value)
    return value


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_members_are_the_same(ours: Any, theirs: Any) -> None:
    assert [told(each) for each in ours] == [told(each) for each in theirs]
    assert [told(each) for each in reversed(ours)] == [told(each) for each in reversed(theirs)]
    assert len(ours) == len(theirs) and bool(ours)
    assert {name: told(each) for name, each in ours.__members__.items()} == {
        name: told(each) for name, each in theirs.__members__.items()
    }
    assert (repr(ours), ours.__doc__, ours.__name__) == (repr(theirs), theirs.__doc__, theirs.__name__)
    for name in theirs.__members__:
        member = ours[name]
        assert getattr(ours, name) is member and ours(member.value) is member and ours(member) is member
        assert told(member) == told(theirs[name])
        assert member in ours and isinstance(member, ours)
        assert bool(member) == bool(theirs[name])
        assert copy.copy(member) is member and copy.deepcopy([member])[0] is member
        assert member.__reduce_ex__(4) == (ours, (member.value,))
    assert dict.fromkeys(ours, 1) == {ours[each.name]: 1 for each in theirs}


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("value", ["no", None, [], 1.5, 77])
def test_what_is_no_value_is_refused_with_the_same_words(ours: Any, theirs: Any, value: object) -> None:
    def outcome(kind: Any) -> object:
        try:
            return told(kind(value))
        except (ValueError, TypeError) as error:
            return type(error), str(error)

    assert outcome(ours) == outcome(theirs)


def test_methods_and_properties_are_no_members() -> None:
    (ours, *_), (theirs, *_) = OURS, THEIRS
    assert [each.loud() + each.short for each in ours] == [each.loud() + each.short for each in theirs]


def test_numbers_are_numbers() -> None:
    for _, number, bits, _ in (OURS, THEIRS):
        assert number.TWO == 2 and number.TWO + 1 == 3 and number.MINUS < number.ZERO
        assert json.dumps([number.TWO, bits(5)]) == "[2, 5]"
        assert f"{number.TWO:03d} {bits.FOUR:x}" == "002 4"
        assert {2: "two"}[number.TWO] == "two"


@given(st.integers(0, 40), st.integers(0, 40), st.integers(-40, 40))
@example(15, 0, 0)  # all bits of the members
def test_flags_compute_as_those_of_enum(left: int, right: int, plain: int) -> None:
    found = []
    for _, _, bits, _ in (OURS, THEIRS):
        one, other = bits(left), bits(right)
        found.append(
            [
                told(each)
                for each in (
                    one | other,
                    one & other,
                    one ^ other,
                    ~one,
                    one | right,
                    right & one,
                    bits(plain),
                )
            ]
            + [other in one, len(one), [told(each) for each in one], one == left, bool(one)]
        )
        assert bits(left) is one
    assert found[0] == found[1]


def test_a_program_gets_those_of_enum_and_the_command_loads_none() -> None:
    """A user's program may load `enum` after rdc and compare: its members are of that module all the same."""
    script = """
import sys
{first}
assert {loaded} == ("enum" in sys.modules)
import enum, pickle
from rdc.errors import ExitCode
assert isinstance(ExitCode.USAGE, enum.IntEnum) is {loaded}
assert pickle.loads(pickle.dumps(ExitCode.USAGE)) is ExitCode.USAGE
"""
    for first, loaded in (("import rdc; rdc.ExitCode", True), ("import rdc.errors", False)):
        text = script.format(first=first, loaded=loaded)
        done = subprocess.run(
            [sys.executable, "-S", "-c", text], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_members_of_this_process_are_pickled() -> None:
    for member in rdc.errors.ExitCode:
        assert pickle.loads(pickle.dumps(member)) is member  # noqa: S301 - written here


def test_signal_is_itself_where_it_is_loaded() -> None:
    assert rdc.lean.enums.signal is signal


def test_signal_alone_loads_no_enumerations_and_has_the_same_functions_and_numbers() -> None:
    script = """
import sys
from rdc.lean.enums import signal
assert not {"enum", "signal"} & set(sys.modules)
caught = []
before = signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(number))
assert before == signal.SIG_DFL
signal.raise_signal(signal.SIGUSR1)
assert caught == [signal.SIGUSR1]
signal.signal(signal.SIGUSR1, before)
assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
import signal as whole
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE", "SIGWINCH", "SIGURG", "SIG_IGN", "SIG_DFL"):
    assert getattr(whole, name) == getattr(signal, name), name
for name in ("siginterrupt", "default_int_handler"):
    assert getattr(whole, name) == getattr(signal, name), name
"""
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
