"""rdc.enums makes the classes that enum makes: the two are compared, in what rdc uses of them."""

from __future__ import annotations

import copy
import enum
import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import rdc.enums


def classes(module: Any) -> tuple[Any, Any, Any, Any]:
    class Way(module.Enum):  # type: ignore[misc]
        THERE = "there"
        """How."""
        BACK = "back"

        @property
        def other(self) -> Any:
            return Way.BACK if self is Way.THERE else Way.THERE

    class Kind(module.IntEnum):  # type: ignore[misc]
        FILE = 0
        LINK = 5
        SAME = 5

    class Part(module.IntFlag):  # type: ignore[misc]
        NONE = 0
        HEAD = 1
        BODY = 2
        TAIL = 8
        ENDS = 9

        @property
        def width(self) -> int:
            return 10 * self

    class Side(module.IntFlag):  # type: ignore[misc]
        LEFT = 1
        RIGHT = 2

    return Way, Kind, Part, Side


OURS, THEIRS = classes(rdc.enums), classes(enum)


def outcome(work: Callable[[], object]) -> object:
    try:
        return work()
    except (ValueError, KeyError, AttributeError) as error:
        return type(error)


@pytest.mark.parametrize(
    "work",
    [
        lambda way, kind, part, side: [repr(member) for cls in (way, kind, part, side) for member in cls],
        lambda way, kind, part, side: [str(member) for cls in (way, kind, part, side) for member in cls],
        lambda way, kind, part, side: [f"{member:>12}" for cls in (way, kind, part, side) for member in cls],
        lambda way, kind, part, side: [
            (name, member.name, member.value)
            for cls in (way, kind, part, side)
            for name, member in cls.__members__.items()
        ],
        lambda way, kind, part, side: [len(cls) for cls in (way, kind, part, side)],
        lambda way, kind, part, side: [bool(cls) for cls in (way, kind, part, side)],
        lambda way, kind, part, side: [bool(member) for cls in (way, kind, part, side) for member in cls],
        lambda way, kind, part, side: way("there") is way.THERE and way(way.BACK) is way.BACK,
        lambda way, kind, part, side: kind(0) is kind.FILE and kind(kind.LINK) is kind.LINK is kind.SAME,
        lambda way, kind, part, side: kind["LINK"] is kind.LINK,
        lambda way, kind, part, side: kind["SOMETHING"],
        lambda way, kind, part, side: way("nowhere"),
        lambda way, kind, part, side: way([]),
        lambda way, kind, part, side: kind(1),
        lambda way, kind, part, side: kind("0"),
        lambda way, kind, part, side: part("0"),
        lambda way, kind, part, side: (way.THERE.other.name, part.TAIL.width),
        lambda way, kind, part, side: (kind.LINK == 5, kind.LINK + 1, kind.LINK > kind.FILE, hash(kind.LINK)),
        lambda way, kind, part, side: (way.THERE == way.THERE, way.THERE == way.BACK, way.THERE == "there"),
        lambda way, kind, part, side: isinstance(kind.FILE, kind) and isinstance(kind.FILE, int),
        lambda way, kind, part, side: json.dumps([kind.LINK, part.BODY, {kind.FILE: 1}]),
        lambda way, kind, part, side: [
            (repr(found), int(found), found.name, type(found) is part)
            for one in part
            for other in (*part, 0, 3, 9)
            for found in (one | other, one & other, one ^ other, other | one, other & one)
        ],
        lambda way, kind, part, side: [repr(side(bits)) for bits in (0, 3)],
        lambda way, kind, part, side: side.LEFT & side.RIGHT == 0 and side(0) is side.LEFT & 2,
        lambda way, kind, part, side: part(3) is part(3) is part.HEAD | part.BODY,
        lambda way, kind, part, side: part(9) is part.ENDS,
        lambda way, kind, part, side: {way.THERE: 1, kind.LINK: 2}[way.THERE],
        lambda way, kind, part, side: copy.copy(way.THERE) is way.THERE and copy.deepcopy([kind.LINK]) == [5],
        lambda way, kind, part, side: copy.deepcopy(way.BACK) is way.BACK,
    ],
)
def test_they_are_used_alike(work: Callable[..., object]) -> None:
    assert outcome(lambda: work(*OURS)) == outcome(lambda: work(*THEIRS))


def test_members_travel() -> None:
    from rdc.errors import ExitCode
    from rdc.model.sync import RuleAction
    from rdc.plan.compare import Difference

    for member in (ExitCode.VANISHED, RuleAction.INCLUDE, Difference.SIZE | Difference.TIME):
        assert pickle.loads(pickle.dumps(member)) is member  # noqa: S301
