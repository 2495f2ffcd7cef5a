"""Predicts a directory's listing after a run without errors and without deletion."""

from __future__ import annotations

from array import array

from rdc.model.entries import Kind, Listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import PackedListing

__all__ = ["expected_directory"]


def expected_directory(wanted: PackedListing, existing: PackedListing) -> PackedListing:
    """Returns the source's entries, plus destination entries whose names the source lacks. Special files of
    the source are not created, so the destination's entries of their names stay."""
    if Kind.SPECIAL not in wanted.kinds and (not existing.count or wanted.names == existing.names):
        # Most directories of most trees take this path.
        return wanted
    source, destination = wanted.unpacked(), existing.unpacked()
    source = source.rows([row for row, kind in enumerate(source.kinds) if kind != Kind.SPECIAL])
    taken = frozenset(source.names)
    destination = destination.rows([row for row, name in enumerate(destination.names) if name not in taken])
    names, kinds = source.names + destination.names, source.kinds + destination.kinds
    links = {**source.links(), **{row + len(source): target for row, target in destination.links().items()}}
    order = sorted(range(len(names)), key=names.__getitem__)

    def column(mine: array[int], further: array[int]) -> array[int]:
        both = mine + further
        return array(both.typecode, [both[row] for row in order])

    return Listing(
        tuple([names[row] for row in order]),
        bytes([kinds[row] for row in order]),
        column(source.modes, destination.modes),
        column(source.sizes, destination.sizes),
        column(source.mtimes, destination.mtimes),
        column(source.uids, destination.uids),
        column(source.gids, destination.gids),
        tuple([links[row] for row in order if row in links]),
    ).packed()
