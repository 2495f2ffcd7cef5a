"""Predicts a directory's listing after a run without errors and without deletion."""

from __future__ import annotations

from array import array

from rdc.model.entries import Kind, Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import PackedListing

__all__ = ["expected_directory"]


def expected_directory(wanted: PackedListing, held: PackedListing) -> PackedListing:
    """Returns the source's entries, plus destination entries whose names the source lacks. Special files of
    the source are not created, so the destination's entries of their names stay."""
    if Kind.SPECIAL not in wanted.kinds and (not held.count or wanted.names == held.names):
        # Most directories of most trees take this path.
        return wanted
    theirs, ours = wanted.unpacked(), held.unpacked()
    theirs = theirs.rows([row for row, kind in enumerate(theirs.kinds) if kind != Kind.SPECIAL])
    taken = frozenset(theirs.names)
    ours = ours.rows([row for row, name in enumerate(ours.names) if name not in taken])
    names, kinds = theirs.names + ours.names, theirs.kinds + ours.kinds
    targets = {**theirs.links(), **{row + len(theirs): target for row, target in ours.links().items()}}
    order = sorted(range(len(names)), key=names.__getitem__)

    def column(mine: array[int], further: array[int]) -> array[int]:
        both = mine + further
        return array(both.typecode, [both[row] for row in order])

    return Listing(
        tuple([names[row] for row in order]),
        bytes([kinds[row] for row in order]),
        column(theirs.modes, ours.modes),
        column(theirs.sizes, ours.sizes),
        column(theirs.mtimes, ours.mtimes),
        column(theirs.uids, ours.uids),
        column(theirs.gids, ours.gids),
        tuple([targets[row] for row in order if row in targets]),
    ).packed()
