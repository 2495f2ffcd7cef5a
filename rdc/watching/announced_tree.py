"""The source's tree as announced to the destination, per directory, and the differences since then."""

from __future__ import annotations

from array import array
from collections import OrderedDict

from rdc.files.base.paths import join
from rdc.lean.records import Record, replace
from rdc.lean.typed import TypeVar
from rdc.model.entries import (
    DEVICES,
    EMPTY_LISTING,
    Kind,
    Listing,
    Metadata,
    PackedInodes,
    PackedListing,
    strings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rdc.tree.manifest import Manifest

S = TypeVar("S")
T = TypeVar("T")

_WIDTH = 8


class InodeStamps(Record):
    """Stamps of one directory: 16 bytes per entry besides its name, which is usually shared with the
    listing."""

    names: bytes
    """Names, each followed by NUL, in the order of the columns below."""
    inodes: bytes
    """Inode numbers, u64."""
    ctimes: bytes
    """Times of the last inode change, i64 nanoseconds."""

    @classmethod
    def of(cls, listing: PackedListing, inodes: PackedInodes) -> InodeStamps:
        return cls(listing.names, inodes.inodes, inodes.ctimes)

    def chosen(self, rows: Sequence[int]) -> InodeStamps:
        """Return the stamps of these rows only; `rows` increases."""
        names = strings(self.names)
        columns = (b"".join([column[8 * row : 8 * row + 8] for row in rows]) for column in self._columns)
        return InodeStamps(b"".join([names[row] + b"\0" for row in rows]), *columns)

    @property
    def _columns(self) -> tuple[bytes, bytes]:
        return self.inodes, self.ctimes

    def rows(self) -> dict[bytes, tuple[bytes, bytes]]:
        """Inode number and ctime by name."""
        pairs = zip(_items(self.inodes), _items(self.ctimes), strict=True)
        return dict(zip(strings(self.names), pairs, strict=True))


def possibly_changed(
    before: PackedListing,
    known: InodeStamps | None,
    now: PackedListing,
    found: InodeStamps,
    renamed: Collection[bytes],
) -> list[bytes]:
    """Return the names of files whose size and mtime are unchanged but whose content may differ.

    Either another file took the name (a swap, or a replacement with the old times), or the file changed and
    its mtime was set back. A new ctime alone proves nothing if mode or owner changed, or if the file came by
    an observed rename (`renamed`), since these also set it. known None: the earlier stamps are unknown. Takes
    no Python step per entry in an unchanged directory.
    """
    if known == found or not before.count:
        return []
    if known is not None and before.names == now.names == known.names == found.names:
        # After most edits most rows have equal stamps; zip skips them quickly.
        rows = _differing(known, found)
        before, now = _rows_of(before, rows), _rows_of(now, rows)
        known, found = known.chosen(rows), found.chosen(rows)
    was = {} if known is None else known.rows()
    earlier = dict(zip(strings(before.names), _columns(before), strict=True))
    names = []
    for (name, stamp), columns in zip(found.rows().items(), _columns(now), strict=True):
        kind, size, mtime, *rights = columns
        old = earlier.get(name)
        if kind != Kind.FILE or not size or old is None or old[:3] != (kind, size, mtime):
            continue
        inode, ctime = was.get(name, (b"", b""))
        explained = name in renamed or list(old[3:]) != rights
        if inode != stamp[0] or (ctime != stamp[1] and not explained):
            names.append(name)
    return names


def _differing(one: InodeStamps, other: InodeStamps) -> list[int]:
    """Return the rows in which two InodeStamps with equal names differ."""
    columns = (array("Q", column) for column in (one.inodes, other.inodes, one.ctimes, other.ctimes))
    pairs = enumerate(zip(*columns, strict=True))
    return [row for row, (inode, now, ctime, then) in pairs if inode != now or ctime != then]


def _rows_of(packed: PackedListing, rows: Sequence[int]) -> PackedListing:
    return packed if len(rows) == packed.count else packed.rows(rows)


def _columns(packed: PackedListing) -> list[tuple[int, ...]]:
    """Kind, size, mtime, mode, uid and gid of each row."""
    listing = packed.unpacked()
    columns = (listing.kinds, listing.sizes, listing.mtimes, listing.modes, listing.uids, listing.gids)
    return list(zip(*columns, strict=True))


def _items(column: bytes) -> list[bytes]:
    return [column[at : at + _WIDTH] for at in range(0, len(column), _WIDTH)]


_EMPTY = EMPTY_LISTING.packed()
_NO_STAMPS = InodeStamps(b"", b"", b"")

OPEN_DIRECTORIES = 8
"""Directories that stay open for single changes."""


class _OpenEntry(Record):
    """One entry of an open directory."""

    kind: int
    size: int
    metadata: Metadata
    stamp: tuple[bytes, bytes] | None
    """Inode number and ctime; None: unknown."""


class _OpenDirectory:
    """A listing in which single files and directories come, go and change. Each change costs the same,
    however many others there are: someone renames all files of a directory of many thousands.

    Symlinks stay as they are.
    """

    def __init__(self, listing: PackedListing, stamps: InodeStamps) -> None:
        """`stamps`: unknown if they have other names than the listing."""
        self._listing = listing
        self._stamps = stamps if stamps.names == listing.names else None
        self._rows = {name: row for row, name in enumerate(strings(listing.names))}
        self._changes: dict[bytes, _OpenEntry | None] = {}
        """None: the entry is gone."""

    @property
    def is_changed(self) -> bool:
        """Return whether it is not as the listing any more."""
        return bool(self._changes)

    def entry(self, name: bytes) -> _OpenEntry | None:
        """Return the entry of this name; None if there is none."""
        if name in self._changes:
            return self._changes[name]
        row = self._rows.get(name)
        if row is None:
            return None
        listing, at = self._listing, slice(_WIDTH * row, _WIDTH * (row + 1))
        stamp = (self._stamps.inodes[at], self._stamps.ctimes[at]) if self._stamps is not None else None
        size = int.from_bytes(listing.sizes[at], "little")
        return _OpenEntry(listing.kinds[row], size, listing.metadata(row), stamp)

    def put(self, name: bytes, entry: _OpenEntry) -> None:
        """Add an entry, or replace the one of this name."""
        self._changes[name] = entry

    def take(self, name: bytes) -> _OpenEntry:
        """Remove an entry, and return it."""
        found = self.entry(name)
        if found is None:
            raise KeyError(name)
        self._changes[name] = None
        return found

    def packed(self) -> tuple[PackedListing, InodeStamps | None]:
        """Return the listing as it is now, and its stamps if all are known."""
        listing, changes = self._listing.unpacked(), self._changes
        new = {name: entry for name, entry in changes.items() if entry is not None}
        names = sorted({*self._rows.keys() - changes.keys(), *new})
        entries = [new.get(name) for name in names]
        rows = [self._rows.get(name, -1) for name in names]

        def column(old: Sequence[T], of: Callable[[_OpenEntry], S]) -> list[S | T]:
            pairs = zip(entries, rows, strict=True)
            return [old[row] if entry is None else of(entry) for entry, row in pairs]

        packed = Listing(
            tuple(names),
            bytes(column(listing.kinds, lambda one: one.kind)),
            array("H", column(listing.modes, lambda one: one.metadata.mode)),
            array("Q", column(listing.sizes, lambda one: one.size)),
            array("q", column(listing.mtimes, lambda one: one.metadata.mtime_ns)),
            array("I", column(listing.uids, lambda one: one.metadata.uid)),
            array("I", column(listing.gids, lambda one: one.metadata.gid)),
            listing.targets,
        ).packed()
        if self._stamps is None:
            return packed, None
        known = list(zip(_items(self._stamps.inodes), _items(self._stamps.ctimes), strict=True))
        stamps = [stamp for stamp in column(known, lambda one: one.stamp) if stamp is not None]
        if len(stamps) < len(names):
            return packed, None
        inodes, ctimes = (b"".join(each) for each in zip(*stamps, strict=True)) if stamps else (b"", b"")
        return packed, InodeStamps(packed.names, inodes, ctimes)


class AnnouncedTree:
    """Directories with their entries in packed columns: 46 bytes per entry besides its name, 900 per
    directory."""

    def __init__(self, manifest: Manifest, stamps: Mapping[bytes, InodeStamps]) -> None:
        """Take over the entries that a comparison of the whole trees listed.

        stamps: of directories at that time or before. Stamps of unlisted directories are dropped.
        """
        self._directories = {
            path: manifest.packed(number) for number, path in enumerate(manifest.directories)
        }
        self._stamps = {
            path: InodeStamps(listing.names, known.inodes, known.ctimes)
            for path, listing in self._directories.items()
            if (known := stamps.get(path)) is not None and known.names == listing.names
        }
        self.unacknowledged: set[bytes] = set()
        """Directories announced in this turn, which the destination has not confirmed."""
        self._open: OrderedDict[bytes, _OpenDirectory] = OrderedDict()
        """Directories with single changes, the one that was used last at the end."""
        self._own: dict[bytes, Metadata] = {}
        """Metadata of the root, which no listing contains."""
        self.entries = len(manifest)
        """Number of entries in the whole tree."""
        self.files = manifest.kinds.count(Kind.FILE)

    def of(self, path: bytes) -> PackedListing:
        self._close(path)
        return self._directories.get(path, _EMPTY)

    def kind(self, path: bytes) -> Kind | None:
        """Return the announced kind of `path`; None if nothing was announced there."""
        found = self.entry(path)
        return None if found is None else found[0]

    def entry(self, path: bytes) -> tuple[Kind, int, Metadata] | None:
        """Return the announced kind, size and metadata of `path`."""
        parent, _, name = path.rpartition(b"/")
        found = self._opened(parent).entry(name)
        if found is None:
            return None
        return Kind(found.kind), 0 if found.kind in DEVICES else found.size, found.metadata

    def stamps_of(self, path: bytes) -> InodeStamps | None:
        """Return the stamps of the entries of the directory `path`; None if unknown."""
        self._close(path)
        return self._stamps.get(path)

    def acknowledge(self) -> None:
        """Note that the turn is complete: the destination has everything announced."""
        self._close_all()
        self.unacknowledged.clear()

    @property
    def stamps(self) -> dict[bytes, InodeStamps]:
        """The stamps of all directories whose announced state the destination has."""
        self._close_all()
        return {path: stamps for path, stamps in self._stamps.items() if path not in self.unacknowledged}

    def put(self, path: bytes, listing: PackedListing, stamps: InodeStamps) -> None:
        """Record a directory's current entries. Removed subdirectories are dropped with their content."""
        before = self._take(path)
        self.unacknowledged.add(path)
        for name in set(_directories(before)) - set(_directories(listing)):
            self.drop(join(path, name))
        self._add(path, listing)
        if listing.count:
            self._stamps[path] = stamps

    def drop(self, path: bytes) -> None:
        """Remove a directory with everything below it."""
        todo = [path]
        while todo:
            at = todo.pop()
            todo += [join(at, name) for name in _directories(self._take(at))]

    def rename(self, old: bytes, new: bytes) -> None:
        """Move a file, or a directory with everything below it, to a path where nothing was announced."""
        parent, _, name = old.rpartition(b"/")
        moved = self._opened(parent).take(name)
        self.unacknowledged.add(parent)
        parent, _, name = new.rpartition(b"/")
        self._opened(parent).put(name, moved)
        self.unacknowledged.add(parent)
        todo = [(old, new)] if moved.kind == Kind.DIRECTORY else []
        while todo:
            before, after = todo.pop()
            self._close(before)
            stamps, listing = self._stamps.get(before), self._take(before)
            self._add(after, listing)
            if stamps is not None:
                self._stamps[after] = stamps
            todo += [(join(before, name), join(after, name)) for name in _directories(listing)]

    def metadata(self, path: bytes) -> Metadata | None:
        """Return a directory's own metadata as announced."""
        if path in self._own:
            return self._own[path]
        found = self.entry(path)
        return None if found is None else found[2]

    def set_metadata(self, path: bytes, metadata: Metadata) -> None:
        """Record a directory's own current metadata."""
        if not path:
            self._own[path] = metadata
            return
        parent, _, name = path.rpartition(b"/")
        directory = self._opened(parent)
        found = directory.entry(name)
        if found is not None and found.metadata != metadata:
            directory.put(name, replace(found, metadata=metadata))

    def _opened(self, path: bytes) -> _OpenDirectory:
        """Return a directory as one that takes single changes. A few stay open."""
        found = self._open.get(path)
        if found is not None:
            self._open.move_to_end(path)
            return found
        if len(self._open) >= OPEN_DIRECTORIES:
            self._close(next(iter(self._open)))
        found = self._open[path] = _OpenDirectory(
            self._directories.get(path, _EMPTY), self._stamps.get(path, _NO_STAMPS)
        )
        return found

    def _close(self, path: bytes) -> None:
        """Pack a directory again, if it is open. Its entries are counted already."""
        found = self._open.pop(path, None)
        if found is None or not found.is_changed:
            return
        listing, stamps = found.packed()
        self._directories.pop(path, None)
        self._stamps.pop(path, None)
        if listing.count:
            self._directories[path] = listing
            if stamps is not None:
                self._stamps[path] = stamps

    def _close_all(self) -> None:
        for path in tuple(self._open):
            self._close(path)

    def _take(self, path: bytes) -> PackedListing:
        self._close(path)
        self._stamps.pop(path, None)
        listing = self._directories.pop(path, _EMPTY)
        self.entries -= len(listing)
        self.files -= listing.kinds.count(Kind.FILE)
        return listing

    def _add(self, path: bytes, listing: PackedListing) -> None:
        self._close(path)
        if listing.count:
            self._directories[path] = listing
            self.entries += len(listing)
            self.files += listing.kinds.count(Kind.FILE)


def difference(
    before: PackedListing, now: PackedListing, stale: Collection[bytes]
) -> tuple[Listing, tuple[bytes, ...]]:
    """Return the entries of `now` that are new, different or named in `stale`, and the names that are
    gone."""
    if before == now and not stale:
        return EMPTY_LISTING, ()
    listing = now.unpacked()
    known = dict(zip(strings(before.names), _rows(before.unpacked()), strict=True))
    rows = [
        row
        for row, (name, columns) in enumerate(zip(listing.names, _rows(listing), strict=True))
        if known.pop(name, None) != columns or name in stale
    ]
    return listing.rows(rows), tuple(sorted(known))


def _rows(listing: Listing) -> Iterator[tuple[int | bytes, ...]]:
    links = listing.links()
    columns = zip(
        listing.kinds,
        listing.modes,
        listing.sizes,
        listing.mtimes,
        listing.uids,
        listing.gids,
        strict=True,
    )
    for row, values in enumerate(columns):
        yield (*values, links.get(row, b""))


def _directories(listing: PackedListing) -> list[bytes]:
    rows = listing.rows_of(Kind.DIRECTORY)
    if not rows:
        return []
    names = strings(listing.names)
    return [names[row] for row in rows]
