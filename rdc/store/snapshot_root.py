"""SnapshotRoot: a snapshot of a store as the tree that a sync or a check reads.

Listings come from the tree of the snapshot and contents from its chunks, so restoring is a sync like any
other: what DST has already is not read. Nothing is written through it, and no link is followed.
"""

from __future__ import annotations

import os
from array import array
from collections import OrderedDict
from itertools import islice
from struct import Struct

from blake3 import blake3

from rdc.errors import FileChangedError, FileError, UsageError, printable
from rdc.files.base.paths import changed, check_path, join
from rdc.files.base.store_guard import head_of
from rdc.files.root.root import Root
from rdc.files.root.source_file import ContentFile, SourceFile
from rdc.lean.records import Record, replace
from rdc.lean.typed import TypeVar
from rdc.limits import DIRECTORY_BYTES
from rdc.model.entries import (
    NODES,
    Identity,
    Kind,
    Listed,
    Metadata,
    PackedInodes,
    PackedListing,
    little_endian,
    little_endian_integers,
    strings,
)
from rdc.model.preserved import PLAIN, AttributeKinds, unpack_attributes
from rdc.store.directory import split_keys
from rdc.store.pack_file import damaged
from rdc.store.place import PackStore, read_head
from rdc.store.reader import StoreReader
from rdc.store.snapshot_tree import CACHED_ROWS, SnapshotTree, StoredStream
from rdc.store.snapshots import chosen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.files.depth import Looking
    from rdc.files.root.policies import ReadPolicy
    from rdc.model.preserved import Attributes, FileSystemFacts
    from rdc.store.snapshots import ListedSnapshot
    from rdc.store.tree_rows import DirectoryRows, FileRef

T = TypeVar("T")

DEVICE = (1 << 63) + 0x52D
"""The device number of every entry of a snapshot. No file system has it."""

_ALL_LINKS = (1 << 32) - 1
"""The link count of a file with several names in a snapshot: how many is not known before all are met."""

CACHED_DIRECTORIES = 512
"""Most directories whose rows stay known by name, with CACHED_ROWS rows in total."""


_NAMED = Struct("<QB")
"""The part of a content's name besides its keys: its size and their level."""


class _Shown(Record):
    """A directory of a snapshot, and its rows by name."""

    rows: DirectoryRows
    numbers: dict[bytes, int]
    files: dict[int, int]
    """The number in `rows.files` of each row with content."""
    first: int
    """Makes up the inode number of a row with one name: this and the row's number."""


