"""`rdc store forget`: which snapshots a retention keeps, and how the others are forgotten.

A forgotten snapshot is moved to `forgotten/`, where gc leaves it for TRASH_SECONDS. Which ones are kept
follows from the numbers and times of the store alone: a later number is newer, whatever the times say.
"""

from __future__ import annotations

import re
import time
from contextlib import ExitStack

from rdc.errors import UsageError
from rdc.lean.records import Record
from rdc.store.place import PackStore, typed
from rdc.store.publish import is_published, publish
from rdc.store.records import ForgetOptions, ForgetReport
from rdc.store.snapshots import Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_RULE = re.compile(r"([1-9][0-9]{0,5})([hdwmy])")


def _week(at: time.struct_time) -> tuple[int, ...]:
    """Return the number of the week that begins on Monday, counted from a Monday of year 1."""
    from datetime import date

    return ((date(at.tm_year, at.tm_mon, at.tm_mday).toordinal() - 1) // 7,)


_PERIODS: dict[str, Callable[[time.struct_time], tuple[int, ...]]] = {
    "h": lambda at: (at.tm_year, at.tm_yday, at.tm_hour),
    "d": lambda at: (at.tm_year, at.tm_yday),
    "w": _week,
    "m": lambda at: (at.tm_year, at.tm_mon),
    "y": lambda at: (at.tm_year,),
}


class RetentionRule(Record):
    """Keeps the newest snapshot of each of the last `count` periods that have one."""

    count: int
    period: str
    """h, d, w, m or y."""


def parse_retention(text: str) -> tuple[RetentionRule, ...]:
    """Return the rules of a text such as "24h,7d,4w,12m". Raises UsageError."""
    found = []
    for part in text.split(","):
        match = _RULE.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                f"--retain={text}: expected numbers of hours, days, weeks, months or years, such as"
                " --retain=24h,7d,4w,12m"
            )
        found.append(RetentionRule(int(match[1]), match[2]))
    return tuple(found)


def kept_by(snapshots: Sequence[Snapshot], rules: Iterable[RetentionRule]) -> set[int]:
    """Return the numbers of the snapshots that the rules keep: of each series its newest one, its newest one
    without problems, and what each rule keeps, by local time.

    A snapshot with problems lacks something that may be in no later one, so it stands for a period only if
    that has none without problems.
    """
    rules = tuple(rules)
    kept = set[int]()
    for series in {one.series for one in snapshots}:
        own = sorted([one for one in snapshots if one.series == series], key=lambda one: -one.number)
        kept.add(own[0].number)
        kept.add(next((one for one in own if not one.problems), own[0]).number)
        for rule in rules:
            newest = dict[tuple[int, ...], Snapshot]()
            for one in own:
                period = _PERIODS[rule.period](_local_time(one.seconds))
                if period not in newest:
                    if len(newest) < rule.count:
                        newest[period] = one
                elif newest[period].problems and not one.problems:
                    newest[period] = one
            kept.update(one.number for one in newest.values())
    return kept


def _local_time(seconds: int) -> time.struct_time:
    try:
        found = time.localtime(seconds)
    except (OverflowError, OSError, ValueError):
        return time.gmtime(0)  # of a clock that was far off
    return found if 1 <= found.tm_year <= 9999 else time.gmtime(0)


def forget(store: bytes, options: ForgetOptions) -> ForgetReport:
    """Forget the snapshots that `options` name or do not retain, or only show them. Raises RdcError."""
    if (options.retain is None) == (not options.numbers):
        raise UsageError("forget takes --retain=RULES or snapshots such as @17; give one of them")
    with PackStore.open(store) as opened, ExitStack() as held:
        if options.apply:
            opened.check_owner()
            held.enter_context(opened.locked())
        if options.retain is not None:
            rules = parse_retention(options.retain)
            snapshots = opened.needed_snapshots()
            known = {one.number for one in snapshots}
            gone = known - kept_by(snapshots, rules)
        else:
            known = set(opened.numbers())
            gone = set(options.numbers)
            if missing := sorted(gone - known):
                raise UsageError(
                    f"@{missing[0]}: the store has no such snapshot; see rdc store list {typed(store)}"
                )
            # Snapshots that stay are not read, so a damaged one keeps no other from being forgotten. Only
            # an index says what is in them.
            if is_published(opened):
                for number in sorted(known - gone):
                    opened.needed_snapshot(number)
        if options.apply:
            opened.forget(sorted(gone))
            publish(opened)
    return ForgetReport(forgotten=tuple(sorted(gone)), kept=len(known - gone), applied=options.apply)
