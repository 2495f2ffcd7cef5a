"""Compares hard links and extended attributes of entries that both trees have."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.facts.directory_xattrs import read_directory_attributes, read_entry_attributes
from rdc.model.check import Aspect
from rdc.model.entries import Kind, Listing
from rdc.model.preserved import (
    ACCESS_ACL,
    DEFAULT_ACL,
    UNREADABLE,
    AttributeKinds,
    pack_attributes,
    unpack_attributes,
)
from rdc.progress import Problem
from rdc.tree.row_map import RowMap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.checking.tree_comparison import TreeComparison
    from rdc.files.root.root import Root
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Manifest

__all__ = ["compare_attributes", "compare_links"]


def compare_links(
    tree: TreeComparison, wanted: Manifest, links: LinkTable, own: Manifest, own_links: LinkTable
) -> None:
    """Notes files that share an inode with other files at one end than at the other.

    Only files that both ends have count, so a missing name makes no difference of its other names.
    """
    rows = RowMap(own, wanted)
    there = _groups(links, lambda row: row if row < len(wanted) and tree.is_common(row) else None)
    here = _groups(own_links, lambda row: _common(tree, rows.row(row)))
    for row in sorted(there.keys() | here.keys()):
        if there.get(row) != here.get(row):
            tree.add(row, Aspect.LINKS)


def _common(tree: TreeComparison, row: int | None) -> int | None:
    return row if row is not None and tree.is_common(row) else None


def _groups(links: LinkTable, mapped: Callable[[int], int | None]) -> dict[int, frozenset[int]]:
    """By row, all rows that name the same file; without those whose file has one name only."""
    names: dict[int, list[int]] = {}
    for file, first in links:
        names.setdefault(first, [first]).append(file)
    found: dict[int, frozenset[int]] = {}
    for rows in names.values():
        group = frozenset(row for row in map(mapped, rows) if row is not None)
        if len(group) > 1:
            found.update(dict.fromkeys(group, group))
    return found


def compare_attributes(
    tree: TreeComparison, root: Root, wanted: Manifest, xattrs: WantedXattrs, events: EventRelay, *, top: bool
) -> None:
    """Notes entries whose extended attributes differ. `top`: those of the compared directory count."""
    for number, path in enumerate(wanted.directories):
        first, listing = wanted.firsts[number], wanted.listing(number)
        sets = xattrs.of(first, len(listing))
        rows = [
            row
            for row, kind in enumerate(listing.kinds)
            if kind < Kind.SPECIAL and sets.get(row) != UNREADABLE and tree.is_common(first + row)
        ]
        here = _own_sets(root, path, listing, xattrs.kinds, events) if rows else None
        if here is None:
            continue
        for row in rows:
            if here.get(row) != UNREADABLE:
                tree.add(first + row, _differing(sets.get(row, b""), here.get(row, b"")))
    wanted_top = xattrs.of_root()
    if top and wanted_top != UNREADABLE:
        try:
            own_top = pack_attributes(read_entry_attributes(root.fileno(), b".", xattrs.kinds))
        except OSError as error:
            _report(events, b"", error)
            return
        tree.top |= _differing(wanted_top, own_top)


def _own_sets(
    root: Root, path: bytes, listing: Listing, kinds: AttributeKinds, events: EventRelay
) -> dict[int, bytes] | None:
    """The packed attributes of a directory's entries by row; None if the directory cannot be read."""
    found: dict[int, bytes] = {}
    names = b"".join([name + b"\0" for name in listing.names])
    try:
        for row, name, attributes in read_directory_attributes(root, path, names, kinds):
            if isinstance(attributes, OSError):
                _report(events, join(path, name), attributes)
                found[row] = UNREADABLE
            else:
                found[row] = pack_attributes(attributes)
    except FileError as error:
        events.report(Problem(ExitCode.PARTIAL, path, str(error)))
        return None
    return found


def _report(events: EventRelay, path: bytes, error: OSError) -> None:
    why = error.strerror or type(error).__name__
    shown = printable(path or b".")
    text = f"{shown}: cannot read its extended attributes: {why}"
    events.report(Problem(ExitCode.PARTIAL, path, text))


def _differing(there: bytes, here: bytes) -> Aspect:
    if there == here:
        return Aspect.NONE
    before, after = dict(unpack_attributes(there)), dict(unpack_attributes(here))
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    lists = {ACCESS_ACL, DEFAULT_ACL}
    return (Aspect.ACLS if names & lists else Aspect.NONE) | (Aspect.XATTRS if names - lists else Aspect.NONE)
