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

from rdc.errors import ExitCode, FileError, RdcError, StoppedError, printable
from rdc.files.base.metadata import stat_entry
from rdc.files.base.paths import join
from rdc.lean.records import Record
from rdc.model.entries import (
    EMPTY_LISTING,
    NO_INODES,
    Identity,
    PackedInodes,
    PackedListing,
    little_endian_integers,
    strings,
)
from rdc.model.preserved import packed_time, real_time
from rdc.progress import Problem, check_stop
from rdc.tree.walk import Walk, WalkedDirectory
from rdc.uniting.ancestor_file import encode_table, whole_digest
from rdc.uniting.columns import (
    agreed_digest,
    column_part,
    digests_of,
    listed_columns,
    listed_digest,
    next_digests,
    parents,
    replaced,
    rows_of_kind,
    table_of_directories,
    with_parents,
)
from rdc.uniting.file_systems import PLAIN, NamesThatAreOne, lasting_listed, unlike
from rdc.uniting.rows import (
    BARRED,
    DIGEST_BYTES,
    DIRECTORY,
    FILE,
    FUTURE_NS,
    LEFT,
    MODE_BITS,
    NO_STAMP,
    PROCESS_CLOCK,
    RIGHT,
    SYMLINK,
    WHOLE_SECOND,
    Ancestor,
    Clock,
    Doubt,
    Node,
    Row,
    Stamp,
    listed_rows,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from rdc.files.root.root import Root
    from rdc.model.entries import ListedDirectories
    from rdc.model.options import KeepUndo
    from rdc.progress import Event, Reporter, StopSignal
    from rdc.tree.filters import FilterList
    from rdc.uniting.ancestor_file import AgreedAttributes, EncodedAncestor, Head, StoredAncestor
    from rdc.uniting.columns import Table
    from rdc.uniting.file_systems import Kept
    from rdc.uniting.hard_links import Links


_LEFT_LINK = "it is a symlink, and the other side can have none"
_SPECIAL = "it is neither file, directory nor symlink"
_MOUNT = "another file system is mounted there"
_NO_ENTRIES = EMPTY_LISTING.packed()


class Described(Record):
    """Both trees and their ancestor, ready for a plan."""

    base: Node
    views: tuple[Node, Node]
    entries: tuple[int, int]
    """Entries that take part, at each side."""
    dropped: int
    """Rows that the ancestor has and that take no part any more."""


class Listing:
    """One side's tree by path, while it is described."""

    def __init__(
        self, root: Root, filters: FilterList, reporter: Reporter, clock: Clock = PROCESS_CLOCK
    ) -> None:
        """List the tree. `clock`: of its file system. Raises RdcError if its top cannot be listed."""
        self.root = root
        self._clock = clock
        self._filters = filters
        self._reporter = reporter
        self._directories: dict[bytes, WalkedDirectory] = {}
        self._digests: dict[bytes, bytes] | None = None
        self._rows: dict[bytes, Row] = {}
        self._loaded: set[bytes] = set()
        self._ties: dict[bytes, int] | None = None
        self._began = 0
        self.recent: list[bytes] = []
        """Paths that changed so shortly before that a further change may leave no trace."""
        self._barred: dict[bytes, str] = {}
        self._temporaries: list[tuple[bytes, list[bytes]]] = []
        self.device = os.fstat(root.fileno()).st_dev
        self._list()

    def _report(self, event: Event, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._barred[event.path_bytes] = "it cannot be read"
        self._reporter(event)

    def report(self, event: Event, /) -> None:
        """Report what is not about the listing itself."""
        self._reporter(event)

    def bar(self, path: bytes, reason: str) -> None:
        """Have an entry, and all below it, take no part."""
        self._barred[path] = reason

    def leave_links(self) -> None:
        """Have symlinks take no part, as the other side cannot have any. No rows were made so far."""
        for path, listing, _ in self._directories.values():
            if SYMLINK in listing.kinds:
                names = strings(listing.names)
                for row in rows_of_kind(listing.kinds, SYMLINK):
                    self._barred[join(path, names[row])] = _LEFT_LINK

    def _special(self, path: bytes) -> None:
        self._barred[path] = _SPECIAL

    def left_out(self) -> list[str]:
        """Return a line for each kind of entries that take no part, although nothing is wrong with them."""
        found = []
        for reason, one, many, why in (
            (_LEFT_LINK, "symlink takes", "symlinks take", ": the other side can have none"),
            (_SPECIAL, "special file takes", "special files take", ""),
            (_MOUNT, "mount or subvolume takes", "mounts or subvolumes take", ""),
        ):
            paths = [path for path, barred in self._barred.items() if barred == reason]
            if paths:
                what = f"1 {one}" if len(paths) == 1 else f"{len(paths):,} {many}"
                found.append(f"{what} no part, such as {printable(join(self.root.label, min(paths)))}{why}")
        return found

    def _list(self) -> None:
        self._began = self._clock.now(time.time_ns()) - self._clock.tick_ns
        walk = Walk(
            self.root,
            self._filters,
            self._report,
            on_temporaries=self._note_temporaries,
            on_special=self._special,
            device=self.device,
        )
        stable = self.root.stable
        same: dict[bytes, bytes] = {}
        for listed in walk.many():
            for directory in _held(lasting_listed(listed, stable), same):
                self._directories[directory.path] = directory
        here = self.device.to_bytes(8, "little")
        for directory in self._directories.values():
            devices = directory.inodes.devices
            if devices != here * (len(devices) // 8):
                for name, device in zip(
                    strings(directory.listing.names), little_endian_integers("Q", devices), strict=True
                ):
                    if device != self.device:
                        self._barred[join(directory.path, name)] = _MOUNT
        self._add_empty()

    def _add_empty(self) -> None:
        """Add the directories without entries, of which a walk says nothing but their rows."""
        found = [b""]
        for path, listing, _ in self._directories.values():
            if DIRECTORY in listing.kinds:
                names = strings(listing.names)
                found += [join(path, names[row]) for row in rows_of_kind(listing.kinds, DIRECTORY)]
        for path in found:
            if path not in self._directories and path not in self._barred:
                self._directories[path] = WalkedDirectory(path, _NO_ENTRIES, NO_INODES)

    @property
    def digests(self) -> dict[bytes, bytes]:
        """The digest of each directory as this side lists it. Costs no step for each entry."""
        if self._digests is None:
            self._digests = {path: listed_digest(each) for path, each in self._directories.items()}
        return self._digests

    def is_as(self, ancestor: StoredAncestor) -> bool:
        """Return whether the side is as its own stamps say."""
        if self._barred or not ancestor.head.listing:
            return False
        return whole_digest(self.digests.values()) == ancestor.head.listing

    def agreed_digests(self) -> dict[bytes, bytes]:
        """Return the digest of each directory as two sides without an ancestor compare it."""
        return {path: agreed_digest(each) for path, each in self._directories.items()}

    def in_doubt(self, known: Iterable[tuple[bytes, bytes]], own: Mapping[bytes, bytes]) -> set[bytes]:
        """Return the directories that differ between two descriptions or are in one of them only, and those
        of which a description says too little. `known`: has each path once, with the digest."""
        found, unknown = set[bytes](), set(own)
        for path, digest in known:
            unknown.discard(path)
            if own.get(path) != digest:
                found.add(path)
        found |= unknown
        found.update(parents(self._barred))
        found.update(self._barred)
        return found

    def changing(self) -> set[bytes]:
        """Return the directories with an entry that changed so recently that a further change may leave no
        trace."""
        return {
            path
            for path, each in self._directories.items()
            if max(little_endian_integers("q", each.inodes.ctimes), default=0) > self._began
        }

    @property
    def directories(self) -> Mapping[bytes, WalkedDirectory]:
        """All directories that could be listed."""
        return self._directories

    @property
    def count(self) -> int:
        """The number of entries that take part."""
        unloaded = self._directories.keys() - self._loaded
        return len(self._rows) + sum(self._directories[path].listing.count for path in unloaded)

    @property
    def rows(self) -> dict[bytes, Row]:
        """The entries that take part in the directories that were loaded, by path."""
        return self._rows

    def load(self, directories: Iterable[bytes]) -> dict[bytes, Row]:
        """Make the rows of directories. Return those that were not made before, parents first."""
        found: dict[bytes, Row] = {}
        for path in sorted(set(directories) - self._loaded):
            if path in self._directories:
                self._loaded.add(path)
                self._add(found, self._directories[path])
        self._rows.update(found)
        return found

    def let_columns_go(self) -> None:
        """Drop what a large tree takes in memory, when a run is over but for its own memory. `rows` stay."""
        self._directories, self._digests = {}, None

    def linked(self) -> list[bytes]:
        """Return the files with several names in the directories that were not loaded."""
        found: list[bytes] = []
        for path in self._directories.keys() - self._loaded:
            _, listing, inodes = self._directories[path]
            if inodes.links != b"\1\0\0\0" * listing.count:
                links = little_endian_integers("I", inodes.links)
                rows = [row for row, kind in enumerate(listing.kinds) if kind == FILE and links[row] > 1]
                names = strings(listing.names) if rows else []
                found += [join(path, names[row]) for row in rows]
        return found

    def ties(self) -> dict[bytes, int]:
        """Return the names of files that take part with several names, and the number of each file.

        A file that changed while its names were listed takes no part: they would tell different things.
        """
        if self._ties is not None:
            return self._ties
        from rdc.uniting.ties import grouped

        files: dict[int, dict[bytes, object]] = {}
        for path, listing, inodes in self._directories.values():
            if inodes.links == b"\1\0\0\0" * listing.count:
                continue
            links = little_endian_integers("I", inodes.links)
            rows = [row for row, kind in enumerate(listing.kinds) if kind == FILE and links[row] > 1]
            names = strings(listing.names) if rows else []
            numbers = little_endian_integers("Q", inodes.inodes)
            stamps = listed_columns(self._directories[path])
            for row in rows:
                below = join(path, names[row])
                if below not in self._barred:
                    found = tuple([column_part(column, at, row) for at, column in enumerate(stamps)])
                    files.setdefault(numbers[row], {})[below] = found
        for number, stamps_of in list(files.items()):
            if len(set(stamps_of.values())) > 1:
                self._barred.update(dict.fromkeys(stamps_of, "it has just changed"))
                del files[number]
        self._ties = grouped([found.keys() for found in files.values()])
        return self._ties

    def rest(self, agreed: Set[bytes]) -> Table:
        """Return the entries of all directories that were not loaded, as columns. Their parents were.

        `agreed`: the directories of which both sides agree that they are there. Below a conflict others may
        be equal, too, and have no directory that they could be in.
        """
        unloaded = self._directories.keys() - self._loaded
        tops = sorted(
            path for path in unloaded if path.rpartition(b"/")[0] in self._loaded and path in agreed
        )
        return table_of_directories(self._directories, tops)

    def _add(self, rows: dict[bytes, Row], directory: WalkedDirectory) -> None:
        hints = self.root.stable.inode
        for each in listed_rows(directory, self.device):
            path, kind = join(directory.path, each.name), each.kind
            if kind == SYMLINK and path in self._barred:
                continue
            size = each.size if kind == FILE else 0
            mode = each.mode if kind != SYMLINK else 0
            stamp = Stamp(size, mode, each.mtime_ns, each.inode, each.ctime_ns)
            if self._began < each.ctime_ns <= self._began + FUTURE_NS:
                self.recent.append(path)
            proves = hints and kind != SYMLINK and (kind == DIRECTORY or each.links == 1)
            rows[path] = Row(
                kind,
                each.target,
                mode & MODE_BITS,
                each.mtime_ns,
                each.inode if proves else 0,
                Identity(self.device, each.inode, size, each.mtime_ns, each.ctime_ns, kind),
                stamp,
                Doubt.NONE,
                kind == FILE and each.links > 1,
                b"",
            )

    def _note_temporaries(self, directory: bytes, names: list[bytes]) -> None:
        self._temporaries.append((directory, names))

    def sweep(self, spared: Set[bytes] = frozenset()) -> None:
        """Remove the temporaries that interrupted runs left, before any directory is renamed or removed.

        `spared`: directories into which files come from another machine. What is left of such a file may
        serve for it, and the turn that brings the files removes the rest.
        """
        from rdc.files.replace.commit_group import sweep_temporaries

        for directory, names in self._temporaries:
            if directory not in spared:
                with suppress(FileError):  # a user removed the directory
                    sweep_temporaries(self.root, directory, names)

    def settle_recent(self) -> None:
        """Look once more at entries that changed just now, so that a later change shows in their stamps."""
        if not (self.rows and self.recent):
            return
        clock, tick = self._clock, self._clock.tick_ns
        latest = max(real_time(self.rows[path].stamp.ctime_ns) for path in self.recent)
        time.sleep(min(max(latest + tick - clock.now(time.time_ns()), tick), 2 * tick) / 1e9)
        for path in self.recent:
            row = self.rows[path]
            if row.kind == DIRECTORY:
                continue
            with suppress(RdcError, OSError):
                found = self.root.perform(path, "look at it", stat_entry, reading=True)
                settled = clock.now(time.time_ns()) - tick
                if settled < found.st_ctime_ns <= settled + FUTURE_NS:
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
        names = NamesThatAreOne()
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
                other = names.listed_as(self.root, path)
                if other is None:
                    self._barred[path] = "an entry that takes no part is there"
                elif join(parent, other) in base or join(parent, other) not in self.rows:
                    # Two entries were agreed on, and this file system has one of them alone by now.
                    text = "its file system takes this name and '{}' for one; rename one of them"
                    self._barred[path] = text.format(unlike(other, path.rpartition(b"/")[2]))
                # Else it is the entry of that new name, and none of this one is there.
        return len(dropped)

    @property
    def barred(self) -> Mapping[bytes, str]:
        """The entries that take no part, and why."""
        return self._barred

    @property
    def temporaries(self) -> Sequence[tuple[bytes, list[bytes]]]:
        """Return what interrupted runs left, by directory."""
        return self._temporaries

    def node(self) -> Node:
        """Return the tree. Barred entries have the reason as their content."""
        return node_of(self.rows, self._barred)


def _held(listed: ListedDirectories, same: dict[bytes, bytes]) -> Iterator[WalkedDirectory]:
    """Yield the directories with entries as they are held to the end of a run: without the columns that no
    two-way sync has, and with a column of `same` in place of an equal one."""
    # long because a hundred thousand directories come here, and a call for each column costs more than it
    rows, ids, once = listed.listing, listed.inodes, same.setdefault
    ends = [*listed.firsts[1:], rows.count]
    # Before the names of the next directory is its path, with a NUL on either side.
    texts = [at - len(path) - 2 for at, path in zip(listed.texts, listed.paths, strict=True)]
    texts = [*texts[1:], len(listed.text)]
    links = [*listed.links[1:], len(rows.targets)]
    for number, path in enumerate(listed.paths):
        first, end = listed.firsts[number], ends[number]
        kinds, modes, sizes = (
            rows.kinds[first:end],
            rows.modes[2 * first : 2 * end],
            rows.sizes[8 * first : 8 * end],
        )
        devices, counts = ids.devices[8 * first : 8 * end], ids.links[4 * first : 4 * end]
        yield WalkedDirectory(
            path,
            PackedListing(
                end - first,
                listed.text[listed.texts[number] : texts[number]],
                once(kinds, kinds),
                once(modes, modes),
                once(sizes, sizes),
                rows.mtimes[8 * first : 8 * end],
                b"",
                b"",
                rows.targets[listed.links[number] : links[number]],
            ),
            PackedInodes(
                once(devices, devices),
                ids.inodes[8 * first : 8 * end],
                once(counts, counts),
                b"",
                ids.ctimes[8 * first : 8 * end],
            ),
        )


def node_of(rows: Mapping[bytes, Row], barred: Mapping[bytes, str]) -> Node:
    """Return a tree of rows, which come after those of their directories. Barred entries have the reason as
    their content."""
    top = Node(b"", None)
    nodes = {b"": top}
    for path, row in rows.items():
        parent, _, name = path.rpartition(b"/")
        above = nodes[parent]
        node = above.kids[name] = Node(name, above, row)
        if row.kind == DIRECTORY:
            nodes[path] = node
    for path, reason in barred.items():
        parent, _, name = path.rpartition(b"/")
        if path and parent in nodes:
            node = nodes[parent].kids[name] = Node(name, nodes[parent])
            node.row = Row(BARRED, reason.encode(), 0, 0, 0, None, NO_STAMP, Doubt.NONE, False, b"")
    return top


class OwnContents:
    """Tells what one side changed since its own ancestor, from its stamps, and reads what they leave open.

    Files of both sides are compared later, once renames are taken (rdc.uniting.plan.Undecided).
    """

    def __init__(
        self,
        base: dict[bytes, Ancestor],
        side: Listing,
        number: int,
        *,
        checksum: bool,
        kept: Kept = PLAIN,
        retied: Set[bytes] = frozenset(),
    ) -> None:
        """`retied`: files that have other names than in the ancestor."""
        self._kept = kept
        self._retied = retied
        self._base = base
        self._side = side
        self._number = number
        self._checksum = checksum

    def settle(self) -> None:
        """Give each file its content, and each unchanged field the ancestor's value."""
        self.settle_by_path(self._side.rows)
        self._settle_renamed()

    def settle_by_path(self, some: Mapping[bytes, Row]) -> None:
        """Give these entries what the ancestor says of their paths."""
        rows = self._side.rows
        for path, row in list(some.items()):
            base = self._base.get(path)
            if base is not None and base.kind == row.kind:
                rows[path] = self._since(path, base, row)
            elif row.kind == FILE:
                rows[path] = row._replace(content=self._new(row))

    def _new(self, row: Row) -> bytes:
        """Return what stands for the content of a file without an ancestor: its size and time, unless it is
        to be read."""
        if self._checksum or not self._kept.timed:
            return self._changed(row)
        return b"new, of %d bytes at %d" % (row.stamp.size, self._kept.granularity.of(row.mtime_ns))

    def _changed(self, row: Row) -> bytes:
        """Return a content that equals no other one."""
        return b"changed, at side %d, %d %d" % (self._number, row.stamp.inode, row.stamp.ctime_ns)

    def _since(self, path: bytes, base: Ancestor, row: Row) -> Row:
        before, now = base.stamps[self._number], row.stamp
        if before.mode == now.mode:
            row = row._replace(mode=base.mode)
        if row.kind != FILE:
            return row
        timed = before.mtime_ns == now.mtime_ns
        if timed:
            row = row._replace(mtime_ns=base.mtime_ns)
        if before == now and before.ctime_ns:
            return row._replace(content=base.content)
        if before.size == now.size and len(base.content) == DIGEST_BYTES:
            return row._replace(content=digest_of(self._side, path, row) or self._changed(row))
        others = before.mode != now.mode or base.attributes not in (None, row.attributes)
        others |= path in self._retied
        if timed and others and (before.size, before.inode) == (now.size, now.inode):
            # The new permissions, extended attributes or other names explain the new change time.
            return row._replace(content=base.content, doubt=Doubt.UNLESS_DISPROVED)
        return row._replace(content=self._changed(row))

    def _settle_renamed(self) -> None:
        """Give files that were renamed the content that the ancestor knows under their old names."""
        number = self._number
        old: dict[int, Ancestor] = {}
        for base in self._base.values():
            if base.kind == FILE and base.stamps[number].inode:
                old[base.stamps[number].inode] = base
        rows = self._side.rows
        for path, row in rows.items():
            if row.kind == FILE and row.inode and row.inode in old:
                # Several names may have had the file. One that still has it was not renamed.
                here = self._base.get(path)
                if here is None or (here.kind, here.stamps[number].inode) != (FILE, row.inode):
                    rows[path] = self._renamed(path, old[row.inode], row)
        if self._side.root.stable.inode:
            self._settle_moved_along()

    def _settle_moved_along(self) -> None:
        """Give files in renamed directories what the ancestor says of them by the directory's old path, where
        nothing else tells their content: files with several names, and those that were replaced."""
        number, rows = self._number, self._side.rows
        old = {base.stamps[number].inode: path for path, base in self._base.items() if base.kind == DIRECTORY}
        moved = {
            path: was
            for path, row in rows.items()
            if row.kind == DIRECTORY and (was := old.get(row.stamp.inode, path)) != path
        }
        for path, row in rows.items() if moved else ():
            above, _, name = path.rpartition(b"/")
            if (
                row.kind != FILE
                or above not in moved
                or row.content not in (self._new(row), self._changed(row))
            ):
                continue
            base = self._base.get(join(moved[above], name))
            if base is None or base.kind != FILE:
                continue
            if row.stamp.inode != base.stamps[number].inode:
                listed = row._replace(mode=row.stamp.mode & MODE_BITS, mtime_ns=row.stamp.mtime_ns)
                found = self._since(path, base, listed)
                if found.content != self._changed(row):
                    rows[path] = found
            elif not row.inode:
                rows[path] = self._renamed(path, base, row)

    def _renamed(self, path: bytes, base: Ancestor, row: Row) -> Row:
        known, now = base.stamps[self._number], row.stamp
        has_digest = len(base.content) == DIGEST_BYTES
        if known.size != now.size:
            return row
        if known.mtime_ns != now.mtime_ns:
            # Touched and moved, perhaps with its directory: its content tells.
            if has_digest and digest_of(self._side, path, row) == base.content:
                return row._replace(content=base.content)
            return row
        doubt, content = Doubt.NONE, base.content
        if known != now or not known.ctime_ns:
            # Its own rename gave it a new change time, which hides an edit that kept size and time.
            if has_digest:
                content = digest_of(self._side, path, row) or row.content
            elif known.mtime_ns % WHOLE_SECOND == 0 or not known.ctime_ns:
                # Such a time may be one that a program sets to all files alike. Where the change time is
                # unknown, the content that is known may never have been this file's.
                doubt = Doubt.UNTIL_PROVED
            else:
                doubt = Doubt.UNLESS_DISPROVED
        mode = base.mode if known.mode == now.mode else row.mode
        return row._replace(content=content, mtime_ns=base.mtime_ns, mode=mode, doubt=doubt)


def text_of(root: Root, path: bytes, most: int) -> bytes | None:
    """Return the content of a file; None if it is longer than `most`, cannot be read, or changes
    meanwhile."""
    try:
        with root.open_read(path) as source:
            if source.size > most:
                return None
            data = b"".join([bytes(span) for span in source.spans()])
            source.check_unchanged()
            return data
    except RdcError:
        return None


def digest_of(side: Listing, path: bytes, row: Row, stop: StopSignal | None = None) -> bytes | None:
    """Return the digest of a file as it was listed; None if it cannot be read, or is not that file any
    more. Raises StoppedError, also within a long file."""
    try:
        with side.root.open_read(path) as source:
            state = blake3()
            for span in source.spans():
                check_stop(stop)
                state.update(span)
            source.check_unchanged()
            found = os.fstat(source.fileno())
    except StoppedError:
        raise
    except RdcError:
        return None
    if found.st_size != row.stamp.size or row.stamp.inode not in (0, found.st_ino):
        return None
    if packed_time(found.st_mtime_ns) != row.stamp.mtime_ns:
        return None
    return state.digest(DIGEST_BYTES)


def in_doubt(
    sides: tuple[Listing, Listing],
    ancestors: tuple[StoredAncestor, StoredAncestor] | None,
    *,
    everything: bool,
) -> set[bytes]:
    """Return the directories of which a plan needs the entries, with all above them. The entries of all other
    ones are as the ancestor has them at both sides; without an ancestor they are the same at both.

    `everything`: what the sides remember is not enough to leave any out.
    """
    if ancestors is None and not everything:
        one, other = (side.agreed_digests() for side in sides)
        found = sides[LEFT].in_doubt(other.items(), one) | sides[RIGHT].in_doubt(one.items(), other)
        return with_parents(found | sides[LEFT].changing() | sides[RIGHT].changing())
    found = set()
    for side, ancestor in zip(sides, ancestors or (None, None), strict=True):
        listed = ancestor.listed() if ancestor is not None else None
        if everything or listed is None:
            found |= side.directories.keys() | side.in_doubt((), {})
            found |= {b"", *ancestor.table.directories} if ancestor is not None else set()
        else:
            found |= side.in_doubt(listed, side.digests)
    return with_parents(found)


def encode_next(
    head: Head,
    added: Table,
    loaded: Set[bytes],
    ancestor: StoredAncestor | None,
    replaced_rows: Mapping[bytes, int],
    side: Listing,
    attributes: AgreedAttributes | None = None,
    ties: Mapping[bytes, int] | None = None,
) -> EncodedAncestor:
    """Return the next ancestor of a side: `added` in place of the rows in the directories `loaded`.

    `replaced_rows`: the numbers of these rows in `ancestor`. Without one the rest is as the side lists it.
    The side lets its own columns go. `attributes`, `ties`: of all rows, where they take part.
    """
    before: Iterable[tuple[bytes, bytes]]
    if ancestor is not None:
        side.let_columns_go()
        table = replaced(ancestor.table, replaced_rows.values(), added)
        before = ancestor.listed() or ()
    else:
        table = replaced(side.rest(frozenset(added.directories)), (), added)
        before = side.digests.items()
    rest = {path: digest for path, digest in before if path not in loaded}
    digests = b"".join(next_digests(table, digests_of(added), rest))
    # A single path of the side that is still held keeps the memory around it from being given back.
    del before, rest
    side.let_columns_go()
    return encode_table(head, table, digests, attributes, ties)


def describe(
    base: dict[bytes, Ancestor],
    sides: tuple[Listing, Listing],
    filters: FilterList,
    *,
    checksum: bool,
    undone: tuple[bool, bool],
    kept: Kept = PLAIN,
    links: Links | None = None,
) -> Described:
    """Return both trees as a plan takes them. `undone`: sides at which the last run was taken back since.
    `kept`: what both file systems keep. `links`: where hard links take part."""
    for side in sides:
        side.settle_recent()
    dropped = sum(side.bar_hidden(base, filters) for side in sides)
    for number, taken_back in enumerate(undone):
        if taken_back:
            drop_undone(base, sides[number], number)
        retied = links.retied(number) if links is not None else frozenset()
        own = OwnContents(base, sides[number], number, checksum=checksum, kept=kept, retied=retied)
        own.settle()
    top = Node(b"", None)
    for path, known in base.items():
        top.make(path, known)
    return Described(
        top,
        (sides[LEFT].node(), sides[RIGHT].node()),
        (sides[LEFT].count, sides[RIGHT].count),
        dropped,
    )


def drop_undone(base: dict[bytes, Ancestor], side: Listing, number: int) -> None:
    """Drop the ancestor's rows that a side is not as any more: an undo is no edit, and nobody repeats it."""
    for path, row in list(base.items()):
        now = side.rows.get(path)
        if (
            now is None
            or (row.kind != DIRECTORY and now.stamp != row.stamps[number])
            or row.attributes not in (None, now.attributes)  # which no stamp of a directory shows
        ):
            del base[path]


def was_undone(root: Root, ancestor: StoredAncestor | None) -> bool:
    """Return whether what the last run changed at a side was taken back by rdc undo since."""
    if ancestor is None or not ancestor.head.undo:
        return False
    from rdc.undoing.undo import is_taken_back

    return is_taken_back(root, ancestor.head.undo)


def last_undo(root: Root, keep: KeepUndo | None) -> int:
    """Return the number of the record that a run left at a side for an undo; 0 for none."""
    if keep is None:
        return 0
    from rdc.undoing.undo import last_number

    return last_number(root)
