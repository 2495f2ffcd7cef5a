"""Chunks of a store that need no packs: DST has them in its files, or an earlier sync kept a tree.

An update reads what is new from far away and everything else here. Which files of DST have which chunks
follows from cutting those that the snapshot changes, and from the tree itself for those that it does not.
Every chunk is compared with its key when it is read, so a file that changes meanwhile does no harm.
"""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.chunking import Chunker
from rdc.errors import FileError, RdcError
from rdc.files.base.paths import join
from rdc.lean.records import Record
from rdc.model.entries import Kind, little_endian_integers, strings
from rdc.store.directory import KEY_BYTES, split_keys
from rdc.store.tree_rows import LIST_PARAMS
from rdc.store.writer import cut_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer

    from rdc.files.root.root import Root
    from rdc.store.reader import StoreReader
    from rdc.store.snapshot_tree import SnapshotTree
    from rdc.store.tree_rows import DirectoryRows, StreamRef

WANTED_MOST = 1 << 19
"""Most chunks that are looked for at DST, some 32 GB. More are fetched."""

PLANNED_KEYS = 4 << 20
"""Most chunks whose frames are requested together, some 256 GB."""

SLICE_KEYS = 1 << 16

EXTRA_SHARE = 2
"""Files that the snapshot lacks are read as far as they have at most this many times the bytes of those that
DST lacks: files that were renamed."""


class KnownChunks:
    """Chunks by their keys, with where they are."""

    def __init__(self, key: bytes) -> None:
        """`key`: of the store."""
        self._key = key
        self._tree = memoryview(b"")
        self._in_tree: dict[bytes, tuple[int, int]] = {}
        self._root: Root | None = None
        self._paths: list[bytes] = []
        self._places: dict[bytes, tuple[int, int, int]] = {}
        """The number of a path, offset and bytes of each chunk."""

    def add_tree(self, tree: bytes) -> None:
        """Know the chunks of a tree."""
        if tree:
            self._tree = memoryview(tree)
            cut = cut_streams(tree, array("Q", [len(tree)]), LIST_PARAMS, self._key)
            ends = accumulate(cut.lengths)
            self._in_tree = {
                key: (end - length, length)
                for key, end, length in zip(cut.keys, ends, cut.lengths, strict=True)
            }

    def add_file(self, path: bytes, chunks: Iterable[tuple[bytes, int]], wanted: set[bytes]) -> int:
        """Know the wanted chunks of a file of the directory that `read_from` named. Return its bytes.

        `chunks`: the key and bytes of each.
        """
        at, number = 0, len(self._paths)
        self._paths.append(path)
        for key, length in chunks:
            if key in wanted and key not in self._places:
                self._places[key] = number, at, length
            at += length
        return at

    def read_from(self, root: Root) -> None:
        """Read files from this directory, which is the caller's to release."""
        self._root = root

    def __contains__(self, key: bytes) -> bool:
        return key in self._in_tree or key in self._places

    def length(self, key: bytes) -> int | None:
        """Return the bytes of the chunk with this key, if it was here."""
        if (found := self._in_tree.get(key)) is not None:
            return found[1]
        place = self._places.get(key)
        return None if place is None else place[2]

    def chunk(self, key: bytes) -> bytes | None:
        """Return what was the chunk with this key, if it can be read."""
        if (found := self._in_tree.get(key)) is not None:
            return bytes(self._tree[found[0] : sum(found)])
        place = self._places.get(key)
        if place is None or self._root is None:
            return None
        number, offset, length = place
        try:
            with self._root.open_read(self._paths[number]) as file:
                return file.pread(offset, length) if offset + length <= file.size else None
        except RdcError:
            return None


class _Here(Record):
    """The files of DST in one directory."""

    sizes: dict[bytes, tuple[int, int]]
    """Bytes and mtime of each regular file."""
    directories: tuple[bytes, ...]


