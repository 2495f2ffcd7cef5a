"""Reads a store that a web server publishes, or one file with some snapshots, by ranges.

The index says what there is. Directories of packs and the newest tree are kept from sync to sync; frames are
fetched when they are read, together with their neighbours that DST needs, too. What was fetched waits in a
file without a name, so nothing is fetched twice and nothing is left behind.
"""

from __future__ import annotations

import os
import stat
import tempfile
from array import array
from bisect import bisect_right
from urllib.parse import unquote_to_bytes

from blake3 import blake3

from rdc.errors import FileError, TrustError, UsageError, printable
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.lean.typed import Protocol
from rdc.lean.zstd import zstandard
from rdc.model.location import is_web
from rdc.store.index_file import (
    CARRIED,
    INDEX_BYTES,
    PUBLISHED,
    SignedIndex,
    check_signature,
    decode_index,
)
from rdc.store.known_chunks import KnownChunks, Missing
from rdc.store.notes import read_note, write_note
from rdc.store.pack_file import damaged, pack_path, storing_failure
from rdc.store.place import INDEX_NAME, PackStore, decode_head
from rdc.store.reader import StoreReader
from rdc.store.snapshot_root import SnapshotPath, choose_snapshot, shown_snapshot, snapshot_paths
from rdc.store.snapshot_tree import SnapshotTree
from rdc.store.snapshots import decode_snapshot
from rdc.store.web import WebFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rdc.store.index_file import PublishedSnapshot
    from rdc.store.pack_file import PackBytes, PackEnd
    from rdc.store.snapshot_root import ChosenSnapshot, SnapshotRoot
    from rdc.store.snapshots import Snapshot
    from rdc.transport.keys import Certificate

WHOLE_BYTES = 128 << 10
"""A pack of at most this many bytes is fetched at once: what one put of few changes adds."""

GAP_BYTES = 32 << 10
"""Bytes that are fetched though nobody needs them, if that saves a request."""

EXTENT_BYTES = 8 << 20
"""Most bytes of one request for frames."""

TREE_BYTES = 32 << 20
"""Most bytes of a tree that is kept for the next sync."""

KEPT_BYTES = 64 << 20
"""Most bytes of directories that are kept for the next sync."""


class FarFiles(Protocol):
    """The files of a store, wherever they are."""

    def whole(self, path: bytes, most: int) -> bytes:
        """Return a file of at most `most` bytes. Raises RdcError."""

    def fetch(
        self, path: bytes, start: int, stop: int, size: int, take: Callable[[int, bytes], None]
    ) -> None:
        """Give the bytes [start, stop) of a file of `size` bytes, or more of it, to `take`, with the offset
        of each part. Raises RdcError."""

    def close(self) -> None:
        """Give them up."""


class CarriedFiles:
    """The files in one file, after its index and in its order."""

    def __init__(self, path: bytes) -> None:
        """Open the file. Raises FileError if it cannot be read."""
        self._path = path
        self._places: dict[bytes, tuple[int, int]] = {}
        """Offset and bytes of each file."""
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise storing_failure(error, path, "open it") from error

    def place(self, found: SignedIndex) -> None:
        """Learn from the index where the files are. Raises FileError if the file is too short."""
        at = found.size
        sizes = [(b"snapshots/%d" % one.number, one.size) for one in found.index.snapshots]
        sizes += [(pack_path(name), end.size) for name, end in found.index.packs.items()]
        for path, size in sizes:
            self._places[path] = at, size
            at += size
        size = os.fstat(self._fd).st_size
        if size != at:
            advice = "it may be cut off: carry it again"
            raise FileError(
                self._path, f"{printable(self._path)}: expected {at} bytes, found {size}; {advice}"
            )

    def whole(self, path: bytes, most: int) -> bytes:
        at, size = (0, most) if path == INDEX_NAME else self._places[path]
        return self._read(at, min(size, most))

    def fetch(
        self, path: bytes, start: int, stop: int, size: int, take: Callable[[int, bytes], None]
    ) -> None:
        at, _ = self._places[path]
        take(start, self._read(at + start, stop - start))

    def _read(self, at: int, length: int) -> bytes:
        try:
            return os.pread(self._fd, length, at)
        except OSError as error:
            raise storing_failure(error, self._path, "read it") from error

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


