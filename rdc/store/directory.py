"""The directory of a pack: columns of its frames and of the chunks in them, to bytes and back.

Every number is checked when a directory is read: the columns are as long as the head says, the lengths of
chunks add up to their frames', the frames' to the pack's, and only a delta has bases. A large store has
millions of frames, most of which nobody asks for: C checks them, and offsets are added up when they are
needed.
"""

from __future__ import annotations

import struct
from array import array
from itertools import accumulate

from rdc.kernel import frames_are_sound
from rdc.lean.records import Record
from rdc.lean.zstd import zstandard
from rdc.model.entries import little_endian, little_endian_integers
from rdc.store.frames import FRAME_BYTES, FrameError, FrameKind, inflate

KEY_BYTES = 16
"""Bytes of a chunk's key: the first ones of its keyed BLAKE3. Two chunks of 2^50 have the same with a
probability of 2^-29."""

PACK_BYTES = 256 << 20
"""A pack is ended once its frames have this many bytes."""

PACK_ROWS = 1 << 20
"""A pack is ended once it has this many chunks or bases, so that its directory stays small."""

DEPTH_MOST = 16
"""Most frames from one to the deepest base that it needs, this one left out."""

DIRECTORY_BYTES = 80 << 20
"""Most bytes of a directory before compression: what PACK_ROWS chunks, bases and frames take, and the rows of
one frame more."""

FIRST_OFFSET = 8
"""Offset of the first frame in a pack, whose magic number is before it."""

_HEAD = struct.Struct("<III")
_FRAME_WIDTHS = (1, 4, 4, 4, 2, 1, 2)
"""Bytes of kind, stored bytes, bytes, chunks, generation, depth and bases of a frame."""

BASES_MOST = 4096
"""Most bases of one frame, so that looking them up takes no longer than decoding it."""


class FrameRow(Record):
    """The entry of one frame in a directory."""

    kind: FrameKind
    stored: int
    """Bytes in the pack."""
    size: int
    """Bytes that it decodes to."""
    chunks: int
    generation: int
    """0 without bases, else one more than the newest base's: how many versions lie before it."""
    depth: int
    """0 without bases, else more than each base's. So no chain of bases is a circle."""
    bases: bytes
    """Keys of the chunks that it was made against."""


class Directory:
    """The frames of a pack as columns, a row each, and their chunks in their order."""

    __slots__ = (
        "_first_bases",
        "_first_chunks",
        "_offsets",
        "base_counts",
        "bases",
        "counts",
        "depths",
        "generations",
        "keys",
        "kinds",
        "lengths",
        "sizes",
        "stored_sizes",
    )

    def __init__(
        self,
        kinds: bytes,
        stored_sizes: array[int],
        sizes: array[int],
        counts: array[int],
        generations: array[int],
        depths: bytes,
        base_counts: array[int],
        bases: bytes,
        keys: bytes,
        lengths: array[int],
    ) -> None:
        """See the module. `counts`: chunks of each frame. `bases`, `keys`: KEY_BYTES each."""
        self.kinds = kinds
        self.stored_sizes = stored_sizes
        self.sizes = sizes
        self.counts = counts
        self.generations = generations
        self.depths = depths
        self.base_counts = base_counts
        self.bases = bases
        self.keys = keys
        self.lengths = lengths
        self._offsets: array[int] | None = None
        self._first_chunks: array[int] | None = None
        self._first_bases: array[int] | None = None

    @property
    def offsets(self) -> array[int]:
        """The offset of each frame in the pack, and of the directory after them."""
        if self._offsets is None:
            self._offsets = array("Q", accumulate(self.stored_sizes, initial=FIRST_OFFSET))
        return self._offsets

    @property
    def first_chunks(self) -> array[int]:
        """The number of each frame's first chunk, and the number of all."""
        if self._first_chunks is None:
            self._first_chunks = array("I", accumulate(self.counts, initial=0))
        return self._first_chunks

    @property
    def first_bases(self) -> array[int]:
        """The number of each frame's first base, and the number of all."""
        if self._first_bases is None:
            self._first_bases = array("I", accumulate(self.base_counts, initial=0))
        return self._first_bases

    @property
    def frames(self) -> int:
        """The number of frames."""
        return len(self.kinds)

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.lengths)

    @property
    def stored(self) -> int:
        """Bytes of all frames in the pack."""
        return sum(self.stored_sizes)

    @property
    def memory(self) -> int:
        """About how many bytes the columns take."""
        return 48 * self.frames + len(self.bases) + (KEY_BYTES + 4) * self.chunks

    def bases_of(self, frame: int) -> bytes:
        """Return the keys of the bases of a frame, joined."""
        if not self.base_counts[frame]:
            return b""
        return self.bases[KEY_BYTES * self.first_bases[frame] : KEY_BYTES * self.first_bases[frame + 1]]

    def keys_of(self, frame: int) -> list[bytes]:
        """Return the keys of the chunks of a frame."""
        first, stop = self.first_chunks[frame], self.first_chunks[frame + 1]
        return split_keys(self.keys[KEY_BYTES * first : KEY_BYTES * stop])

    def row(self, frame: int) -> FrameRow:
        """Return what is said of a frame."""
        return FrameRow(
            FrameKind(self.kinds[frame]),
            self.stored_sizes[frame],
            self.sizes[frame],
            self.counts[frame],
            self.generations[frame],
            self.depths[frame],
            self.bases_of(frame),
        )


