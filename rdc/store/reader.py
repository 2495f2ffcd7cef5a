"""StoreReader: chunks by their keys, and streams of chunks, from the packs of a store.

The directories of all packs are read once: about 150 bytes of memory a chunk. A frame is decoded once while
it stays among the last CACHED_BYTES. The frames that a delta needs are decoded from the bottom up, without
recursion and each once, so a chain of bases costs its length.
"""

from __future__ import annotations

from _thread import allocate_lock
from array import array
from bisect import bisect_right
from collections import OrderedDict

from blake3 import blake3

from rdc.errors import FileError, printable
from rdc.lean.records import dataclass
from rdc.store.directory import DEPTH_MOST, KEY_BYTES
from rdc.store.frames import PREFIX_BYTES, FrameError, FrameKind, StoredFrame, decode
from rdc.store.pack_file import OpenPack, damaged
from rdc.store.tree_rows import StreamRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.store.place import PackStore

CACHED_BYTES = 64 << 20
"""Bytes of decoded frames that stay in memory."""

DECODED_BYTES = 256 << 20
"""Most bytes that one chunk may need decoded. A writer makes no delta that needs more than half of them."""

LIST_BYTES = 512 << 20
"""Most bytes of the keys of one stream: those of 2 TiB."""


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """One frame of the open packs."""

    pack: OpenPack
    offset: int
    stored: int
    size: int
    kind: FrameKind
    generation: int
    depth: int
    bases: bytes
    first: int
    """Number of its first chunk."""
    chunks: int


