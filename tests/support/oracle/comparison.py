"""Finds what differs between rsync and rdc in one case, apart from what is intended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields

from tests.support.oracle.cases import Case, Outcome, SilentRsyncError, run_case
from tests.support.oracle.comparable import comparable
from tests.support.oracle.intended import adjusted
from tests.support.running.compared_trees import Seen, View

__all__ = ["differences", "unlike"]

EXIT_PROTOCOL = 2


def differences(case: Case) -> list[str]:
    """One line for each difference; none for a case that rsync answers in another way by decision."""
    if not comparable(case):
        return []
    try:
        theirs, ours = run_case(case)
        if theirs.code == EXIT_PROTOCOL:
            return []  # rsync's own processes disagree, as with -H where a directory is in the way
        return unlike(case, theirs, ours)
    except SilentRsyncError:
        return []  # rsync, not rdc: now and then its processes wait for each other


def unlike(case: Case, theirs: Outcome, ours: Outcome) -> list[str]:
    """The differences between rsync's outcome and rdc's, apart from what is intended."""
    theirs, ours = adjusted(case, theirs), adjusted(case, ours)
    said = [
        *_codes("exit code of -n", theirs.planned_code, ours.planned_code),
        *_lines("-n -i", theirs.plan, ours.plan),
        *_codes("exit code", theirs.code, ours.code),
        *_lines("-i", theirs.lines, ours.lines),
        *_trees(theirs.tree, ours.tree),
        *_accessed(theirs, ours),
        *[f"{path!r}: one file with another tree's in {who} alone" for who, path in _shared(theirs, ours)],
        *[f"SRC: rsync alone removes {path!r}" for path in sorted({*ours.left} - {*theirs.left})],
        *[f"SRC: rdc alone removes {path!r}" for path in sorted({*theirs.left} - {*ours.left})],
    ]
    return [*said, *_stderr(theirs, ours)] if said else []


def _shared(theirs: Outcome, ours: Outcome) -> Iterator[tuple[str, bytes]]:
    yield from (("rsync", path) for path in sorted({*theirs.shared} - {*ours.shared}))
    yield from (("rdc", path) for path in sorted({*ours.shared} - {*theirs.shared}))


def _accessed(theirs: Outcome, ours: Outcome) -> Iterator[str]:
    one, other = dict(theirs.accessed), dict(ours.accessed)
    for path in sorted(one.keys() & other.keys()):
        if one[path] != other[path]:
            yield f"{path!r}: accessed: rsync {one[path]}, rdc {other[path]}"


def _codes(what: str, theirs: object, ours: object) -> list[str]:
    return [f"{what}: rsync {theirs}, rdc {ours}"] if theirs != ours else []


def _lines(what: str, theirs: tuple[str, ...], ours: tuple[str, ...]) -> list[str]:
    return [f"{what}: rsync alone: {line}" for line in _apart(theirs, ours)] + [
        f"{what}: rdc alone: {line}" for line in _apart(ours, theirs)
    ]


def _apart(some: tuple[str, ...], others: tuple[str, ...]) -> Iterator[str]:
    return (Counter(some) - Counter(others)).elements()


def _trees(theirs: View, ours: View) -> list[str]:
    return [
        f"{path!r}: {_entry(theirs.get(path), ours.get(path))}"
        for path in sorted({*theirs, *ours})
        if theirs.get(path) != ours.get(path)
    ]


def _entry(theirs: Seen | None, ours: Seen | None) -> str:
    if theirs is None or ours is None:
        return "rdc alone has it" if theirs is None else "rsync alone has it"
    pairs = ((field.name, getattr(theirs, field.name), getattr(ours, field.name)) for field in fields(Seen))
    return ", ".join(f"{name}: rsync {one!r}, rdc {other!r}" for name, one, other in pairs if one != other)


def _stderr(theirs: Outcome, ours: Outcome) -> list[str]:
    return [f"rsync said: {theirs.said}", f"rdc said: {ours.said}"]