def split_keys(keys: bytes) -> list[bytes]:
    """Return joined keys one by one."""
    return [keys[at : at + KEY_BYTES] for at in range(0, len(keys), KEY_BYTES)]


class DirectoryBuilder:
    """Gathers the rows of a directory while its pack is written."""

    def __init__(self) -> None:
        self._kinds, self._depths = bytearray(), bytearray()
        self._stored: array[int] = array("I")
        self._sizes: array[int] = array("I")
        self._counts: array[int] = array("I")
        self._generations: array[int] = array("H")
        self._base_counts: array[int] = array("H")
        self._bases, self._keys = bytearray(), bytearray()
        self._lengths: array[int] = array("I")

    def add(self, row: FrameRow, keys: list[bytes], lengths: list[int]) -> None:
        """Append a frame and its chunks."""
        self._kinds.append(row.kind)
        self._stored.append(row.stored)
        self._sizes.append(row.size)
        self._counts.append(row.chunks)
        self._generations.append(row.generation)
        self._depths.append(row.depth)
        self._base_counts.append(len(row.bases) // KEY_BYTES)
        self._bases += row.bases
        self._keys += b"".join(keys)
        self._lengths.extend(lengths)

    @property
    def is_full(self) -> bool:
        """Return whether it has as many rows as a pack should."""
        return len(self._lengths) >= PACK_ROWS or len(self._bases) >= KEY_BYTES * PACK_ROWS

    def directory(self) -> Directory:
        """Return what was gathered."""
        return Directory(
            bytes(self._kinds),
            self._stored,
            self._sizes,
            self._counts,
            self._generations,
            bytes(self._depths),
            self._base_counts,
            bytes(self._bases),
            bytes(self._keys),
            self._lengths,
        )


def encode_directory(directory: Directory) -> bytes:
    """Return the columns of a directory as one zstd frame."""
    columns = (
        directory.kinds,
        little_endian(directory.stored_sizes),
        little_endian(directory.sizes),
        little_endian(directory.counts),
        little_endian(directory.generations),
        directory.depths,
        little_endian(directory.base_counts),
        directory.bases,
        directory.keys,
        little_endian(directory.lengths),
    )
    head = _HEAD.pack(directory.frames, directory.chunks, len(directory.bases) // KEY_BYTES)
    return zstandard.ZstdCompressor(level=3, write_content_size=True).compress(head + b"".join(columns))


def chunks_at_most(data: bytes) -> int:
    """Return a bound on the number of chunks of the directory that begins with `data`. Raises ValueError."""
    return _size_of(data) // (KEY_BYTES + 4)


def _size_of(data: bytes) -> int:
    try:
        size = zstandard.get_frame_parameters(data).content_size
    except zstandard.ZstdError as error:
        raise ValueError(f"expected the columns of a directory: {error}") from error
    if not _HEAD.size <= size <= DIRECTORY_BYTES:
        raise ValueError(f"expected a directory of at most {DIRECTORY_BYTES} bytes, found {size}")
    return size


def decode_directory(data: bytes, stored: int) -> Directory:
    """Return the directory in `data`, of a pack whose frames have `stored` bytes. Raises ValueError."""
    size = _size_of(data)
    try:
        columns = inflate(data, size)
    except FrameError as error:
        raise ValueError(str(error)) from error
    frames, chunks, bases = _HEAD.unpack_from(columns)
    expected = _HEAD.size + sum(_FRAME_WIDTHS) * frames + KEY_BYTES * bases + (KEY_BYTES + 4) * chunks
    if size != expected:
        raise ValueError(f"expected columns of {expected} bytes, found {size}")
    return _checked(columns, frames, chunks, bases, stored)


def decode_bases(data: bytes) -> bytes:
    """Return the keys of all bases of a directory that was decoded before. Raises ValueError."""
    try:
        columns = inflate(data, _size_of(data))
    except FrameError as error:
        raise ValueError(str(error)) from error
    frames, _, bases = _HEAD.unpack_from(columns)
    at = _HEAD.size + sum(_FRAME_WIDTHS) * frames
    return columns[at : at + KEY_BYTES * bases]


def _checked(columns: bytes, frames: int, chunks: int, bases: int, stored: int) -> Directory:
    at = _HEAD.size
    parts: list[bytes] = []
    for width, rows in (
        *((width, frames) for width in _FRAME_WIDTHS),
        (KEY_BYTES, bases),
        (KEY_BYTES, chunks),
        (4, chunks),
    ):
        parts.append(columns[at : at + width * rows])
        at += width * rows
    kinds, stored_sizes, sizes, counts, generations, depths, base_counts, joined_bases, keys, lengths = parts
    found = Directory(
        kinds,
        little_endian_integers("I", stored_sizes),
        little_endian_integers("I", sizes),
        little_endian_integers("I", counts),
        little_endian_integers("H", generations),
        depths,
        little_endian_integers("H", base_counts),
        joined_bases,
        keys,
        little_endian_integers("I", lengths),
    )
    numbers = (kinds, stored_sizes, sizes, counts, generations, depths, base_counts, lengths)
    if not frames_are_sound(numbers, bases, stored, (FRAME_BYTES, DEPTH_MOST, BASES_MOST)):
        raise ValueError(_fault(found, bases, stored))
    return found


def _fault(found: Directory, bases: int, stored: int) -> str:
    """Say what is wrong with the rows of a directory that a reader does not take."""
    sums = sum(found.counts), sum(found.base_counts), sum(found.stored_sizes)
    if sums != (found.chunks, bases, stored):
        return "expected numbers of chunks, bases and bytes that add up, found others"
    for column, most, what in (
        (found.kinds, max(FrameKind), "a kind of frame"),
        (found.sizes, FRAME_BYTES, "a frame's bytes"),
        (found.stored_sizes, FRAME_BYTES, "a frame's stored bytes"),
        (found.depths, DEPTH_MOST, "a depth"),
        (found.base_counts, BASES_MOST, "a number of bases"),
    ):
        if max(column) > most:
            return f"expected {what} of at most {most}, found {max(column)}"
    if 0 in found.sizes or 0 in found.stored_sizes or 0 in found.lengths:
        return "expected frames and chunks of at least one byte, found an empty one"
    deltas = [kind == FrameKind.DELTA for kind in found.kinds]
    if any(deltas != list(map(bool, one)) for one in (found.base_counts, found.depths, found.generations)):
        return "expected bases, a depth and a generation of each delta and of nothing else"
    rows = zip(found.kinds, found.stored_sizes, found.sizes, strict=True)
    if any(kind == FrameKind.STORED and packed != size for kind, packed, size in rows):
        return "expected as many stored bytes as a frame has that is not compressed, found others"
    return "expected chunks as long as their frame, found others"