class StoreReader:
    """The open packs of a store. Threads may read from it; one alone adds to it."""

    def __init__(self, store: PackStore) -> None:
        """Read the directories of all packs. Raises FileError if they cannot be listed.

        A pack that cannot be read is noted in `damaged` and left out: its chunks are missing, and others are
        not.
        """
        self.store = store
        self._packs: dict[bytes, OpenPack] = {}
        self._frames: list[FrameFacts] = []
        self._firsts: array[int] = array("Q")
        """Number of the first chunk of each frame."""
        self._starts: array[int] = array("I")
        """Offset of each chunk in its frame."""
        self._lengths: array[int] = array("I")
        self._pack_firsts: dict[bytes, int] = {}
        """Number of the first chunk of each pack."""
        self._index: dict[bytes, int] = {}
        """The number of the chunk with each key: of several, one that needs the fewest bases."""
        self._decoded: OrderedDict[int, bytes] = OrderedDict()
        self._decoded_bytes = 0
        self.frames_read = 0
        self.damaged: list[FileError] = []
        """The errors of packs that cannot be read."""
        self._lock = allocate_lock()
        try:
            for name in store.pack_names():
                try:
                    pack = store.open_pack(name)
                except FileError as error:
                    self.damaged.append(error)
                else:
                    self.add(pack)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all packs. May be called again."""
        while self._packs:
            self._packs.popitem()[1].close()
        self._decoded.clear()

    def add(self, pack: OpenPack) -> None:
        """Take over another pack."""
        self._packs[pack.name] = pack
        self._pack_firsts[pack.name] = len(self._lengths)
        offset, chunk = 8, 0
        keys, lengths = pack.directory.keys, pack.directory.lengths
        for row in pack.directory.frames:
            first = len(self._lengths)
            self._firsts.append(first)
            frame = FrameFacts(
                pack,
                offset,
                row.stored,
                row.size,
                row.kind,
                row.generation,
                row.depth,
                row.bases,
                first,
                row.chunks,
            )
            self._frames.append(frame)
            start = 0
            for number in range(chunk, chunk + row.chunks):
                key = keys[KEY_BYTES * number : KEY_BYTES * (number + 1)]
                known = self._index.get(key)
                if known is None or self.frame_of(known).depth > row.depth:
                    self._index[key] = len(self._lengths)
                self._starts.append(start)
                self._lengths.append(lengths[number])
                start += lengths[number]
            chunk += row.chunks
            offset += row.stored

    def __contains__(self, key: bytes) -> bool:
        return key in self._index

    @property
    def packs(self) -> tuple[OpenPack, ...]:
        return tuple(self._packs.values())

    @property
    def frames(self) -> list[FrameFacts]:
        """All frames, in the order of their numbers."""
        return self._frames

    def frame_of(self, chunk: int) -> FrameFacts:
        """Return the frame of a chunk."""
        return self._frames[bisect_right(self._firsts, chunk) - 1]

    def facts(self, key: bytes) -> FrameFacts:
        """Return the frame of the chunk with this key. Raises FileError if the store has none."""
        return self.frame_of(self._number(key))

    def length(self, key: bytes) -> int:
        """Return the bytes of the chunk with this key. Raises FileError if the store has none."""
        return self._lengths[self._number(key)]

    def chunk(self, key: bytes) -> bytes:
        """Return the chunk with this key, which its bytes have. Raises FileError."""
        number = self._number(key)
        frame = bisect_right(self._firsts, number) - 1
        start = self._starts[number]
        with self._lock:
            content = self._content(frame)[start : start + self._lengths[number]]
        if self.key_of(content) != key:
            raise damaged(self._frames[frame].pack.path, f"chunk {key.hex()}", "other bytes")
        return content

    def key_of(self, content: bytes | memoryview) -> bytes:
        """Return the key of a chunk."""
        return blake3(content, key=self.store.head.key).digest(KEY_BYTES)

    def _number(self, key: bytes) -> int:
        number = self._index.get(key)
        if number is None:
            why = (
                str(self.damaged[0])
                if self.damaged
                else "a pack is missing: restore it from a copy of the store"
            )
            shown = printable(self.store.label)
            raise FileError(self.store.label, f"{shown}: no pack has chunk {key.hex()}; {why}")
        return number

    def forget_lost(self) -> None:
        """Leave out chunks of deltas whose bases no pack has, so that a put stores them again."""
        for frame in sorted(self._frames, key=lambda one: one.depth):
            bases = [frame.bases[at : at + KEY_BYTES] for at in range(0, len(frame.bases), KEY_BYTES)]
            if all(key in self._index for key in bases):
                continue
            for number, key in enumerate(self.chunks_of(frame)[0], frame.first):
                if self._index.get(key) == number:
                    del self._index[key]

    @property
    def chunks(self) -> int:
        """The number of chunks, those that several packs have included."""
        return len(self._lengths)

    def chunks_of(self, frame: FrameFacts) -> tuple[list[bytes], array[int]]:
        """Return the keys and lengths of the chunks of a frame."""
        first = frame.first - self._pack_firsts[frame.pack.name]
        keys = frame.pack.directory.keys
        picked = range(KEY_BYTES * first, KEY_BYTES * (first + frame.chunks), KEY_BYTES)
        return [keys[at : at + KEY_BYTES] for at in picked], self._lengths[
            frame.first : frame.first + frame.chunks
        ]

    # Frames, from the bottom up.

    def content(self, frame: int) -> bytes:
        """Return a decoded frame by its number. Raises FileError."""
        with self._lock:
            return self._content(frame)

    def check_bases(self, frame: int) -> None:
        """Raise FileError unless a frame's bases exist, lie below it and can be decoded in bounded memory."""
        self._needed(frame)

    def _content(self, frame: int) -> bytes:
        """Return a decoded frame. Raises FileError."""
        known = self._decoded.get(frame)
        if known is not None:
            self._decoded.move_to_end(frame)
            return known
        decoded: dict[int, bytes] = {}
        for number in self._needed(frame):
            content = self._decoded.get(number)
            decoded[number] = self._decode(number, decoded) if content is None else content
        for number, content in decoded.items():
            self._keep(number, content)
        return decoded[frame]

    def closure_bytes(self, keys: Iterable[bytes]) -> int:
        """Return how many bytes have to be decoded to read these chunks, whatever is in memory. Raises
        FileError for more than DECODED_BYTES."""
        found: set[int] = set()
        for key in keys:
            found.update(self._needed(bisect_right(self._firsts, self._number(key)) - 1))
        return sum([self._frames[number].size for number in found])

    def _needed(self, frame: int) -> list[int]:
        """Return the numbers of a frame and of all that it is made against, bases first.

        Raises FileError if they are not below it, or are more than DECODED_BYTES.
        """
        found, todo, size = {frame}, [frame], 0
        while todo:
            one = self._frames[todo.pop()]
            size += one.size
            if size > DECODED_BYTES:
                raise damaged(
                    one.pack.path, f"a frame that needs {DECODED_BYTES} bytes", "one that needs more"
                )
            for at in range(0, len(one.bases), KEY_BYTES):
                base = bisect_right(self._firsts, self._number(one.bases[at : at + KEY_BYTES])) - 1
                if self._frames[base].depth >= one.depth or one.depth > DEPTH_MOST:
                    raise damaged(one.pack.path, "bases of less depth", f"depth {self._frames[base].depth}")
                if base not in found:
                    found.add(base)
                    todo.append(base)
        return sorted(found, key=lambda number: self._frames[number].depth)

    def _decode(self, number: int, decoded: dict[int, bytes]) -> bytes:
        frame = self._frames[number]
        prefix = b""
        if frame.bases:
            parts, size = [], 0
            for at in range(0, len(frame.bases), KEY_BYTES):
                chunk = self._index[frame.bases[at : at + KEY_BYTES]]
                start, length = self._starts[chunk], self._lengths[chunk]
                size += length
                if size > PREFIX_BYTES:
                    raise damaged(frame.pack.path, f"bases of {PREFIX_BYTES} bytes", "more")
                parts.append(decoded[bisect_right(self._firsts, chunk) - 1][start : start + length])
            prefix = b"".join(parts)
        self.frames_read += 1
        stored = StoredFrame(frame.kind, frame.pack.read(frame.offset, frame.stored))
        try:
            return decode(stored, frame.size, prefix)
        except FrameError as error:
            raise damaged(frame.pack.path, f"a frame at byte {frame.offset}", str(error)) from error

    def _keep(self, number: int, content: bytes) -> None:
        if number not in self._decoded:
            self._decoded[number] = content
            self._decoded_bytes += len(content)
        while self._decoded_bytes > CACHED_BYTES:
            self._decoded_bytes -= len(self._decoded.popitem(last=False)[1])

    # Streams.

    def expand(self, ref: StreamRef) -> bytes:
        """Return the keys of the chunks of a stream's content. Raises FileError."""
        keys = ref.keys
        for _ in range(ref.level):
            parts, size = [], 0
            for at in range(0, len(keys), KEY_BYTES):
                parts.append(self.chunk(keys[at : at + KEY_BYTES]))
                size += len(parts[-1])
                if size > LIST_BYTES:
                    raise damaged(self.store.label, f"a list of {LIST_BYTES} bytes", "a longer one")
            keys = b"".join(parts)
            if len(keys) % KEY_BYTES:
                raise damaged(self.store.label, "a list of keys", f"{len(keys)} bytes")
        return keys

    def spans(self, ref: StreamRef) -> Iterator[bytes]:
        """Yield a stream chunk by chunk, all of its bytes. Raises FileError."""
        keys, done = self.expand(ref), 0
        for at in range(0, len(keys), KEY_BYTES):
            content = self.chunk(keys[at : at + KEY_BYTES])
            done += len(content)
            yield content
        if done != ref.size:
            raise damaged(self.store.label, f"a stream of {ref.size} bytes", f"{done}")