class _Ranges:
    """Disjoint ranges of one file, in order."""

    def __init__(self) -> None:
        self._starts: array[int] = array("Q")
        self._stops: array[int] = array("Q")

    def has(self, start: int, stop: int) -> bool:
        """Return whether all of a range is in one of these."""
        number = bisect_right(self._starts, start) - 1
        return number >= 0 and stop <= self._stops[number]

    def around(self, start: int) -> tuple[int, int]:
        """Return the range with the byte at `start`; an empty one if none has it."""
        number = bisect_right(self._starts, start) - 1
        if number < 0 or start >= self._stops[number]:
            return start, start
        return self._starts[number], self._stops[number]

    def missing(self, start: int, stop: int) -> tuple[int, int]:
        """Return a range without what these have of its beginning and its end. They do not have all of it."""
        number = bisect_right(self._starts, stop - 1) - 1
        if number >= 0 and self._stops[number] >= stop:
            stop = self._starts[number]
        return max(start, self.around(start)[1]), stop

    def add(self, start: int, stop: int) -> None:
        """Add a range, and join it with those that it meets."""
        first = bisect_right(self._starts, start)
        if first and self._stops[first - 1] >= start:
            first -= 1
            start = self._starts[first]
        last = first
        while last < len(self._starts) and self._starts[last] <= stop:
            stop = max(stop, self._stops[last])
            last += 1
        self._starts[first:last] = array("Q", [start])
        self._stops[first:last] = array("Q", [stop])


class _FarPack:
    """A pack that is far away."""

    def __init__(self, store: PublishedStore, name: bytes) -> None:
        self._store = store
        self._name = name
        self.size = store.pack_end(name).size

    def pread(self, length: int, offset: int) -> bytes:
        return self._store.read_pack(self._name, offset, length)

    def close(self) -> None:
        """Do nothing: the store keeps what was fetched."""


