"""StoreReader: chunks by their keys, and streams of chunks, from the packs of a store.

The directories of all packs are read once, for a table of 10 to 13 bytes a chunk that finds the number of a
key. What else a directory says is read again when it is needed, and stays among the last ones. A frame is
decoded once while it stays among the last CACHED_BYTES. The frames that a delta needs are decoded from the
bottom up, without recursion and each once, so a chain of bases costs its length.

Several packs may have a chunk. One of the lowest depth is read, and another one if that is damaged. A delta
whose bases no pack has any more, as after a killed gc, counts as missing.
"""

from __future__ import annotations

import os
from _thread import RLock
from array import array
from bisect import bisect_right
from collections import OrderedDict
from contextlib import contextmanager
from itertools import accumulate
from operator import itemgetter
from struct import Struct

from blake3 import blake3

from rdc.errors import FileError, printable
from rdc.kernel import KeyTable
from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.store.directory import DEPTH_MOST, KEY_BYTES, Directory, chunks_at_most, split_keys
from rdc.store.frames import PREFIX_BYTES, FrameError, FrameKind, StoredFrame, decode
from rdc.store.pack_file import PackBytes, PackEnd, damaged, read_bases, read_directory, read_frame
from rdc.store.tree_rows import LIST_PARAMS, StreamRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from rdc.store.pack_file import FinishedPack
    from rdc.store.place import PackStore

CACHED_BYTES = 64 << 20
"""Bytes of decoded frames that stay in memory."""

DIRECTORIES_BYTES = 24 << 20
"""Bytes of the columns of directories that stay in memory, those of the last one left out."""

OPEN_PACKS = 200
"""Packs that stay open. A process may have 1024 files open where nobody raised the limit."""

DECODED_BYTES = 256 << 20
"""Most bytes that one chunk may need decoded. A writer makes no delta that needs more than half of them."""

CLOSURE_BASES = 1 << 16
"""Most bases that one chunk may need looked up, counted frame by frame."""

LIST_BYTES = 512 << 20
"""Most bytes of the keys of one stream: those of 2 TiB."""

_NAMED_KEYS = Struct(f"{KEY_BYTES}s{NAME_BYTES - KEY_BYTES}x")
"""A digest of name_parts, of which a key is the first part."""


class PackFacts(Record):
    """One pack of a store."""

    place: int
    """Its number among all."""
    name: bytes
    path: bytes
    """The name in messages."""
    size: int
    """Bytes of the file."""
    end: PackEnd
    first_frame: int
    """Number of its first frame."""
    frames: int
    first_chunk: int
    """Number of its first chunk."""
    chunks: int
    depth: int
    """The highest of its frames."""


class FrameFacts(Record):
    """One frame of the packs."""

    number: int
    pack: PackFacts
    offset: int
    kind: FrameKind
    stored: int
    size: int
    generation: int
    depth: int
    bases: bytes


class _Run(Record):
    """Bases that follow one another in a frame."""

    first: bytes
    """The key of the first one."""
    frame: int | None
    """None for one base that is given, and in no frame."""
    start: int
    """Their offset in the frame."""
    length: int


class OtherChunks(Protocol):
    """Chunks that are at hand without the packs of a store."""

    def __contains__(self, key: bytes) -> bool:
        """Return whether the chunk with this key was here."""

    def chunk(self, key: bytes) -> bytes | None:
        """Return the bytes that were the chunk with this key, if they still can be read."""

    def length(self, key: bytes) -> int | None:
        """Return the bytes of the chunk with this key, if it was here."""