class SnapshotRoot(Root):
    """A snapshot, or a directory of one. For reading only."""

    def __init__(self, store: PackStore, tree: SnapshotTree, top: bytes, label: bytes) -> None:
        """Take over `store` and what reads it. `top`: the path of the directory below the snapshot's top."""
        super().__init__(os.dup(store.fileno()), label)
        self._store = store
        self._tree = tree
        self._top = top
        self._shown: OrderedDict[bytes, _Shown] = OrderedDict()
        self._shown_rows = 0
        self._met = 0
        """Rows of all directories that were shown."""
        self.given = _Given(self)

    def having(self, reads: ReadPolicy | None = None, writes: object = None) -> SnapshotRoot:
        """Return the snapshot with another ReadPolicy. Raises UsageError for one that needs files."""
        if reads is not None and (reads.followed is not None or reads.fakes):
            what = "--fake-super" if reads.fakes else "an option that follows links"
            raise UsageError(f"{printable(self.label)}: a snapshot cannot be read with {what}; leave it out")
        other = super().having(reads)
        other.given = _Given(other)
        return other

    def release(self) -> None:
        super().release()
        self._tree.reader.close()
        self._store.close()

    @property
    def lists_ahead(self) -> bool:
        """False: no calls wait that threads could share."""
        return False

    @property
    def has_mount_points(self) -> bool:
        """Return whether directories without a record are those that a put with -x did not enter. It had no
        problems then, so there are none that it could not read."""
        return not self._tree.snapshot.problems

    def is_mount_point(self, path: bytes) -> bool:
        inner = join(self._top, path) if path else self._top
        return self.has_mount_points and inner not in self._tree

    # Directories.

    def directory_at(self, path: bytes) -> _Shown:
        """Return the directory at a path. Raises FileError if there is none, or it is damaged."""
        known = self._shown.get(path)
        if known is not None:
            self._shown.move_to_end(path)
            return known
        inner = join(self._top, path) if path else self._top
        try:
            rows = self._tree.rows(inner)
        except FileError as error:
            raise self._of_entry(path, error) from error
        if rows is None:
            raise self.refused(
                path,
                "list the directory",
                expected="a directory that could be read when the snapshot was made",
                found="none",
                advice="restore the others; what DST has there stays",
            )
        names = {name: row for row, name in enumerate(strings(rows.listing.names))}
        found = self._shown[path] = _Shown(rows, names, rows.file_numbers(), self._met)
        self._met += len(names)
        self._shown_rows += len(names)
        while len(self._shown) > 1 and (
            len(self._shown) > CACHED_DIRECTORIES or self._shown_rows > CACHED_ROWS
        ):
            self._shown_rows -= len(self._shown.popitem(last=False)[1].numbers)
        return found

    def list_unviewed(
        self, path: bytes, *, limit: int = DIRECTORY_BYTES, looking: Looking | None = None
    ) -> Listed:
        shown = self.directory_at(path)
        rows, listing = shown.rows, shown.rows.listing
        count = listing.count
        groups = little_endian_integers("I", rows.groups) if rows.groups else array("I", bytes(4 * count))
        inodes = [_inode(group, shown.first + row) for row, group in enumerate(groups)]
        packed = PackedInodes(
            DEVICE.to_bytes(8, "little") * count,
            little_endian(array("Q", inodes)),
            little_endian(array("I", [_ALL_LINKS if group else 1 for group in groups])),
            listing.sizes,
            bytes(8 * count),
        )
        return Listed(listing, packed)

    def restated(self, path: bytes, listed: Listed) -> Listed:
        """Show special files that are not wanted as SPECIAL, and the rest as the policy asks."""
        from rdc.files.root.listing_view import as_policy_says

        listing, reads = listed.listing, self.reads
        hidden = NODES - reads.nodes
        if not hidden.isdisjoint(listing.kinds):
            kinds, sizes = bytearray(listing.kinds), little_endian_integers("Q", listing.sizes)
            for row, kind in enumerate(listing.kinds):
                if kind in hidden:
                    kinds[row], sizes[row] = Kind.SPECIAL, 0
            listing = replace(listing, kinds=bytes(kinds), sizes=little_endian(sizes))
        listed = replace(listed, listing=listing)
        return as_policy_says(super().having(replace(reads, nodes=frozenset())), path, listed)

    # Single entries.

    def _row(self, path: bytes) -> tuple[_Shown, int] | None:
        """Return the directory of an entry and its row in it; None if nothing is there."""
        check_path(path)
        above, _, name = path.rpartition(b"/")
        if (join(self._top, above) if above else self._top) not in self._tree:
            return None
        shown = self.directory_at(above)
        row = shown.numbers.get(name)
        return None if row is None else (shown, row)

    def _existing(self, path: bytes) -> tuple[_Shown, int]:
        found = self._row(path)
        if found is None:
            raise FileChangedError(path, f"{printable(self.shown(path))}: the snapshot has no such entry")
        return found

    def kind(self, path: bytes) -> Kind | None:
        if not path:
            return Kind.DIRECTORY
        found = self._row(path)
        if found is None:
            return None
        kind = Kind(found[0].rows.listing.kinds[found[1]])
        return Kind.SPECIAL if kind in NODES - self.reads.nodes else kind

    def identity(self, path: bytes) -> Identity:
        if not path:
            return Identity(DEVICE, 0, 0, self.metadata(b"").mtime_ns, 0, Kind.DIRECTORY)
        shown, row = self._existing(path)
        listing, group = shown.rows.listing, shown.rows.group_of(row)
        at = slice(8 * row, 8 * row + 8)
        kind = listing.kinds[row]
        size = int.from_bytes(listing.sizes[at], "little") if kind == Kind.FILE else 0
        mtime = int.from_bytes(listing.mtimes[at], "little", signed=True)
        return Identity(DEVICE, _inode(group, shown.first + row), size, mtime, 0, min(kind, Kind.SPECIAL))

    def link_count(self, path: bytes) -> int:
        shown, row = self._existing(path)
        return _ALL_LINKS if shown.rows.group_of(row) else 1

    def metadata(self, path: bytes) -> Metadata:
        if not path and not self._top:
            found, kind = self._tree.snapshot.top, Kind.DIRECTORY
        else:
            shown, row = self._existing(path) if path else self._own_row()
            listing = shown.rows.listing
            found, kind = listing.metadata(row), Kind(listing.kinds[row])
        return replace(found, mtime_ns=0) if kind in self.reads.untimed else found

    def _own_row(self) -> tuple[_Shown, int]:
        """Return the row of the directory that this shows in the one above it."""
        above, _, name = self._top.rpartition(b"/")
        outer = self._tree.rows(above)
        row = -1 if outer is None else strings(outer.listing.names).index(name)
        if outer is None or row < 0:
            raise FileError(b"", f"{printable(self.label)}: the snapshot has no such directory")
        return _Shown(outer, {}, {}, 0), row

    def open_read(self, path: bytes) -> SourceFile:
        shown, row = self._existing(path)
        if shown.rows.listing.kinds[row] != Kind.FILE:
            raise changed(path, self.shown(path), "a regular file", "another entry")
        number = shown.files.get(row)
        file = SnapshotFile(self, path, None if number is None else shown.rows.files[number])
        file.rate = self.reads.rate
        return file

    def stream_of(self, path: bytes, ref: FileRef) -> StoredStream:
        """Return the content of a file. Raises FileError."""
        try:
            return StoredStream(self._tree.reader, ref.content)
        except FileError as error:
            raise self._of_entry(path, error) from error

    def content_of(self, shown: _Shown, name: bytes) -> bytes:
        """Return the content of a small file. Raises FileError, and KeyError for a name without a file."""
        row = shown.numbers[name]
        number = shown.files.get(row)
        if number is None:
            if shown.rows.listing.kinds[row] != Kind.FILE:
                raise KeyError(name)
            return b""
        ref, reader = shown.rows.files[number].content, self._tree.reader
        parts = [reader.chunk(key) for key in split_keys(reader.expand(ref))]
        content = parts[0] if len(parts) == 1 else b"".join(parts)
        if len(content) != ref.size:
            raise damaged(self.label, f"a stream of {ref.size} bytes", f"{len(content)}")
        if self.reads.rate is not None:
            self.reads.rate.take(len(content))
        return content

    def contents_of(self, shown: _Shown, names: Sequence[bytes]) -> bytes | None:
        """Return the contents of small files of one directory, joined; None if something is wrong with any of
        them, or one is not small."""
        kinds, files = shown.rows.listing.kinds, shown.rows.files
        rows = [shown.numbers.get(name, -1) for name in names]
        if any(row < 0 or kinds[row] != Kind.FILE for row in rows):
            return None
        numbers = [number for row in rows if (number := shown.files.get(row)) is not None]
        if any(files.levels[number] for number in numbers):
            return None
        try:
            parts = self._tree.reader.read_many(b"".join([files.keys(number) for number in numbers]))
        except FileError:
            return None
        lengths, sizes = iter(map(len, parts)), [files.sizes[number] for number in numbers]
        counts = [files.counts[number] for number in numbers]
        if any(sum(islice(lengths, count)) != size for count, size in zip(counts, sizes, strict=True)):
            return None
        if self.reads.rate is not None:
            self.reads.rate.take(sum(sizes))
        return b"".join(parts)

    def _of_entry(self, path: bytes, error: FileError) -> FileError:
        """Return the error of an entry whose part of the store is damaged."""
        return FileError(path, f"{printable(self.shown(path))}: cannot be restored: {error}")

    def read_part(self, path: bytes, read: Callable[[], T]) -> T:
        """Return what `read` returns, with errors that name the entry."""
        try:
            return read()
        except FileError as error:
            raise self._of_entry(path, error) from error

    def attributes_of(self, path: bytes, name: bytes) -> Attributes:
        """Return all extended attributes of an entry of the directory at `path`."""
        shown = self.directory_at(path)
        return unpack_attributes(shown.rows.attributes_of(shown.numbers[name]))

    def own_attributes(self) -> Attributes:
        """Return all extended attributes of the directory that this shows."""
        if not self._top:
            return unpack_attributes(self._tree.snapshot.attributes)
        shown, row = self._own_row()
        return unpack_attributes(shown.rows.attributes_of(row))

    def perform(
        self, path: bytes, doing: str, call: Callable[[bytes, int], T], *, reading: bool = False
    ) -> T:
        """Raise FileError: nothing here has a descriptor."""
        raise self.refused(
            path,
            doing,
            expected="a file on a file system",
            found="one in a snapshot",
            advice="rule files in a snapshot are not read: give the rules on the command line",
        )