class PublishedStore(PackStore):
    """A store far away, for reading."""

    def __init__(self, files: FarFiles, label: bytes, found: SignedIndex) -> None:
        """Take over `files`. Raises FileError if the index names no store."""
        self.label = label
        self._held = None
        self._files = files
        self._index = found.index
        self._fd = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        """Stands for the store's directory, of which nothing is opened."""
        self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - it outlives this call
        self._bases: dict[bytes, int] = {}
        """The position at which each pack begins in the spool."""
        self._have: dict[bytes, _Ranges] = {}
        self._planned: dict[bytes, _Ranges] = {}
        """The ranges that are fetched together."""
        self.destination: Root | None = None
        """The tree in which chunks are looked for, too. It is released with the store."""
        at = 0
        for name, end in found.index.packs.items():
            self._bases[name] = at
            at += end.size
        self.head = decode_head(found.index.head, self.shown(INDEX_NAME))
        if found.index.magic == CARRIED:
            self.where_missing = (
                "the file has only what an older snapshot lacks: sync it to a copy of that one, unchanged"
            )

    def close(self) -> None:
        self._files.close()
        self._spool.close()
        if self.destination is not None:
            self.destination.release()
            self.destination = None
        super().close()

    def hold(self) -> None:
        """Take no lock, unlike a PackStore: no gc waits for a reader that is far away."""

    def listed(self) -> Sequence[PublishedSnapshot]:
        return self._index.snapshots

    def numbers(self) -> list[int]:
        return sorted([one.number for one in self._index.snapshots])

    def snapshot(self, number: int, *, forgotten: bool = False) -> Snapshot:
        path = b"snapshots/%d" % number
        shown = self.shown(path)
        (said,) = [one for one in self._index.snapshots if one.number == number]
        data = self._files.whole(path, said.size)
        if blake3(data).digest() != said.digest:
            raise damaged(shown, "the snapshot that the index names", "another one")
        try:
            return decode_snapshot(data, self.head.key)
        except ValueError as error:
            raise damaged(shown, "a snapshot of this store", str(error)) from error

    def pack_names(self) -> list[bytes]:
        return sorted(self._index.packs)

    def pack_end(self, name: bytes) -> PackEnd:
        return self._index.packs[name]

    def open_pack(self, name: bytes) -> PackBytes:
        return _FarPack(self, name)

    def read_pack(self, name: bytes, offset: int, length: int) -> bytes:
        """Return a part of a pack, which is fetched if it was not yet. Raises RdcError."""
        size = self._index.packs[name].size
        stop = min(size, offset + length)
        have = self._have.setdefault(name, _Ranges())
        if offset < stop and not have.has(offset, stop):
            first, last = (0, size) if size <= WHOLE_BYTES else (offset, stop)
            if (planned := self._planned.get(name)) is not None:
                start, end = planned.around(offset)
                first, last = have.missing(min(first, start), max(last, end))
            self._files.fetch(pack_path(name), first, last, size, lambda at, data: self._take(name, at, data))
        return self._spooled(name, offset, stop)

    def _take(self, name: bytes, at: int, data: bytes) -> None:
        try:
            view = memoryview(data)
            while view:
                written = os.pwrite(self._spool.fileno(), view, self._bases[name] + at)
                self._have.setdefault(name, _Ranges()).add(at, at + written)
                at, view = at + written, view[written:]
        except OSError as error:
            raise storing_failure(
                error, os.fsencode(tempfile.gettempdir()), "keep what was fetched"
            ) from error

    def _spooled(self, name: bytes, start: int, stop: int) -> bytes:
        return os.pread(self._spool.fileno(), max(0, stop - start), self._bases[name] + start)

    def plan(self, reader: StoreReader, frames: Iterable[int]) -> None:
        """Fetch these frames in few requests once the first of each is read. Raises FileError."""
        self._planned = {}
        last: tuple[bytes, int, int] | None = None
        for number in sorted(frames):
            frame = reader.frame(number)
            name, start, stop = frame.pack.name, frame.offset, frame.offset + frame.stored
            if last is not None and name == last[0]:
                is_near = start - last[2] <= GAP_BYTES and stop - last[1] <= EXTENT_BYTES
                if is_near:
                    last = name, last[1], stop
                    continue
            self._plan_one(last)
            last = name, start, stop
        self._plan_one(last)

    def _plan_one(self, extent: tuple[bytes, int, int] | None) -> None:
        if extent is not None:
            # Neighbours stay apart: a range of this kind is one request.
            name, start, stop = extent
            self._planned.setdefault(name, _Apart()).add(start, stop)

    # What is kept from sync to sync.

    def take_directories(self, notes: bytes) -> None:
        """Know the directories of packs that an earlier sync fetched."""
        data = memoryview(read_note(notes, self._note(b"directories")))
        while len(data) >= 8:
            end = self._index.packs.get(bytes(data[:8]))
            if end is None or len(data) < 8 + end.length:
                return
            directory = bytes(data[8 : 8 + end.length])
            if blake3(directory, key=self.head.key).digest() != end.digest:
                return
            self._take(bytes(data[:8]), end.offset, directory)
            data = data[8 + end.length :]

    def keep_directories(self, notes: bytes) -> None:
        """Keep the directories of packs for the next sync, as far as they are not too large."""
        parts, size = [], 0
        for name, end in self._index.packs.items():
            stop = end.offset + end.length
            if size + end.length > KEPT_BYTES or not self._have.setdefault(name, _Ranges()).has(
                end.offset, stop
            ):
                break
            parts += [name, self._spooled(name, end.offset, stop)]
            size += 8 + end.length
        data = b"".join(parts)
        if data != read_note(notes, self._note(b"directories")):
            write_note(notes, self._note(b"directories"), data)

    def kept_tree(self, notes: bytes, series: bytes) -> bytes:
        """Return the tree of the series that an earlier sync read; b"" for none."""
        try:
            data = read_note(notes, self._note(b"tree", series))
            return zstandard.ZstdDecompressor().decompress(data, max_output_size=TREE_BYTES) if data else b""
        except zstandard.ZstdError:
            return b""

    def keep_tree(self, notes: bytes, series: bytes, tree: SnapshotTree) -> None:
        """Keep the tree of the series for the next sync, if it is not too large."""
        if tree.snapshot.tree.size <= TREE_BYTES:
            data = b"".join(tree.records(0, len(tree)))
            packed = zstandard.ZstdCompressor(level=1, write_content_size=True).compress(data)
            if packed != read_note(notes, self._note(b"tree", series)):
                write_note(notes, self._note(b"tree", series), packed)

    def _note(self, what: bytes, series: bytes = b"") -> bytes:
        return b"published-%s-%s.%s" % (
            self.head.id.hex().encode(),
            blake3(series).digest(8).hex().encode(),
            what,
        )


class _Apart(_Ranges):
    """Ranges of which neighbours stay apart, added in order."""

    def add(self, start: int, stop: int) -> None:
        self._starts.append(start)
        self._stops.append(stop)


# Opening: the index, whom it is from, and what of the snapshot DST needs.


class PublishedPlace(Record):
    """A path into a published store."""

    path: bytes
    found: SnapshotPath
    is_web: bool


def published_place(path: bytes) -> PublishedPlace | None:
    """Return what `path` means if it leads into a store on the web or in one file; else None. Raises
    UsageError for an address without a snapshot."""
    if is_web(path):
        for found in snapshot_paths(path):
            names = tuple([unquote_to_bytes(name) for name in found.names])
            return PublishedPlace(path, replace(found, names=names), True)
        raise UsageError(
            f"{printable(path)}: rdc reads stores from the web: expected an address such as"
            f" {printable(path.rstrip(b'/'))}/@latest/"
        )
    if b"/@" not in path:
        return None
    for found in snapshot_paths(path):
        try:
            with open(found.store, "rb", opener=_opener) as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and file.read(8) == CARRIED:
                    return PublishedPlace(path, found, False)
        except OSError:
            continue
    return None


