"""Finds entries that cannot both be at the destination, because its file system takes their names for one.

None of them is made, changed or removed. Otherwise one would take the place of the other, and two directories
would become one.
"""

from __future__ import annotations

from rdc.errors import printable
from rdc.files.names.one_name import are_one_name, leads_to_another
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence, Set

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

    def refusal(self, name: bytes, label: bytes) -> str:
        """Say why `name`, shown as `label`, is left alone."""
        others = " and ".join(f"'{_distinct(other, name)}'" for other in self.names if other != name)
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
        entries = [(name_of(row), row) for row in rows]
        for group in _groups(root, path, entries, there, dry_run=dry_run):
            clash = Clash(
                tuple(name for name, _ in group),
                tuple(row for _, row in group if row < count),
                tuple(extra[row - count] for _, row in group if row >= count),
            )
            if clash.rows:
                found.append(clash)
    return found


def _groups(
    root: Root, path: bytes, entries: Sequence[tuple[bytes, int]], there: Set[bytes], *, dry_run: bool
) -> list[list[tuple[bytes, int]]]:
    """Return the entries in groups of two or more that are one."""
    groups: list[list[tuple[bytes, int]]] = []
    for entry in entries:
        for group in groups:
            if _is_one(root, path, group[0][0], entry[0], there, dry_run=dry_run):
                group.append(entry)
                break
        else:
            groups.append([entry])
    return [group for group in groups if len(group) > 1]


def _is_one(root: Root, path: bytes, one: bytes, other: bytes, there: Set[bytes], *, dry_run: bool) -> bool:
    if one in there and other in there:
        return False
    if one in there or other in there:
        return leads_to_another(root, path, other if one in there else one)
    return not dry_run and are_one_name(root, path, one, other)


def _distinct(name: bytes, other: bytes) -> str:
    """Return `name` for a message, as bytes if it looks like `other`."""
    from unicodedata import normalize

    one, two = (normalize("NFKC", text.decode("utf-8", "replace")) for text in (name, other))
    return repr(name)[2:-1] if one == two else printable(name)
