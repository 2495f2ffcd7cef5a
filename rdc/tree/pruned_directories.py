"""Directories that hold nothing but directories: --prune-empty-dirs has them take no part."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.base.relative_path import join
from rdc.model.entries import Kind, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.tree.filters import FilteredTree, FilterList
    from rdc.tree.walk import WalkedDirectory

__all__ = ["lasting_directories"]

_DIRECTORY = int(Kind.DIRECTORY)


def lasting_directories(
    walk: Iterable[WalkedDirectory], filters: FilterList, tree: FilteredTree
) -> set[bytes]:
    """The paths of directories with something below them that is no directory, or that a rule protects.

    `walk`: all directories of `tree`, parents first. `filters`: the rules of the run.
    """
    # As in rsync, only rules that protect by name keep a directory, not those that exclude.
    protecting = filters.at_destination(tree, delete=True, delete_excluded=True).protected
    lasting: set[bytes] = {b""}
    for path, listing, _ in walk:
        kinds = listing.kinds
        if kinds.count(_DIRECTORY) < len(kinds):
            _add(lasting, path)
        if protecting and _DIRECTORY in kinds:
            names = strings(listing.names)
            for row in listing.rows_of(Kind.DIRECTORY):
                below = join(path, names[row])
                if _is_protected(below, protecting):
                    _add(lasting, below)
    return lasting


def _add(lasting: set[bytes], path: bytes) -> None:
    while path not in lasting:
        lasting.add(path)
        path = path.rpartition(b"/")[0]


def _is_protected(path: bytes, protecting: FilterList) -> bool:
    try:
        return protecting.excluded(path, True)
    except FileError:
        return True  # its rules cannot be read, so it takes part
