"""Both trees as a plan needs them: listed by the one walk, and with contents compared where that decides.

A file whose stamp is that of its own ancestor is unchanged and not read. Files are read only where two of
the same size have to be told apart, or told equal. What cannot be told is taken as changed, which costs a
conflict at most.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from blake3 import blake3

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.base.metadata import stat_entry
from rdc.files.base.paths import join
from rdc.lean.records import dataclass
from rdc.model.entries import Identity, little_endian_integers, strings
from rdc.model.preserved import packed_time
from rdc.progress import Problem
from rdc.tree.walk import Walk
from rdc.uniting.ancestor_file import DIGEST_BYTES, OwnAncestor
from rdc.uniting.rows import (
    BARRED,
    DIRECTORY,
    FILE,
    LEFT,
    NO_STAMP,
    RIGHT,
    SYMLINK,
    Ancestor,
    Node,
    Row,
    Stamp,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.progress import Event, Reporter
    from rdc.tree.filters import FilterList

MODE_BITS = 0o777
"""The permissions that both sides agree on. Other bits of a mode depend on the owner."""

TICK_NS = 10_000_000
"""Nanoseconds in which a file system may give two changes the same change time: the longest tick of Linux."""

WHOLE_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Described:
    """Both trees and their ancestor, ready for a plan."""

    base: Node
    views: tuple[Node, Node]
    entries: tuple[int, int]
    """Entries that take part, at each side."""
    dropped: int
    """Rows that the ancestor has and that take no part any more."""


class Listing:
    """One side's tree by path, while it is described."""

    def __init__(self, root: Root, filters: FilterList, reporter: Reporter) -> None:
        """List the tree. Raises RdcError if its top cannot be listed."""
        self.root = root
        self._filters = filters
        self._reporter = reporter
        self.rows: dict[bytes, Row] = {}
        self.recent: list[bytes] = []
        """Paths that changed so shortly before that a further change may leave no trace."""
        self._barred: dict[bytes, str] = {}
        self._temporaries: list[tuple[bytes, list[bytes]]] = []
        self.device = os.fstat(root.fileno()).st_dev
        self._list()

    def _report(self, event: Event, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._barred[event.path] = "it cannot be read"
        self._reporter(event)

    def _special(self, path: bytes) -> None:
        self._barred[path] = "it is neither file, directory nor symlink"

    @property
    def has_barred(self) -> bool:
        """Whether an entry takes no part."""
        return bool(self._barred)

    def _list(self) -> None:
        began = time.time_ns() - TICK_NS
        hints = self.root.stable.inode
        other_devices: set[bytes] = set()
        walk = Walk(
            self.root,
            self._filters,
            self._report,
            on_temporaries=self._note_temporaries,
            on_special=self._special,
            descend=self._is_of_this_device,
        )
        for directory in walk:
            listing, inodes = directory.listing, directory.inodes
            devices = little_endian_integers("Q", inodes.devices)
            numbers = little_endian_integers("Q", inodes.inodes)
            links = little_endian_integers("I", inodes.links)
            ctimes = little_endian_integers("q", inodes.ctimes)
            modes = little_endian_integers("H", listing.modes)
            sizes = little_endian_integers("Q", listing.sizes)
            mtimes = little_endian_integers("q", listing.mtimes)
            targets = iter(strings(listing.targets))
            for row, name in enumerate(strings(listing.names)):
                path, kind = join(directory.path, name), listing.kinds[row]
                target = next(targets) if kind == SYMLINK else b""
                if kind not in (FILE, DIRECTORY, SYMLINK):
                    continue
                if devices[row] != self.device:
                    other_devices.add(path)
                    continue
                size = sizes[row] if kind == FILE else 0
                mode = modes[row] if kind != SYMLINK else 0
                stamp = Stamp(size, mode, mtimes[row], numbers[row], ctimes[row])
                if ctimes[row] > began:
                    self.recent.append(path)
                proves = hints and kind != SYMLINK and (kind == DIRECTORY or links[row] == 1)
                self.rows[path] = Row(
                    kind,
                    target,
                    modes[row] & MODE_BITS if kind != SYMLINK else 0,
                    mtimes[row],
                    numbers[row] if proves else 0,
                    Identity(devices[row], numbers[row], size, mtimes[row], ctimes[row], kind),
                    stamp,
                )
        for path in other_devices:
            self._barred[path] = "another file system is mounted there"

    def _is_of_this_device(self, device: int, _inode: int) -> bool:
        return device == self.device

    def _note_temporaries(self, directory: bytes, names: list[bytes]) -> None:
        self._temporaries.append((directory, names))

    def sweep(self) -> None:
        """Remove the temporaries that interrupted runs left."""
        from rdc.files.replace.commit_group import sweep_temporaries

        for directory, names in self._temporaries:
            sweep_temporaries(self.root, directory, names)

    def settle_recent(self) -> None:
        """Look once more at entries that changed just now, so that a later change shows in their stamps."""
        if not self.recent:
            return
        time.sleep(2 * TICK_NS / 1e9)
        for path in self.recent:
            row = self.rows[path]
            if row.kind == DIRECTORY:
                continue
            with suppress(RdcError, OSError):
                found = self.root.perform(path, "look at it", stat_entry, reading=True)
                if packed_time(found.st_ctime_ns) > time.time_ns() - TICK_NS:
                    self.rows[path] = row._replace(stamp=row.stamp._replace(ctime_ns=0))
        self.recent.clear()

    def bar_hidden(self, base: dict[bytes, Ancestor], filters: FilterList) -> int:
        """Bar entries of the ancestor that are there without being listed, and drop rows that the rules
        exclude.

        Return how many rows were dropped: what takes no part any more is not deleted.
        """
        dropped = [
            path for path, row in base.items() if filters and filters.excluded(path, row.kind == DIRECTORY)
        ]
        for path in dropped:
            del base[path]
        for path in [path for path in base if path not in self.rows]:
            parent = path.rpartition(b"/")[0]
            if parent and (parent not in self.rows or self.rows[parent].kind != DIRECTORY):
                continue
            if path in self._barred:
                continue
            try:
                self.root.perform(path, "look at it", stat_entry, reading=True)
            except FileError as error:
                if isinstance(error.__cause__, FileNotFoundError):
                    continue
                self._barred[path] = "it cannot be looked at"
            else:
                self._barred[path] = "an entry that takes no part is there"
        return len(dropped)

    def node(self) -> Node:
        """Return the tree. Barred entries have the reason as their content."""
        top = Node(b"", None)
        nodes = {b"": top}
        for path, row in self.rows.items():
            parent, _, name = path.rpartition(b"/")
            above = nodes[parent]
            node = above.kids[name] = Node(name, above, row)
            if row.kind == DIRECTORY:
                nodes[path] = node
        for path, reason in self._barred.items():
            parent, _, name = path.rpartition(b"/")
            if path and parent in nodes:
                node = nodes[parent].kids[name] = Node(name, nodes[parent])
                node.row = Row(BARRED, reason.encode(), 0, 0, 0, None, NO_STAMP)
        return top


def is_unchanged(base: dict[bytes, Ancestor], sides: tuple[Listing, Listing]) -> bool:
    """Return whether both sides are as their own stamps say: then there is nothing to decide."""
    for number, side in enumerate(sides):
        if side.has_barred or len(side.rows) != len(base):
            return False
        for path, row in side.rows.items():
            known, now = base.get(path), row.stamp
            if known is None or known.kind != row.kind:
                return False
            before = known.stamps[number]
            if row.kind == DIRECTORY:
                if (before.inode, before.mode) != (now.inode, now.mode):
                    return False
            elif before != now or not before.ctime_ns:
                return False
    return True


def unknown(size: int, mtime_ns: int) -> bytes:
    """The content of a file that was not read: what a quick check goes by. It is longer than a digest."""
    return b"not read, of %d bytes at %d" % (size, mtime_ns)


def base_rows(ancestors: tuple[OwnAncestor, OwnAncestor] | None) -> dict[bytes, Ancestor]:
    """Return the rows that both sides had in common, by path."""
    if ancestors is None:
        return {}
    left, right = ancestors
    rows: dict[bytes, Ancestor] = {}
    for path, row, one, other in zip(left.paths, left.rows, left.stamps, right.stamps, strict=True):
        content = row.target
        if row.kind == FILE:
            content = row.digest if row.digest is not None else unknown(one.size, row.mtime_ns)
        rows[path] = Ancestor(row.kind, content, row.mode, row.mtime_ns, (one, other))
    return rows


class Contents:
    """Decides which contents are equal, and reads files where nothing else tells."""

    def __init__(
        self, base: dict[bytes, Ancestor], sides: tuple[Listing, Listing], *, checksum: bool
    ) -> None:
        self._base = base
        self._sides = sides
        self._checksum = checksum
        self.read_bytes = 0

    def settle(self) -> None:
        """Give each file its content, and each unchanged field the ancestor's value."""
        left, right = (side.rows for side in self._sides)
        for path in {**left, **right}:
            self._settle(path, left.get(path), right.get(path))
        self._settle_renamed()

    def _settle(self, path: bytes, left: Row | None, right: Row | None) -> None:
        base = self._base.get(path)
        rows = [left, right]
        same = [False, False]
        for side, found in enumerate((left, right)):
            if found is None or base is None or base.kind != found.kind:
                continue
            before, row = base.stamps[side], found
            same[side] = before == found.stamp and before.ctime_ns != 0
            if before.mode == found.stamp.mode:
                row = row._replace(mode=base.mode)
            if found.kind == FILE and before.mtime_ns == found.stamp.mtime_ns:
                row = row._replace(mtime_ns=base.mtime_ns)
            if found.kind == FILE and same[side]:
                row = row._replace(content=base.content)
            rows[side] = self._sides[side].rows[path] = row
        changed = [
            side
            for side, each in enumerate(rows)
            if each is not None and each.kind == FILE and not same[side]
        ]
        if changed:
            self._compare(path, rows, same, base if base is not None and base.kind == FILE else None)

    def _compare(self, path: bytes, rows: list[Row | None], same: list[bool], base: Ancestor | None) -> None:
        """Give the changed files of one path contents that are equal exactly if the files are, as far as it
        can be told."""
        files = [row if row is not None and row.kind == FILE else None for row in rows]
        left, right = files
        if (
            base is None
            and left is not None
            and right is not None
            and not self._checksum
            and (left.stamp.size, left.mtime_ns) == (right.stamp.size, right.mtime_ns)
        ):
            for side, row in ((LEFT, left), (RIGHT, right)):
                self._give(side, path, row, unknown(row.stamp.size, row.mtime_ns))
            return
        for side, found in enumerate(files):
            if found is None or same[side]:
                continue
            other = files[1 - side]
            if base is not None and len(base.content) != DIGEST_BYTES and not same[1 - side]:
                before, now = base.stamps[side], found.stamp
                if before.mode != now.mode and before[0:1] + before[2:4] == now[0:1] + now[2:4]:
                    # The new permissions explain the new change time, and no content is known to compare.
                    self._give(side, path, found, base.content)
                    continue
            sizes = [other.stamp.size] if other is not None else []
            if base is not None:
                sizes.append(base.stamps[side].size)
            digest = self._digest(side, path, found) if found.stamp.size in sizes else None
            self._give(side, path, found, digest or self._unique(side, found))
            if digest and same[1 - side] and len(self._base[path].content) != DIGEST_BYTES:
                self._learn(1 - side, path, other)

    def _learn(self, side: int, path: bytes, row: Row | None) -> None:
        """Read the side that is as the ancestor: then the ancestor's content is known, too."""
        digest = self._digest(side, path, row) if row is not None else None
        if row is not None and digest:
            self._base[path] = self._base[path]._replace(content=digest)
            self._give(side, path, row, digest)

    def _unique(self, side: int, row: Row) -> bytes:
        """A content that equals no other: the file's size alone tells, or it cannot be read."""
        stamp = row.stamp
        return b"unlike others, %d %d %d %d" % (side, stamp.inode, stamp.size, stamp.ctime_ns)

    def _give(self, side: int, path: bytes, row: Row, content: bytes) -> None:
        self._sides[side].rows[path] = row._replace(content=content)

    def _digest(self, side: int, path: bytes, row: Row) -> bytes | None:
        """The digest of a file as it was listed; None if it cannot be read, or is not that file any more."""
        try:
            with self._sides[side].root.open_read(path) as source:
                state = blake3()
                for span in source.spans():
                    state.update(span)
                source.check_unchanged()
                found = os.fstat(source.fileno())
        except RdcError:
            return None
        if (found.st_ino, found.st_size) != (row.stamp.inode, row.stamp.size):
            return None
        if packed_time(found.st_mtime_ns) != row.stamp.mtime_ns:
            return None
        self.read_bytes += row.stamp.size
        return state.digest(DIGEST_BYTES)

    def _settle_renamed(self) -> None:
        """Give files that were renamed the content that the ancestor knows under their old names."""
        gone: dict[tuple[int, int], tuple[bytes, Ancestor]] = {}
        for side in (LEFT, RIGHT):
            rows = self._sides[side].rows
            for path, base in self._base.items():
                if base.kind == FILE and base.stamps[side].inode:
                    gone[side, base.stamps[side].inode] = path, base
            for path, row in list(rows.items()):
                if row.kind != FILE or not row.inode:
                    continue
                old = gone.get((side, row.inode))
                if old is None or old[0] == path:
                    continue
                before, known = old[1], old[1].stamps[side]
                if known.size != row.stamp.size:
                    continue
                content = before.content
                if known.mtime_ns != row.stamp.mtime_ns:
                    # Touched and moved, perhaps with its directory: its content tells.
                    if len(content) == DIGEST_BYTES and self._digest(side, path, row) == content:
                        rows[path] = row._replace(content=content)
                    continue
                # A time of whole seconds may be one that a program sets to all files alike.
                if known.mtime_ns % WHOLE_SECOND == 0 and len(content) == DIGEST_BYTES:
                    content = self._digest(side, path, row) or row.content
                elif known.mtime_ns % WHOLE_SECOND == 0 and not self._is_other_side_as(
                    old[0], side, path, row
                ):
                    continue
                rows[path] = row._replace(
                    content=content,
                    mtime_ns=before.mtime_ns,
                    mode=before.mode if known.mode == row.stamp.mode else row.mode,
                )

    def _is_other_side_as(self, old: bytes, side: int, path: bytes, row: Row) -> bool:
        """Whether a file has the content that the other side still has under its old name."""
        there = self._sides[1 - side].rows.get(old)
        if there is None or there.kind != FILE or there.stamp != self._base[old].stamps[1 - side]:
            return False
        return self._digest(side, path, row) == self._digest(1 - side, old, there) is not None


def describe(
    base: dict[bytes, Ancestor],
    sides: tuple[Listing, Listing],
    filters: FilterList,
    *,
    checksum: bool,
    undone: tuple[bool, bool],
) -> Described:
    """Return both trees as a plan takes them. `undone`: sides at which the last run was taken back since."""
    for side in sides:
        side.settle_recent()
    dropped = sum(side.bar_hidden(base, filters) for side in sides)
    for number, taken_back in enumerate(undone):
        if taken_back:
            _drop_undone(base, sides[number], number)
    Contents(base, sides, checksum=checksum).settle()
    top = Node(b"", None)
    for path, known in base.items():
        top.make(path, known)
    return Described(
        top,
        (sides[LEFT].node(), sides[RIGHT].node()),
        (len(sides[LEFT].rows), len(sides[RIGHT].rows)),
        dropped,
    )


def _drop_undone(base: dict[bytes, Ancestor], side: Listing, number: int) -> None:
    """Drop the ancestor's rows that a side is not as any more: an undo is no edit, and nobody repeats it."""
    for path, row in list(base.items()):
        now = side.rows.get(path)
        if now is None or (row.kind != DIRECTORY and now.stamp != row.stamps[number]):
            del base[path]