class Missing:
    """The chunks of a snapshot that DST lacks, and the frames that contain them."""

    def __init__(
        self, reader: StoreReader, tree: SnapshotTree, known: KnownChunks, top: bytes, only: bytes | None
    ) -> None:
        """`top`: the directory of the snapshot that is synced. `only`: the one entry of it; None: all."""
        self._reader = reader
        self._tree = tree
        self._known = known
        self._top = top
        self._only = only
        self._changed: list[bytes] = []
        """Paths of files that DST has with another size or mtime."""
        self._extra: list[bytes] = []
        """Paths of directories and files that the snapshot lacks."""
        self._room = 0
        """Bytes of files that DST lacks."""

    def frames(self, root: Root | None) -> set[int]:
        """Return the numbers of the frames that DST needs. `root`: DST; None: it is not there, or not on this
        machine. Raises FileError."""
        keys = array("B")
        for ref in self._needed(root):
            if len(keys) >= KEY_BYTES * PLANNED_KEYS:
                break
            keys.frombytes(self._reader.expand(ref))
        found = set[int]()
        bases = self._add(keys, found)
        if root is not None and keys:
            wanted = bases.union(split_keys(keys[: KEY_BYTES * WANTED_MOST].tobytes()))
            self._known.read_from(root)
            self._look_at(root, wanted)
            found.clear()
            self._add(keys, found)
        return found

    def lists(self, root: Root | None) -> set[int]:
        """Return the numbers of the frames with lists of keys that `frames` reads. Raises FileError."""
        found = set[int]()
        for ref in self._needed(root):
            if ref.level:
                self._reader.add_frames(split_keys(ref.keys), found, set(), 0)
        return found

    def _add(self, keys: array[int], found: set[int]) -> set[bytes]:
        bases = set[bytes]()
        step = KEY_BYTES * SLICE_KEYS
        for at in range(0, len(keys), step):
            part = split_keys(keys[at : at + step].tobytes())
            self._reader.add_frames(part, found, bases, WANTED_MOST)
        return bases

    # Both trees, directory by directory.

    def _directories(self) -> Iterator[tuple[bytes, DirectoryRows]]:
        """Yield the directories that are synced, by their paths below DST."""
        above = self._top + b"/" if self._top else b""
        for path in self._tree:
            if path != self._top and not path.startswith(above):
                continue
            inner = path[len(above) :] if path != self._top else b""
            if self._only is not None and inner and inner.partition(b"/")[0] != self._only:
                continue
            rows = self._tree.rows(path)
            if rows is not None:
                yield inner, rows

    def _needed(self, root: Root | None) -> Iterator[StreamRef]:
        """Yield the contents of files that DST has not with their sizes and mtimes."""
        self._changed, self._extra, self._room = [], [], 0
        for path, rows in self._directories():
            here = _here(root, path)
            names = strings(rows.listing.names)
            if self._only is None:
                extra = {*here.sizes, *here.directories}.difference(names)
                self._extra += [join(path, name) for name in sorted(extra)]
            for row, number, size, mtime in _files(rows):
                name = names[row]
                if not path and self._only not in (None, name):
                    continue
                found = here.sizes.get(name)
                if found == (size, mtime):
                    continue
                if found is None:
                    self._room += size
                else:
                    self._changed.append(join(path, name))
                yield rows.files[number].content

    def _look_at(self, root: Root, wanted: set[bytes]) -> None:
        """Find wanted chunks at DST."""
        for path in self._changed:
            self._cut(root, path, wanted)
        for path, rows in self._directories():
            here = _here(root, path)
            names = strings(rows.listing.names)
            for row, number, size, mtime in _files(rows):
                if here.sizes.get(names[row]) == (size, mtime):
                    keys = split_keys(self._expanded(rows.files[number].content))
                    if not wanted.isdisjoint(keys):
                        try:
                            lengths = self._reader.lengths(b"".join(keys))
                        except FileError:  # of a file that has only what an older snapshot lacks
                            self._cut(root, join(path, names[row]), wanted)
                            continue
                        self._known.add_file(join(path, names[row]), zip(keys, lengths, strict=True), wanted)
        room, todo = EXTRA_SHARE * self._room, list(self._extra)
        while todo and room > 0:
            path = todo.pop()
            if root.kind(path) is Kind.DIRECTORY:
                here = _here(root, path)
                todo += [join(path, name) for name in (*here.sizes, *here.directories)]
            else:
                room -= self._cut(root, path, wanted)

    def _expanded(self, ref: StreamRef) -> bytes:
        """Return the keys of a file's content; none of one whose list of keys is far away."""
        return b"" if ref.level else ref.keys

    def _cut(self, root: Root, path: bytes, wanted: set[bytes]) -> int:
        """Look for wanted chunks in a file of DST. Return its bytes."""
        try:
            with root.open_read(path) as file:
                return self._known.add_file(path, self._chunks(file.spans()), wanted)
        except RdcError:
            return 0  # whoever needs it reports it

    def _chunks(self, spans: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        cutter = Chunker(self._reader.store.head.params)
        for span in spans:
            yield from map(self._named, cutter.chunk_views(span))
        yield from map(self._named, cutter.last_chunk_views())

    def _named(self, view: Buffer) -> tuple[bytes, int]:
        chunk = memoryview(view)
        return self._reader.key_of(chunk), chunk.nbytes


def _files(rows: DirectoryRows) -> Iterator[tuple[int, int, int, int]]:
    """Yield the row, the number, the size and the mtime of each file with content."""
    sizes = little_endian_integers("Q", rows.listing.sizes)
    mtimes = little_endian_integers("q", rows.listing.mtimes)
    for row, number in rows.file_numbers().items():
        yield row, number, sizes[row], mtimes[row]


def _here(root: Root | None, path: bytes) -> _Here:
    if root is None:
        return _Here({}, ())
    try:
        if path and root.kind(path) is not Kind.DIRECTORY:
            return _Here({}, ())
        listing = root.listed(path).listing
    except RdcError:
        return _Here({}, ())
    names = strings(listing.names)
    sizes = little_endian_integers("Q", listing.sizes)
    mtimes = little_endian_integers("q", listing.mtimes)
    return _Here(
        {names[row]: (sizes[row], mtimes[row]) for row in listing.rows_of(Kind.FILE)},
        tuple([names[row] for row in listing.rows_of(Kind.DIRECTORY)]),
    )