def _inode(group: int, row: int) -> int:
    return (1 << 62) + group if group else 1 + row


class _Given:
    """The GivenTree of a SnapshotRoot."""

    def __init__(self, root: SnapshotRoot) -> None:
        self._root = root

    @property
    def facts(self) -> FileSystemFacts:
        """A store keeps everything but access times."""
        kept = PLAIN.keeps.attributes & ~AttributeKinds.ACCESS_TIME
        return replace(PLAIN, keeps=replace(PLAIN.keeps, attributes=kept))

    def attributes(
        self, path: bytes, names: bytes, kinds: AttributeKinds
    ) -> Iterator[tuple[int, bytes, Attributes | OSError]]:
        """Yield the attributes of entries that have any of these kinds."""
        if not self._root.directory_at(path).rows.attributes:
            return
        for row, name in enumerate(strings(names)):
            found = kinds.chosen(self._root.attributes_of(path, name))
            if found:
                yield row, name, found

    def top_attributes(self, kinds: AttributeKinds) -> Attributes:
        """Return the attributes of the top."""
        return kinds.chosen(self._root.own_attributes())

    def contents(self, directory: bytes, listing: PackedListing) -> tuple[bytes, bytes]:
        """Return the contents of files of one directory, joined, and which of them could be read."""
        shown, names = self._root.directory_at(directory), strings(listing.names)
        found = self._root.contents_of(shown, names)
        if found is not None:
            return found, b"\1" * len(names)
        parts, good = [], bytearray()
        for name in names:
            try:
                parts.append(self._root.content_of(shown, name))
            except (FileError, KeyError):
                good.append(0)  # whoever opens it alone reports it
            else:
                good.append(1)
        return b"".join(parts), bytes(good)


