"""An entry with the last time that its file system holds has any later time, too."""

from __future__ import annotations

import pytest

from rdc.lean.records import replace
from rdc.model.entries import Kind
from rdc.model.preserved import ALL_KEPT, Granularity, packed_time
from rdc.plan.compare import TimeLimits, is_clamped, time_limits, with_clamped_times
from tests.support.trees.manifests import entry, listing

SECOND = 10**9
ANY = time_limits(0)
EXT4 = time_limits(0xEF53)


@pytest.mark.parametrize(
    ("limit", "sign"), [*((s, 1) for s in sorted(ANY.last)), *((s, -1) for s in sorted(ANY.first))]
)
def test_a_limit_stands_for_what_is_beyond_it(limit: int, sign: int) -> None:
    there = packed_time(limit * SECOND)
    for beyond in (1, SECOND, 10**19):
        assert is_clamped(there, packed_time(limit * SECOND + sign * beyond), ANY)
        assert not is_clamped(there, packed_time(limit * SECOND - sign * beyond), ANY)
    assert not is_clamped(packed_time(limit * SECOND + 1), packed_time(limit * SECOND + sign * 10**19), ANY)


def test_rows_of_one_name_and_kind_are_compared() -> None:
    late, last = packed_time(10**19), ((1 << 31) - 1) * SECOND
    kinds = {b"d": Kind.DIRECTORY, b"f": Kind.FILE, b"g": Kind.FILE, b"h": Kind.FILE}
    wanted = listing(entry(name, kind, mtime_ns=late) for name, kind in kinds.items())
    there = {b"d": last, b"f": last, b"g": last - 1, b"i": last}
    existing = listing(entry(name, kinds.get(name, Kind.FILE), mtime_ns=time) for name, time in there.items())
    clamped = with_clamped_times(wanted, existing, lambda: EXT4, ALL_KEPT)
    assert list(clamped.wanted.mtimes) == [last, last, late, late]
    assert clamped.files == {1}


NO_LIMITS = TimeLimits()
FAT_FIRST = 315_532_800


@pytest.mark.parametrize(
    ("limit", "beyond", "step", "stands"),
    [
        ((1 << 31) - 1, 10**10, 1, True),
        ((1 << 31) - 1, 10**9, 1, False),
        (-(1 << 31), -(10**10), 1, True),
        (FAT_FIRST, 5, 2 * SECOND, True),
        (FAT_FIRST, 5, 1, False),
        (0, -5, 2 * SECOND, False),
    ],
)
def test_a_limit_of_the_source_replaces_nothing_beyond_it(
    limit: int, beyond: int, step: int, stands: bool
) -> None:
    """But what is a usual time of files, too, is that."""
    preserved = replace(ALL_KEPT, source_granularity=Granularity(step))
    time, there = packed_time(limit * SECOND), packed_time(beyond * SECOND)
    wanted, existing = (listing([entry(b"f", Kind.FILE, mtime_ns=one)]) for one in (time, there))
    clamped = with_clamped_times(wanted, existing, lambda: NO_LIMITS, preserved)
    assert list(clamped.wanted.mtimes) == [there if stands else time]
    assert clamped.files == ({0} if stands else set())


def never() -> TimeLimits:
    raise AssertionError("the file system was asked")


def test_the_epoch_is_a_time_like_others_where_earlier_ones_can_be_stored() -> None:
    assert is_clamped(0, -SECOND, ANY)
    for known in (EXT4, time_limits(0x9123683E), time_limits(0x58465342)):
        assert not is_clamped(0, -SECOND, known)
        assert not known.first or is_clamped(packed_time(-(1 << 31) * SECOND), packed_time(-(10**19)), known)


def test_usual_times_are_not_looked_at() -> None:
    wanted = listing([entry(b"f", mtime_ns=2 * 10**18)])
    assert with_clamped_times(wanted, listing([]), never, ALL_KEPT).wanted is wanted