class StoreReader:
    """The packs of a store. Threads may read from it; one alone adds to it."""

    def __init__(self, store: PackStore, elsewhere: OtherChunks | None = None) -> None:
        """Read the directories of all packs. Raises FileError if they cannot be listed.

        `elsewhere`: asked first for each chunk, because packs are far away. A pack that cannot be read is
        noted in `damaged` and left out: its chunks are missing, and others are not.
        """
        self.store = store
        self._elsewhere = elsewhere
        self._packs: list[PackFacts] = []
        self._first_frames: array[int] = array("I")
        self._first_chunks: array[int] = array("I")
        """The first chunk of each pack, for searches."""
        self._files: OrderedDict[int, PackBytes] = OrderedDict()
        """Open packs by their numbers."""
        self._directories: OrderedDict[int, Directory] = OrderedDict()
        self._directory_bytes = 0
        self._lost: set[int] = set()
        """Numbers of frames that cannot be decoded."""
        self._wrong: set[int] = set()
        """Numbers of chunks whose bytes have another key. Others of their frames, which are no deltas, may be
        sound."""
        self._hidden: frozenset[int] = frozenset()
        self._decoded: OrderedDict[int, bytes] = OrderedDict()
        self._decoded_bytes = 0
        self.frames_read = 0
        self.damaged: list[FileError] = []
        """The errors of packs that cannot be read."""
        self._lock = RLock()
        try:
            self._open_all()
        except BaseException:
            self.close()
            raise

    def _open_all(self) -> None:
        found: list[tuple[bytes, PackEnd]] = []
        rows = 0
        for name in self.store.pack_names():
            try:
                end = self.store.pack_end(name)
                rows += chunks_at_most(end.begin)
            except FileError as error:
                self.damaged.append(error)
            except ValueError as error:
                self.damaged.append(damaged(self.store.shown_pack(name), "a sound directory", str(error)))
            else:
                found.append((name, end))
        self._table = KeyTable(rows, os.urandom(16))
        has_bases = False
        for name, end in found:
            try:
                file = self.store.open_pack(name)
                try:
                    directory = read_directory(file, end, self.store.shown_pack(name), self.store.head.key)
                    self._take(name, end, directory)
                finally:
                    file.close()
            except FileError as error:
                self.damaged.append(error)
            else:
                has_bases = has_bases or bool(directory.bases)
        if has_bases and self._elsewhere is None:
            self._leave_out_lost()

    def close(self) -> None:
        """Close all packs. May be called again."""
        with self._lock:
            while self._files:
                self._files.popitem()[1].close()
            self._decoded.clear()
            self._directories.clear()
            self._decoded_bytes = self._directory_bytes = 0

    def add(self, pack: FinishedPack) -> None:
        """Take over a pack that was just written."""
        with self._lock:
            self._take(pack.name, pack.end, pack.directory)

    def _take(self, name: bytes, end: PackEnd, directory: Directory) -> None:
        last = self._packs[-1] if self._packs else None
        pack = PackFacts(
            len(self._packs),
            name,
            self.store.shown_pack(name),
            end.size,
            end,
            0 if last is None else last.first_frame + last.frames,
            directory.frames,
            self.chunks,
            directory.chunks,
            max(directory.depths, default=0),
        )
        try:
            self._table.add(directory.keys, pack.first_chunk)
        except ValueError as error:
            # None of its chunks is found, as no search leads beyond those of sound packs.
            raise damaged(pack.path, "different keys", str(error)) from error
        self._packs.append(pack)
        self._first_frames.append(pack.first_frame)
        self._first_chunks.append(pack.first_chunk)
        self._keep_directory(pack.place, directory)

    # Packs and frames.

    @property
    def packs(self) -> tuple[PackFacts, ...]:
        return tuple(self._packs)

    @property
    def frames(self) -> int:
        """The number of frames."""
        return self._packs[-1].first_frame + self._packs[-1].frames if self._packs else 0

    @property
    def chunks(self) -> int:
        """The number of chunks, those that several packs have included."""
        return self._packs[-1].first_chunk + self._packs[-1].chunks if self._packs else 0

    def directory(self, pack: PackFacts) -> Directory:
        """Return the directory of a pack. Raises FileError."""
        with self._lock:
            return self._directory(pack.place)

    def frame(self, number: int) -> FrameFacts:
        """Return the facts of a frame. Raises FileError."""
        with self._lock:
            place = bisect_right(self._first_frames, number) - 1
            pack = self._packs[place]
            directory, at = self._directory(place), number - pack.first_frame
            row = directory.row(at)
            return FrameFacts(
                number,
                pack,
                directory.offsets[at],
                row.kind,
                row.stored,
                row.size,
                row.generation,
                row.depth,
                row.bases,
            )

    def _directory(self, place: int) -> Directory:
        known = self._directories.get(place)
        if known is not None:
            self._directories.move_to_end(place)
            return known
        pack = self._packs[place]
        found = read_directory(self._file(place), pack.end, pack.path, self.store.head.key)
        self._keep_directory(place, found)
        return found

    def _keep_directory(self, place: int, directory: Directory) -> None:
        self._directories[place] = directory
        self._directory_bytes += directory.memory
        while self._directory_bytes > DIRECTORIES_BYTES and len(self._directories) > 1:
            self._directory_bytes -= self._directories.popitem(last=False)[1].memory

    def _file(self, place: int) -> PackBytes:
        file = self._files.get(place)
        if file is None:
            file = self._files[place] = self.store.open_pack(self._packs[place].name)
            if len(self._files) > OPEN_PACKS:
                self._files.popitem(last=False)[1].close()
        else:
            self._files.move_to_end(place)
        return file

    # Chunks.

    def __contains__(self, key: bytes) -> bool:
        if not self._table.find(key):  # a put asks for each new chunk
            return False
        with self._lock:
            return self._best(key) is not None

    def frames_with(self, key: bytes) -> list[int]:
        """Return the numbers of all frames with the chunk of this key, damaged ones included. Raises
        FileError."""
        with self._lock:
            return [frame for _, frame, _ in self._places(key)]

    def chunks_with(self, key: bytes) -> list[int]:
        """Return the numbers of all chunks with this key, damaged ones included. Raises FileError."""
        with self._lock:
            return [number for number, _, _ in self._places(key)]

    def sound_places(self, key: bytes) -> list[tuple[int, int]]:
        """Return the number and the frame of all chunks with this key that are not known to be damaged.
        Raises FileError."""
        with self._lock:
            return [
                (number, frame)
                for number, frame, _ in self._places(key)
                if frame not in self._lost and number not in self._wrong
            ]

    def pack_of(self, frame: int) -> PackFacts:
        """Return the pack of a frame."""
        return self._packs[bisect_right(self._first_frames, frame) - 1]

    @contextmanager
    def hiding(self, packs: frozenset[int]) -> Iterator[None]:
        """Find no chunks of these packs, given by their places, for the time of the block. For one thread."""
        before, self._hidden = self._hidden, packs
        try:
            yield
        finally:
            self._hidden = before

    def facts(self, key: bytes) -> FrameFacts:
        """Return the frame of the chunk with this key. Raises FileError if the store has none."""
        with self._lock:
            return self.frame(self._place_of(key)[1])

    def extent(self, key: bytes) -> tuple[int, int]:
        """Return the offset of the chunk with this key in its frame, which `facts` returns, and its bytes.
        Raises FileError if the store has none."""
        with self._lock:
            return self._extent(self._place_of(key)[0])

    def length(self, key: bytes) -> int:
        """Return the bytes of the chunk with this key. Raises FileError if the store has none."""
        with self._lock:
            if self._elsewhere is not None and (known := self._elsewhere.length(key)) is not None:
                return known
            return self._extent(self._place_of(key)[0])[1]

    def lengths(self, keys: bytes) -> list[int]:
        """Return the bytes of the chunks with these keys. Raises FileError if the store lacks one."""
        found, last = list[int](), b""
        with self._lock:
            while len(found) < len(keys) // KEY_BYTES:
                at = KEY_BYTES * len(found)
                key = keys[at : at + KEY_BYTES]
                if key == last:
                    found.append(found[-1])  # the zeros of a sparse file are one chunk many times
                elif self._elsewhere is not None:
                    found.append(self.length(key))
                else:
                    directory, _, first, stop = self._run(keys, len(found), *self._place_of(key))
                    found += directory.lengths[first:stop]
                at = KEY_BYTES * (len(found) - 1)
                last = keys[at : at + KEY_BYTES]
        return found

    def read_many(self, keys: bytes) -> list[bytes | memoryview]:
        """Return the chunks with these keys, which their bytes have, as `chunk` does one by one.

        Neighbours of one frame, as nearly all of a file are, take one search. Raises FileError.
        """
        found: list[bytes | memoryview] = []
        with self._lock:
            while len(found) < len(keys) // KEY_BYTES:
                part, lengths = self._read_first(keys, len(found))
                if len(lengths) == 1:
                    found.append(part)
                else:
                    view = memoryview(part)
                    ends = accumulate(lengths)
                    found += [view[end - length : end] for end, length in zip(ends, lengths, strict=True)]
        return found

    def read_first(self, keys: bytes) -> tuple[bytes | memoryview, int]:
        """Return the first ones of the chunks with these keys joined, and how many they are: those that lie
        one after the other in a frame. Raises FileError."""
        with self._lock:
            part, lengths = self._read_first(keys, 0)
        return part, len(lengths)

    def _read_first(self, keys: bytes, at: int) -> tuple[bytes | memoryview, Sequence[int]]:
        """Return the chunk with key number `at` and those that follow it in its frame, joined, and the bytes
        of each. Raises FileError."""
        key = keys[KEY_BYTES * at : KEY_BYTES * (at + 1)]
        if self._elsewhere is None:
            try:
                part, lengths = self._read_run(keys, at)
            except FileError as error:
                chunk = self._chunk_instead(key, error)
                return chunk, (len(chunk),)
            if lengths:
                return part, lengths
        chunk = self.chunk(key)
        return chunk, (len(chunk),)

    def _chunk_instead(self, key: bytes, error: FileError) -> bytes:
        """Return a chunk from another place than the one that failed with `error`, or raise that."""
        try:
            return self.chunk(key)
        except FileError:
            raise error from None

    def _read_run(self, keys: bytes, at: int) -> tuple[memoryview, Sequence[int]]:
        """Return the chunk with key number `at` and those after it, as far as they follow one another in a
        frame, joined, and the bytes of each. None if any has other bytes, so that whoever asks looks for each
        in other places, too.

        Raises FileError for a frame that cannot be decoded.
        """
        number, frame = self._place_of(keys[KEY_BYTES * at : KEY_BYTES * (at + 1)])
        content = self._content(frame)
        directory, own, first, stop = self._run(keys, at, number, frame)
        lengths = array("Q", directory.lengths[first:stop])
        start = sum(directory.lengths[own:first])
        part = memoryview(content)[start : start + sum(lengths)]
        names = name_parts(part, lengths, self.store.head.key)
        found = b"".join(map(itemgetter(0), _NAMED_KEYS.iter_unpack(names)))
        if found != keys[KEY_BYTES * at : KEY_BYTES * (at + len(lengths))]:
            return memoryview(b""), ()
        return part, lengths

    def _run(self, keys: bytes, at: int, number: int, frame: int) -> tuple[Directory, int, int, int]:
        """Return where the chunk with key number `at`, which has this number, and those after it follow one
        another in a frame: the directory, and in it the numbers of the frame's first chunk, the run's first
        and the one after it."""
        pack = self.pack_of(frame)
        directory = self._directory(pack.place)
        own, place = frame - pack.first_frame, number - pack.first_chunk
        most = min(directory.first_chunks[own + 1], place + len(keys) // KEY_BYTES - at)
        wanted = keys[KEY_BYTES * at : KEY_BYTES * (at + most - place)]
        stop = most
        if directory.keys[KEY_BYTES * place : KEY_BYTES * most] != wanted:
            stop = place + 1
            while (
                directory.keys[KEY_BYTES * stop : KEY_BYTES * (stop + 1)]
                == wanted[KEY_BYTES * (stop - place) : KEY_BYTES * (stop - place + 1)]
            ):
                stop += 1
        return directory, directory.first_chunks[own], place, stop

    def chunk(self, key: bytes) -> bytes:
        """Return the chunk with this key, which its bytes have. Raises FileError."""
        with self._lock:
            if (known := self._known(key)) is not None:
                return known
            found: FileError | None = None
            while True:
                try:
                    number, frame = self._place_of(key)
                except FileError:
                    if found is not None:
                        raise found from None
                    raise
                try:
                    return self._chunk_at(key, number, frame)
                except FileError as error:
                    # What failed is lost now, or its bases have other places: each turn has less to try.
                    found = found or error

    def _known(self, key: bytes) -> bytes | None:
        """Return a chunk that is elsewhere, too, and still the same there."""
        found = None if self._elsewhere is None else self._elsewhere.chunk(key)
        return found if found is not None and self.key_of(found) == key else None

    def add_frames(
        self,
        keys: Iterable[bytes],
        found: set[int],
        bases: set[bytes],
        most: int,
        had: Container[bytes] = frozenset(),
    ) -> None:
        """Add the numbers of the frames that reading these chunks takes to `found`, and the keys of their
        bases to `bases`, of which `most` are enough. `had`: chunks that need no frame, as those that are
        elsewhere. Chunks that no pack has are passed over.
        """
        with self._lock:
            todo = list(keys)
            while todo:
                key = todo.pop()
                if (self._elsewhere is not None and key in self._elsewhere) or key in had:
                    continue
                place = self._best(key)
                if place is not None and (number := place[1]) not in found:
                    found.add(number)
                    own = split_keys(self.frame(number).bases)
                    if len(bases) < most:
                        bases.update(own)
                    todo += own

    def _chunk_at(self, key: bytes, number: int, frame: int) -> bytes:
        before = len(self._lost)
        try:
            content = self._content(frame)
        except FileError:
            if len(self._lost) == before:
                self._lost.add(frame)
            raise
        start, length = self._extent(number)
        chunk = content[start : start + length]
        if self.key_of(chunk) != key:
            self._find_wrong(number, frame)
            raise damaged(self.frame(frame).pack.path, f"chunk {key.hex()}", "other bytes")
        return chunk

    def _find_wrong(self, chunk: int, frame: int) -> None:
        """Note what is to blame for a chunk with wrong bytes: the chunk alone, if its frame is no delta, so
        that others of the frame can be read. Else those of its bases that have wrong bytes, or the frame.
        """
        before = len(self._lost) + len(self._wrong)
        try:
            if self.frame(frame).bases:
                self._find_wrong_bases(frame)
            else:
                self._wrong.add(chunk)
        finally:
            # Whoever asks tries again as long as a place is left. So one place goes each time, also if a base
            # is found wrong earlier and has no other place.
            if len(self._lost) + len(self._wrong) == before:
                self._lost.add(frame)
            # Frames that were decoded with the wrong bytes are wrong, too.
            self._decoded.clear()
            self._decoded_bytes = 0

    def _find_wrong_bases(self, frame: int) -> None:
        given = dict[bytes, bytes]()
        for one in self._needed((frame,), given):
            for key in split_keys(one.bases):
                if key in given:
                    continue
                number, base = self._place_of(key)
                start, length = self._extent(number)
                if self.key_of(self._content(base)[start : start + length]) != key:
                    if self.frame(base).bases:
                        self._lost.add(base)
                    else:
                        self._wrong.add(number)

    def key_of(self, content: bytes | memoryview) -> bytes:
        """Return the key of a chunk."""
        return blake3(content, key=self.store.head.key).digest(KEY_BYTES)

    def _frame_at(self, chunk: int) -> tuple[int, Directory, int]:
        """Return the number of a chunk's frame, the directory, and the number of the frame in it."""
        place = bisect_right(self._first_chunks, chunk) - 1
        # A pack without chunks begins where the next one does, and is not found.
        pack, directory = self._packs[place], self._directory(place)
        at = bisect_right(directory.first_chunks, chunk - pack.first_chunk) - 1
        return pack.first_frame + at, directory, at

    def _extent(self, chunk: int) -> tuple[int, int]:
        """Return the offset of a chunk in its frame, and its bytes."""
        place = bisect_right(self._first_chunks, chunk) - 1
        _, directory, at = self._frame_at(chunk)
        own = chunk - self._packs[place].first_chunk
        return sum(directory.lengths[directory.first_chunks[at] : own]), directory.lengths[own]

    def _places(self, key: bytes) -> list[tuple[int, int, int]]:
        """Return the number, the frame and its depth of all chunks with this key."""
        found = []
        for number in self._table.find(key):
            place = bisect_right(self._first_chunks, number) - 1
            if number >= self.chunks or place in self._hidden:
                continue  # of a pack that was refused, or is to be removed
            own = KEY_BYTES * (number - self._packs[place].first_chunk)
            frame, directory, at = self._frame_at(number)
            if directory.keys[own : own + KEY_BYTES] == key:
                found.append((number, frame, directory.depths[at]))
        return found

    def _best(self, key: bytes) -> tuple[int, int] | None:
        """Return the number and the frame of the chunk that is read for a key."""
        found = [one for one in self._places(key) if one[1] not in self._lost and one[0] not in self._wrong]
        if not found:
            return None
        number, frame, _ = min(found, key=lambda one: (one[2], one[0]))
        return number, frame

    def _place_of(self, key: bytes) -> tuple[int, int]:
        found = self._best(key)
        if found is None:
            why = str(self.damaged[0]) if self.damaged else self.store.where_missing
            shown = printable(self.store.label)
            raise FileError(self.store.label, f"{shown}: no pack has chunk {key.hex()}; {why}")
        return found

    def _leave_out_lost(self) -> None:
        """Note deltas whose bases no pack has, or none that lies below them, as lost."""
        missing = 0
        for pack in self._packs:
            if pack.depth:
                missing += self._table.missing(self._bases_of(pack))
        if missing:
            for number in self.deltas():
                if any(not self._has_below(number, key) for key in split_keys(self.frame(number).bases)):
                    self._lost.add(number)

    def _bases_of(self, pack: PackFacts) -> bytes:
        """Return the keys of all bases of a pack, without the rest of its directory if that is not known."""
        known = self._directories.get(pack.place)
        if known is not None:
            return known.bases
        return read_bases(self._file(pack.place), pack.end, pack.path, self.store.head.key)

    def _has_below(self, frame: int, key: bytes) -> bool:
        depth = self.frame(frame).depth
        return any(
            one[2] < depth and one[1] not in self._lost and one[0] not in self._wrong
            for one in self._places(key)
        )

    def deltas(self) -> Iterator[int]:
        """Yield the numbers of all deltas, those of less depth first. Raises FileError."""
        for depth in range(1, DEPTH_MOST + 1):
            for pack in self._packs:
                if pack.depth >= depth:
                    depths = self.directory(pack).depths
                    yield from [pack.first_frame + at for at, one in enumerate(depths) if one == depth]

    def is_lost(self, frame: int) -> bool:
        """Return whether a frame is known to be damaged, or without its bases."""
        return frame in self._lost

    # Frames, from the bottom up.

    def content(self, frame: int) -> bytes:
        """Return a decoded frame by its number. Raises FileError."""
        with self._lock:
            return self._content(frame)

    def _content(self, frame: int) -> bytes:
        """Return a decoded frame. Raises FileError."""
        known = self._decoded.get(frame)
        if known is not None:
            self._decoded.move_to_end(frame)
            return known
        decoded: dict[int, bytes] = {}
        given: dict[bytes, bytes] = {}
        one = self.frame(frame)
        runs: dict[int, Sequence[_Run]] = {}
        for needed in self._needed((frame,), given, runs) if one.bases else (one,):
            content = self._decoded.get(needed.number)
            if content is None:
                content = self._decode(needed, runs.get(needed.number, ()), decoded, given)
            decoded[needed.number] = content
        for number, content in decoded.items():
            self._keep(number, content)
        return decoded[frame]

    def needed(self, frame: int) -> list[FrameFacts]:
        """Return a frame and all that it is made against, bases first.

        Raises FileError unless they exist, lie below it and can be decoded in bounded memory.
        """
        with self._lock:
            return self._needed((frame,))

    def _needed(
        self,
        frames: Iterable[int],
        given: dict[bytes, bytes] | None = None,
        runs: dict[int, Sequence[_Run]] | None = None,
    ) -> list[FrameFacts]:
        """Return some frames and all that they are made against, bases first.

        `given`: takes the bases that are elsewhere, whose frames are not needed. `runs`: takes where the
        bases of each frame are; then frames that are decoded already need nothing. Raises FileError if bases
        are not below their frames, or are too many.
        """
        todo = [self.frame(number) for number in frames]
        met = {one.number: one for one in todo}
        found, size, bases = dict[int, FrameFacts](), 0, 0
        while todo:
            one = todo.pop()
            if one.number in found:
                continue
            found[one.number] = one
            size, bases = size + one.size, bases + len(one.bases) // KEY_BYTES
            if size > DECODED_BYTES or bases > CLOSURE_BASES:
                raise damaged(
                    one.pack.path,
                    f"a frame that needs {DECODED_BYTES} bytes and {CLOSURE_BASES} bases at most",
                    "one that needs more",
                )
            if runs is not None and one.number in self._decoded:
                continue
            own = []
            for run in self._base_runs(one.bases, given):
                own.append(run)
                if run.frame is None:
                    size += run.length
                    continue
                base = met.get(run.frame)
                if base is None:
                    base = met[run.frame] = self.frame(run.frame)
                    todo.append(base)
                if base.depth >= one.depth:
                    raise damaged(one.pack.path, "bases of less depth", f"depth {base.depth}")
            if runs is not None:
                runs[one.number] = own
        return sorted(found.values(), key=lambda one: one.depth)

    def _base_runs(self, keys: bytes, given: dict[bytes, bytes] | None) -> Iterator[_Run]:
        """Yield where the chunks with these keys are. `given` is asked first."""
        at, end = 0, len(keys) // KEY_BYTES
        while at < end:
            key = keys[KEY_BYTES * at : KEY_BYTES * (at + 1)]
            if given is not None and (key in given or self._give(key, given)):
                yield _Run(key, None, 0, len(given[key]))
                at += 1
                continue
            number, frame = self._place_of(key)
            if self._elsewhere is not None or self._wrong:
                yield _Run(key, frame, *self._extent(number))  # its neighbours may be elsewhere, or damaged
                at += 1
                continue
            directory, own, first, stop = self._run(keys, at, number, frame)
            start, length = sum(directory.lengths[own:first]), sum(directory.lengths[first:stop])
            yield _Run(key, frame, start, length)
            at += stop - first

    def _give(self, key: bytes, given: dict[bytes, bytes]) -> bool:
        known = self._known(key)
        if known is not None:
            given[key] = known
        return known is not None

    def _decode(
        self, frame: FrameFacts, runs: Sequence[_Run], decoded: dict[int, bytes], given: dict[bytes, bytes]
    ) -> bytes:
        """Return a frame whose bases, at `runs`, are decoded or given."""
        prefix = b""
        if runs:
            if sum([run.length for run in runs]) > PREFIX_BYTES:
                self._lost.add(frame.number)
                raise damaged(frame.pack.path, f"bases of {PREFIX_BYTES} bytes", "more")
            parts = [
                given[run.first]
                if run.frame is None
                else memoryview(decoded[run.frame])[run.start : run.start + run.length]
                for run in runs
            ]
            prefix = b"".join(parts)
        self.frames_read += 1
        try:
            data = read_frame(self._file(frame.pack.place), frame.offset, frame.stored, frame.pack.path)
            return decode(StoredFrame(frame.kind, data), frame.size, prefix)
        except FileError:
            self._lost.add(frame.number)
            raise
        except FrameError as error:
            self._lost.add(frame.number)
            raise damaged(frame.pack.path, f"a frame at byte {frame.offset}", str(error)) from error

    def _keep(self, number: int, content: bytes) -> None:
        if number not in self._decoded:
            self._decoded[number] = content
            self._decoded_bytes += len(content)
        while self._decoded_bytes > CACHED_BYTES:
            self._decoded_bytes -= len(self._decoded.popitem(last=False)[1])

    # Streams.

    def key_parts(self, ref: StreamRef, level: int = 0) -> Iterator[bytes]:
        """Yield the keys of one level of a stream, part by part: by default those of its content.

        Memory is bounded by a part. Raises FileError for a list, or more keys, than any writer makes.
        """
        if level == ref.level:
            parts: Iterator[bytes] = iter((ref.keys,))
        else:
            parts = self._list_parts(ref, level)
        count = 0
        for part in parts:
            count += len(part) // KEY_BYTES
            if not level and (count - 1) * self.least_chunk > ref.size:
                raise damaged(self.store.label, f"the keys of {ref.size} bytes", f"{count} or more")
            yield part

    def _list_parts(self, ref: StreamRef, level: int) -> Iterator[bytes]:
        rest, size, count = b"", 0, 0
        for part in self.key_parts(ref, level + 1):
            for key in split_keys(part):
                chunk = self.chunk(key)
                size, count = size + len(chunk), count + 1
                check_list(self.store.label, size, count, len(chunk))
                rest += chunk
                whole = len(rest) // KEY_BYTES * KEY_BYTES
                yield rest[:whole]
                rest = rest[whole:]
        if rest:
            raise damaged(self.store.label, "a list of keys", f"{len(rest)} bytes after the last one")

    @property
    def least_chunk(self) -> int:
        """Bytes of the shortest chunk of a file or a tree but for the last one of each."""
        return min(LIST_PARAMS.min_size, self.store.head.params.min_size)

    def expand(self, ref: StreamRef) -> bytes:
        """Return the keys of the chunks of a stream's content. Raises FileError."""
        return b"".join(self.key_parts(ref))


def check_list(label: bytes, size: int, count: int, longest: int) -> None:
    """Raise FileError if no writer makes a list of keys that begins with `count` chunks of `size` bytes.

    So a few chunks that are named again and again cost a reader no more than a list of their bytes.
    """
    least, most = LIST_PARAMS.min_size, LIST_PARAMS.max_size
    if size > LIST_BYTES or (count - 1) * least > size or longest > most:
        raise damaged(
            label,
            f"a list of keys of {LIST_BYTES} bytes at most, in chunks of {least} to {most}",
            f"{size} bytes in {count} chunks",
        )