def _opener(path: str | bytes, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def open_published(
    place: PublishedPlace,
    *,
    unsigned: bool,
    destination: bytes | None,
    notes: bytes | None,
    timeout: float = 0,
    notice: Callable[[str], None] = lambda text: None,
) -> tuple[SnapshotRoot, bytes | None]:
    """Open the snapshot that a path leads into. Return what it shows, and the one entry of that which is
    meant, or None for all.

    `unsigned`: trust a store whatever its signature. `destination`: what it is synced to, if that is on this
    machine. `notes`: a directory for what is kept from sync to sync. Raises RdcError.
    """
    label = place.found.store
    files: WebFiles | CarriedFiles = (
        WebFiles(os.fsdecode(label), timeout=timeout, notice=notice) if place.is_web else CarriedFiles(label)
    )
    try:
        found = _index(files, label)
        _check_trust(found, files, label, unsigned=unsigned)
        if isinstance(files, CarriedFiles):
            files.place(found)
        elif notes is not None:
            _check_age(found, files, notes, remember=not unsigned)
        one = choose_snapshot(found.index.snapshots, place.found, place.path)
        store = PublishedStore(files, label, found)
    except BaseException:
        files.close()
        raise
    try:
        return _opened(store, one, destination, notes), one.only
    except BaseException:
        store.close()
        raise


def _opened(
    store: PublishedStore, one: ChosenSnapshot, destination: bytes | None, notes: bytes | None
) -> SnapshotRoot:
    snapshot = store.snapshot(one.number)
    known = KnownChunks(store.head.key)
    if notes is not None:
        store.take_directories(notes)
        known.add_tree(store.kept_tree(notes, snapshot.series))
    reader = StoreReader(store, known)
    try:
        if reader.damaged:
            raise reader.damaged[0]
        _plan(store, reader, reader.expand(snapshot.tree))
        tree = SnapshotTree(reader, snapshot)
        if notes is not None:
            store.keep_directories(notes)
            store.keep_tree(notes, snapshot.series, tree)
        shown = shown_snapshot(store, tree, one)
        root = None
        if destination is not None and os.path.isdir(destination):
            root = store.destination = Root.open(destination)
        missing = Missing(reader, tree, known, one.top, one.only)
        store.plan(reader, missing.lists(root))
        store.plan(reader, missing.frames(root))
    except BaseException:
        reader.close()
        raise
    return shown


def _plan(store: PublishedStore, reader: StoreReader, keys: bytes) -> None:
    from rdc.store.directory import split_keys

    frames = set[int]()
    reader.add_frames(split_keys(keys), frames, set(), 0)
    store.plan(reader, frames)


def _index(files: FarFiles, label: bytes) -> SignedIndex:
    shown = label + b"/" + INDEX_NAME
    try:
        found = decode_index(files.whole(INDEX_NAME, INDEX_BYTES))
        wanted = PUBLISHED if isinstance(files, WebFiles) else CARRIED
        if found.index.magic != wanted:
            raise ValueError(f"one of kind {found.index.magic!r}")
    except ValueError as error:
        advice = "rdc store put --publish writes it"
        raise FileError(
            shown, f"{printable(shown)}: expected the index of a store, found {error}; {advice}"
        ) from error
    return found


def _check_trust(found: SignedIndex, files: FarFiles, label: bytes, *, unsigned: bool) -> None:
    if not unsigned:
        check_signature(
            found,
            _trusted(files),
            printable(label),
            "with --unsigned it is read in spite of that",
        )


def _trusted(files: FarFiles) -> Iterable[Certificate]:
    """Return the keys that may have signed: the user's own, and those that are trusted, on the web under the
    name of the host."""
    from rdc.transport.keys import key_directory, signers

    own, trusted = signers(key_directory(os.environ))
    if not isinstance(files, WebFiles):
        return [*own, *[one for named in trusted.values() for one in named]]
    port = files.port or files.default_port
    host = f"[{files.host}]" if ":" in files.host else files.host
    names = [f"{host}:{port}"] + [files.host] * (port == files.default_port)
    return [*own, *[one for name in names for one in trusted.get(name, ())]]


def _check_age(found: SignedIndex, files: WebFiles, notes: bytes, *, remember: bool) -> None:
    """Raise TrustError if an earlier sync from the same address saw a newer index. `remember`: the number can
    be believed."""
    name = b"published-%s.seen" % blake3(files.url.encode()).digest(16).hex().encode()
    seen = int.from_bytes(read_note(notes, name)[:8], "little")
    if found.index.number < seen:
        raise TrustError(
            f"{files.url}: expected index {seen} or a later one, found {found.index.number}: a cache or the"
            " server has old files; run again later, or ask who publishes the store"
        )
    if remember and found.index.number > seen:
        write_note(notes, name, found.index.number.to_bytes(8, "little"))