class SnapshotFile(ContentFile):
    """A regular file of a snapshot. It has no descriptor and does not change."""

    __slots__ = ("_metadata", "_ref", "_root", "_stream")

    def __init__(self, root: SnapshotRoot, path: bytes, ref: FileRef | None) -> None:
        """`ref`: its content; None: it is empty."""
        self._root = root
        self._ref = ref
        self._stream: StoredStream | None = None
        self._fd = -1
        self.path = path
        self._shown = root.shown(path)
        self._outlasted = True
        self._metadata = root.metadata(path)
        self.identity = root.identity(path)
        self.size = self.identity.size
        self.allocated = self.size
        self.taken = None
        self.links = root.link_count(path)
        self.on_span = None
        self.rate = None

    @property
    def metadata(self) -> Metadata:
        return self._metadata

    def pread(self, offset: int, length: int) -> bytes:
        if offset + length > self.size:
            raise changed(self.path, self._shown, f"{offset + length} bytes", f"{self.size}")
        if not length or self._ref is None:
            return b""
        if self.rate is not None:
            self.rate.take(length)
        stream = self._opened(self._ref)
        return self._root.read_part(self.path, lambda: stream.pread(offset, length))

    def _opened(self, ref: FileRef) -> StoredStream:
        if self._stream is None:
            self._stream = self._root.stream_of(self.path, ref)
        return self._stream

    def pieces(self, size: int) -> Iterator[bytes | memoryview]:
        if self._ref is None or self.rate is not None:
            yield from super().pieces(size)
            return
        parts = self._opened(self._ref).parts(size)
        while piece := self._root.read_part(self.path, lambda: next(parts, b"")):
            yield piece

    @property
    def content_name(self) -> bytes | None:
        """The digest of the keys: what is read was compared with them."""
        if self._ref is None:
            return None
        content = self._ref.content
        return blake3(_NAMED.pack(content.size, content.level) + content.keys).digest()

    def rest(self) -> None:
        """Rest as SourceFile does. Nothing changes it."""

    def check_unchanged(self) -> None:
        """Check as SourceFile does. Every chunk was checked against its key."""

    def close(self) -> None:
        """Close as SourceFile does. Nothing is open."""


# Paths in stores: st/@17/docs, st/@latest/, st/@2026-11-28/, st/@data/latest/docs.


class SnapshotPath(Record):
    """A path that may lead into a snapshot, if a store is where it says."""

    store: bytes
    names: tuple[bytes, ...]
    """The components from the first one that begins with @, without empty ones and dots."""


def snapshot_paths(path: bytes) -> Iterator[SnapshotPath]:
    """Yield the ways to read `path` as one into a snapshot."""
    parts = path.split(b"/")
    for number, part in enumerate(parts):
        if part.startswith(b"@"):
            store = b"/".join(parts[:number]) or (b"/" if number else b".")
            yield SnapshotPath(store, tuple(one for one in parts[number:] if one not in (b"", b".")))


