"""Files of one directory whose contents moved on to other names, as those of a log do when it is rotated."""

from __future__ import annotations

from rdc.limits import BASES_PER_FILE
from rdc.model.entries import Kind
from rdc.plan.compare import Change, Difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing
    from rdc.model.kept import Kept
    from rdc.plan.compare import Comparison, Decision

__all__ = ["rotated"]

ROTATED_BYTES = 2048
"""Below, a file is fetched about as cheaply as it is compared with another one."""

ROTATED_FILES = 16_384
"""Changed files of a directory among which is looked, some 300 bytes each: where more change they were not
rotated."""

# app.log.2.gz, app.log-20240131, mbox.3; what stands before the number is what all of them were once.
_NUMBERED = rb"(.+)[.-]([0-9]{1,14})(\.[A-Za-z0-9]{1,4})?"


def rotated(
    wanted: Listing, held: Listing, comparison: Comparison, kept: Kept
) -> dict[int, tuple[bytes, ...]]:
    """By row of `wanted`: names of files of `held` that may have its content, best first.

    A held file whose name now stands for something else gave its content up or on. One of the size and mtime
    that another file is to have is that file, most likely; of one that is numbered, the one with the number
    before may be the beginning. Both are guesses: what they cost where they are wrong is that a file here is
    read in vain.
    """
    if not 1 < len(comparison.decisions) + len(comparison.touched) + len(comparison.extra) <= ROTATED_FILES:
        return {}  # one alone can only have moved on to its own name
    sought = [decision for decision in comparison.decisions if _may_be_rotated(wanted, decision)]
    if not sought:
        return {}
    left = {
        decision.held_row: False for decision in comparison.decisions if decision.change is Change.CONTENT
    }
    if comparison.touched:
        places = {name: row for row, name in enumerate(held.names)}
        left |= {places[wanted.names[row]]: False for row in comparison.touched}
    left |= dict.fromkeys(comparison.extra, True)
    stamps: dict[tuple[int, int], list[int]] = {}
    names: dict[bytes, int] = {}
    for row in left:
        if held.kinds[row] == Kind.FILE and held.sizes[row] >= ROTATED_BYTES:
            stamps.setdefault((held.sizes[row], kept.mtime(held.mtimes[row])), []).append(row)
            names[held.names[row]] = row
    found = {}
    for decision in sought:
        row = decision.row
        stamp = wanted.sizes[row], kept.mtime(wanted.mtimes[row])
        rows = stamps.get(stamp) or [
            names[name] for name in _names_before(wanted.names[row]) if name in names
        ]
        # What is new and was here under a name that is gone is looked for in the whole tree, later.
        new = decision.change is Change.CREATE
        bases = [held.names[one] for one in rows if one != decision.held_row and not (new and left[one])]
        if bases:
            found[row] = tuple(bases[:BASES_PER_FILE])
    return found


def _may_be_rotated(wanted: Listing, decision: Decision) -> bool:
    """New, or of another size: what was only touched is far more common than a rotation of equal sizes."""
    if wanted.kinds[decision.row] != Kind.FILE or wanted.sizes[decision.row] < ROTATED_BYTES:
        return False
    return decision.change is Change.CREATE or (
        decision.change is Change.CONTENT and Difference.SIZE in decision.difference
    )


def _names_before(name: bytes) -> list[bytes]:
    """What a file of this name may have been called before it was numbered on."""
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
