"""The source's tree as announced to the destination, per directory, and the differences since then."""

from __future__ import annotations

from array import array

from rdc.files.base.paths import join
from rdc.lean.records import Record
from rdc.model.entries import EMPTY_LISTING, Kind, Listing, Metadata, PackedInodes, PackedListing, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rdc.tree.manifest import Manifest


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
        self._own: dict[bytes, Metadata] = {}
        """Metadata of the root, which no listing contains."""
        self.entries = len(manifest)
        """Number of entries in the whole tree."""
        self.files = manifest.kinds.count(Kind.FILE)

    def of(self, path: bytes) -> PackedListing:
        return self._directories.get(path, _EMPTY)

    def kind(self, path: bytes) -> Kind | None:
        """Return the announced kind of `path`; None if nothing was announced there."""
        found = self.entry(path)
        return None if found is None else found[0]

    def entry(self, path: bytes) -> tuple[Kind, int, Metadata] | None:
        """Return the announced kind, size and metadata of `path`."""
        parent, _, name = path.rpartition(b"/")
        listing = self.of(parent)
        names = strings(listing.names)
        if name not in names:
            return None
        row = names.index(name)
        one = listing.rows([row])
        return Kind(one.kinds[0]), one.total_size, one.unpacked().metadata(0)

    def stamps_of(self, path: bytes) -> InodeStamps | None:
        """Return the stamps of the entries of the directory `path`; None if unknown."""
        return self._stamps.get(path)

    def acknowledge(self) -> None:
        """Note that the turn is complete: the destination has everything announced."""
        self.unacknowledged.clear()

    @property
    def stamps(self) -> dict[bytes, InodeStamps]:
        """The stamps of all directories whose announced state the destination has."""
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
        stamps = self._stamps.get(parent)
        stamp = None if stamps is None else stamps.rows()[name]
        listing = self._take(parent)
        row = strings(listing.names).index(name)
        self._put_aligned(
            parent, listing.rows([other for other in range(len(listing)) if other != row]), stamps
        )
        parent, _, name = new.rpartition(b"/")
        one = listing.rows([row]).unpacked().named((name,))
        stamps = self._stamps.get(parent) if self.of(parent).count else InodeStamps(b"", b"", b"")
        self._put_aligned(parent, _merged(self._take(parent).unpacked(), one).packed(), stamps, {name: stamp})
        todo = [(old, new)]
        while todo:
            before, after = todo.pop()
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
        listing = self.of(parent)
        if name not in strings(listing.names) or self.metadata(path) == metadata:
            return
        row = strings(listing.names).index(name)
        columns = listing.unpacked()
        columns.modes[row] = metadata.mode
        columns.mtimes[row] = metadata.mtime_ns
        columns.uids[row], columns.gids[row] = metadata.uid, metadata.gid
        self._directories[parent] = columns.packed()

    def _put_aligned(
        self,
        path: bytes,
        listing: PackedListing,
        stamps: InodeStamps | None,
        more: Mapping[bytes, tuple[bytes, bytes] | None] | None = None,
    ) -> None:
        """Record a listing with those of `stamps` and `more` that belong to it, if they cover all its
        rows."""
        self.unacknowledged.add(path)
        self._add(path, listing)
        if stamps is None or not listing.count:
            return
        known = {**stamps.rows(), **(more or {})}
        rows = [known.get(name) for name in strings(listing.names)]
        found = [row for row in rows if row is not None]
        if len(found) == len(rows):
            inodes, ctimes = (b"".join(column) for column in zip(*found, strict=True))
            self._stamps[path] = InodeStamps(listing.names, inodes, ctimes)

    def _take(self, path: bytes) -> PackedListing:
        self._stamps.pop(path, None)
        listing = self._directories.pop(path, _EMPTY)
        self.entries -= len(listing)
        self.files -= listing.kinds.count(Kind.FILE)
        return listing

    def _add(self, path: bytes, listing: PackedListing) -> None:
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


def _merged(listing: Listing, one: Listing) -> Listing:
    """Return `listing` plus the one entry of `one`, which is no symlink, so the link targets are
    unchanged."""
    names = listing.names + one.names
    order = sorted(range(len(names)), key=names.__getitem__)
    kinds = listing.kinds + one.kinds

    def column(a: array[int], b: array[int]) -> array[int]:
        both = a + b
        return array(a.typecode, (both[row] for row in order))

    return Listing(
        tuple(names[row] for row in order),
        bytes(kinds[row] for row in order),
        column(listing.modes, one.modes),
        column(listing.sizes, one.sizes),
        column(listing.mtimes, one.mtimes),
        column(listing.uids, one.uids),
        column(listing.gids, one.gids),
        listing.targets,
    )


def _directories(listing: PackedListing) -> list[bytes]:
    rows = listing.rows_of(Kind.DIRECTORY)
    if not rows:
        return []
    names = strings(listing.names)
    return [names[row] for row in rows]
