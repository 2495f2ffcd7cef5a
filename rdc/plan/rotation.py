"""Finds files whose contents moved to other names of the same directory, as log rotation does."""

from __future__ import annotations

from rdc.limits.sessions import BASES_PER_FILE
from rdc.model.entries import Kind
from rdc.plan.compare import Change, Difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing
    from rdc.model.preserved import Preserved
    from rdc.plan.compare import Comparison, Decision

__all__ = ["rotated"]

ROTATED_BYTES = 2048
"""Smaller files are not searched for: fetching one costs about as much as comparing it with another file."""

ROTATED_FILES = 16_384
"""Skip directories with more changed files than this; such a change is no rotation. Each file takes about 300
bytes of memory."""

# app.log.2.gz, app.log-20240131, mbox.3. The first group is the name before any rotation.
_NUMBERED = rb"(.+)[.-]([0-9]{1,14})(\.[A-Za-z0-9]{1,4})?"


def rotated(
    wanted: Listing, existing: Listing, comparison: Comparison, preserved: Preserved
) -> dict[int, tuple[bytes, ...]]:
    """Returns, by row of `wanted`, names of files in `existing` that may have its content, best first.

    Candidates are files of `existing` whose own name now has other content or is gone. A file with the wanted
    size and mtime most likely is the wanted content. Otherwise a numbered name may continue the file with the
    number before it. A wrong candidate costs one needless read at the destination.
    """
    # long because each candidate rules others out, so the steps share their sets
    if not 1 < len(comparison.decisions) + len(comparison.touched) + len(comparison.extra) <= ROTATED_FILES:
        return {}  # a single file has no other name to move to
    if not existing.names:
        return {}  # as in a first copy
    renumbered = [decision for decision in comparison.decisions if _may_be_rotated(wanted, decision)]
    if not renumbered:
        return {}
    left = {
        decision.existing_row: False for decision in comparison.decisions if decision.change is Change.CONTENT
    }
    if comparison.touched:
        rows_by_name = {name: row for row, name in enumerate(existing.names)}
        left |= {rows_by_name[wanted.names[row]]: False for row in comparison.touched}
    left |= dict.fromkeys(comparison.extra, True)
    here, there = preserved.at_source, preserved.at_destination
    stamps: dict[tuple[int, int], list[int]] = {}
    names: dict[bytes, int] = {}
    for row in left:
        if existing.kinds[row] == Kind.FILE and existing.sizes[row] >= ROTATED_BYTES:
            stamp = existing.sizes[row], there.mtime(existing.mtimes[row])
            stamps.setdefault(stamp, []).append(row)
            names[existing.names[row]] = row
    found = {}
    for decision in renumbered:
        row = decision.row
        stamp = wanted.sizes[row], here.mtime(wanted.mtimes[row])
        rows = stamps.get(stamp) or [
            names[name] for name in _names_before(wanted.names[row]) if name in names
        ]
        # A new file whose old name is gone is left to the later search of the whole tree.
        new = decision.change is Change.CREATE
        bases = [
            existing.names[one] for one in rows if one != decision.existing_row and not (new and left[one])
        ]
        if bases:
            found[row] = tuple(bases[:BASES_PER_FILE])
    return found


def _may_be_rotated(wanted: Listing, decision: Decision) -> bool:
    """Accepts new files and files of another size. Files of equal size are usually just touched."""
    if wanted.kinds[decision.row] != Kind.FILE or wanted.sizes[decision.row] < ROTATED_BYTES:
        return False
    return decision.change is Change.CREATE or (
        decision.change is Change.CONTENT and Difference.SIZE in decision.difference
    )


def _names_before(name: bytes) -> list[bytes]:
    """Returns the names that this file may have had before its number was increased."""
    import re

    match = re.fullmatch(_NUMBERED, name, re.DOTALL)
    if match is None:
        return []
    stem, number, suffix = match[1], match[2], match[3] or b""
    before = b"%0*d" % (len(number), max(0, int(number) - 1))
    shorter = b"%d" % max(0, int(number) - 1)
    separator = name[len(stem) : len(stem) + 1]
    names = [stem + separator + one + suffix for one in (before, shorter)]
    return list(dict.fromkeys([*names, stem + suffix, stem]))
