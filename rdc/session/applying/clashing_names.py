"""Finds entries that cannot both be at the destination, because its file system takes their names for one.

None of them is made, changed or removed. Otherwise one would take the place of the other, and two directories
would become one.
"""

from __future__ import annotations

from rdc.errors import printable
from rdc.files.names.one_name import inode_at, names_that_are_one
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing

__all__ = ["Clash", "clashes"]


@dataclass(frozen=True, slots=True)
class Clash:
    """Names that are one for the destination's file system."""

    names: tuple[bytes, ...]
    """In the order of the source; then those that only the destination has."""
    rows: tuple[int, ...]
    """Rows of the source's listing."""
    kept: tuple[int, ...]
    """Rows of the destination's listing that the source does not have."""

    def refusal(self, name: bytes, label: bytes, *, names_all: bool = True) -> str:
        """Say why `name`, shown as `label`, is left alone. `names_all`: names that only the destination has
        are told."""
        told = self.names if names_all else self.names[: len(self.rows)]
        others = " and ".join(f"'{_distinct(other, name)}'" for other in told if other != name)
        others = others or "another entry"
        return (
            f"{printable(label)}: cannot be here beside {others}: expected names of their own, found that "
            "this file system takes them for one; rename one of them, then run again"
        )


def clashes(
    root: Root,
    path: bytes,
    listing: Listing,
    existing: Listing,
    extra: Sequence[int],
    alike: Sequence[Sequence[int]],
    *,
    dry_run: bool,
) -> list[Clash]:
    """Return the clashes of a directory. `extra`: rows of what the source does not have. `alike`: groups of
    rows of the source's listing, and then of `extra`, whose names may be one.

    A dry run asks only about names that are there, because it writes nothing.
    """
    count, there = len(listing), frozenset(existing.names)

    def name_of(row: int) -> bytes:
        return listing.names[row] if row < count else existing.names[extra[row - count]]

    found = []
    for rows in alike:
        listed = [row for row in rows if name_of(row) in there]
        new = [row for row in rows if name_of(row) not in there]
        for group in _groups(root, path, listed, new, name_of, dry_run=dry_run):
            clash = Clash(
                tuple(name_of(row) for row in group),
                tuple(row for row in group if row < count),
                tuple(extra[row - count] for row in group if row >= count),
            )
            if clash.rows:
                found.append(clash)
    return found


def _groups(
    root: Root,
    path: bytes,
    listed: Sequence[int],
    new: Sequence[int],
    name_of: Callable[[int], bytes],
    *,
    dry_run: bool,
) -> list[list[int]]:
    """Return the rows in groups of two or more that are one. `listed`: what the directory lists under its
    very name, so each has its own. `new`: the others."""
    inodes = {inode_at(root, path, name_of(row)): row for row in reversed(listed)}
    groups: dict[int, list[int]] = {}
    absent = []
    for row in new:
        inode = inode_at(root, path, name_of(row))
        if inode is None:
            absent.append(row)
        elif listed:
            # Some file systems give each spelling an inode number of its own.
            groups.setdefault(inodes.get(inode, listed[0]), []).append(row)
    found = [sorted([row, *others]) for row, others in groups.items()]
    if len(absent) > 1 and not dry_run:
        names = [name_of(row) for row in absent]
        found += [[absent[at] for at in group] for group in names_that_are_one(root, path, names)]
    return found


def _distinct(name: bytes, other: bytes) -> str:
    """Return `name` for a message, as bytes if it looks like `other`."""
    from unicodedata import normalize

    one, two = (normalize("NFKC", text.decode("utf-8", "replace")) for text in (name, other))
    return repr(name)[2:-1] if one == two else printable(name)