def open_snapshot(
    path: bytes, has_directory: Callable[[bytes], bool], open_directory: Callable[[bytes], Root]
) -> tuple[SnapshotRoot, bytes | None] | None:
    """Open the snapshot that `path` leads into, if it does. Return what it shows, and the one entry of that
    which is meant, or None for all.

    `has_directory`, `open_directory`: what the paths of a session mean. Raises UsageError for a path into a
    store that names no snapshot, FileError if nothing is there or the store is damaged.
    """
    for found in snapshot_paths(path):
        if not has_directory(found.store):
            continue
        directory = open_directory(found.store)
        try:
            label = directory.label
            if read_head(directory.fileno(), label) is None:
                continue
            store = PackStore(os.dup(directory.fileno()), label)
        finally:
            directory.release()
        try:
            store.hold()
            return _opened(store, found, path)
        except BaseException:
            store.close()
            raise
    return None


def is_in_snapshot(
    path: bytes, has_directory: Callable[[bytes], bool], open_directory: Callable[[bytes], Root]
) -> bool:
    """Return whether `path` leads into a store, by a name that begins with @."""
    for found in snapshot_paths(path):
        if has_directory(found.store):
            directory = open_directory(found.store)
            try:
                if head_of(directory.fileno()) is not None:
                    return True
            finally:
                directory.release()
    return False


class ChosenSnapshot(Record):
    """The meaning of a path into a store."""

    number: int
    """The snapshot's number."""
    top: bytes
    """The directory below the snapshot's top that is shown."""
    only: bytes | None
    """The one entry of it that is meant; None for all."""
    text: bytes
    """The path of `top` as messages name it."""
    is_numbered: bool
    """True if it is named by its number, and not by a date or as the latest."""


def choose_snapshot(snapshots: Sequence[ListedSnapshot], found: SnapshotPath, path: bytes) -> ChosenSnapshot:
    """Return what `path` means in a store with these snapshots. Raises UsageError if it names none."""
    names = found.names
    shown = printable(path)
    if b".." in names:
        raise UsageError(f"{shown}: expected a path inside a snapshot, found '..' in it")
    series = None
    name, inner = names[0][1:], names[1:]
    if any(one.series == name for one in snapshots):
        if not inner:
            raise UsageError(
                f"{shown}: a series has many snapshots; the newest one is {shown.rstrip('/')}/latest/"
            )
        series, name, inner = name, inner[0].removeprefix(b"@"), inner[1:]
    number = chosen(snapshots, name, series)
    is_content = path.endswith((b"/", b"/."))
    if not inner and not is_content:
        raise UsageError(f"{shown}: this is a whole snapshot; end it with a slash: {shown}/")
    return ChosenSnapshot(
        number,
        b"/".join(inner if is_content else inner[:-1]),
        None if is_content else inner[-1],
        path.rstrip(b"/") if is_content else path.rpartition(b"/")[0],
        name.isdigit(),
    )


def _chosen(store: PackStore, found: SnapshotPath, path: bytes) -> ChosenSnapshot:
    """Return what `path` means in a store. One that cannot be read hides no other, and is never taken for
    missing: it may be the latest, or the one that is not found. Raises RdcError."""
    readable = store.readable()
    try:
        one = choose_snapshot(readable.snapshots, found, path)
    except UsageError as error:
        if not readable.errors:
            raise
        asked = [int(name) for name in (one.removeprefix(b"@") for one in found.names[:2]) if name.isdigit()]
        known = [number for number in asked if number in readable.errors]
        raise readable.errors[max(known or readable.errors)] from error
    later = max(readable.errors, default=0)
    if later > one.number and not one.is_numbered:
        raise readable.errors[later]
    return one


def _opened(store: PackStore, found: SnapshotPath, path: bytes) -> tuple[SnapshotRoot, bytes | None]:
    one = _chosen(store, found, path)
    reader = StoreReader(store)
    try:
        tree = SnapshotTree(reader, store.snapshot(one.number))
        return shown_snapshot(store, tree, one), one.only
    except BaseException:
        reader.close()
        raise


def shown_snapshot(store: PackStore, tree: SnapshotTree, one: ChosenSnapshot) -> SnapshotRoot:
    """Return what a path means as a tree to read. Raises FileError if the snapshot lacks it."""
    if one.top not in tree:
        raise FileError(
            one.text, f"{printable(one.text)}: the snapshot has no such directory; check the path"
        )
    return SnapshotRoot(store, tree, one.top, one.text)
