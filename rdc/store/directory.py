"""The directory of a pack: columns of its frames and of the chunks in them, to bytes and back.

Every number is checked when a directory is read: the columns are as long as the head says, the lengths of
chunks add up to their frames', the frames' to the pack's, and only a delta has bases.
"""

from __future__ import annotations

import struct
from array import array

from rdc.lean.records import dataclass
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

_HEAD = struct.Struct("<III")
_FRAME_WIDTHS = (1, 4, 4, 4, 2, 1, 2)
"""Bytes of kind, stored bytes, bytes, chunks, generation, depth and bases of a frame."""

BASES_MOST = 0xFFFF
"""Most bases of one frame."""


@dataclass(frozen=True, slots=True)
class FrameRow:
    """What a directory says of one frame."""

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


@dataclass(frozen=True, slots=True)
class Directory:
    """The frames of a pack in their order, and their chunks in theirs."""

    frames: tuple[FrameRow, ...]
    keys: bytes
    """KEY_BYTES a chunk."""
    lengths: array[int]
    """Typecode 'I': bytes of each chunk."""

    @property
    def stored(self) -> int:
        """Bytes of all frames in the pack."""
        return sum(frame.stored for frame in self.frames)


def encode_directory(directory: Directory) -> bytes:
    """Return the columns of a directory as one zstd frame."""
    frames = directory.frames
    bases = b"".join([frame.bases for frame in frames])
    columns = (
        bytes([frame.kind for frame in frames]),
        _packed("I", [frame.stored for frame in frames]),
        _packed("I", [frame.size for frame in frames]),
        _packed("I", [frame.chunks for frame in frames]),
        _packed("H", [frame.generation for frame in frames]),
        bytes([frame.depth for frame in frames]),
        _packed("H", [len(frame.bases) // KEY_BYTES for frame in frames]),
        bases,
        directory.keys,
        little_endian(directory.lengths),
    )
    head = _HEAD.pack(len(frames), len(directory.lengths), len(bases) // KEY_BYTES)
    return zstandard.ZstdCompressor(level=3, write_content_size=True).compress(head + b"".join(columns))


def decode_directory(data: bytes, stored: int) -> Directory:
    """Return the directory in `data`, of a pack whose frames have `stored` bytes. Raises ValueError."""
    try:
        size = zstandard.get_frame_parameters(data).content_size
    except zstandard.ZstdError as error:
        raise ValueError(f"expected the columns of a directory: {error}") from error
    if not _HEAD.size <= size <= DIRECTORY_BYTES:
        raise ValueError(f"expected a directory of at most {DIRECTORY_BYTES} bytes, found {size}")
    try:
        columns = inflate(data, size)
    except FrameError as error:
        raise ValueError(str(error)) from error
    frames, chunks, bases = _HEAD.unpack_from(columns)
    expected = _HEAD.size + sum(_FRAME_WIDTHS) * frames + KEY_BYTES * bases + (KEY_BYTES + 4) * chunks
    if size != expected:
        raise ValueError(f"expected columns of {expected} bytes, found {size}")
    return _checked(columns, frames, chunks, bases, stored)


def _checked(columns: bytes, frames: int, chunks: int, bases: int, stored: int) -> Directory:
    at = _HEAD.size
    parts: list[bytes] = []
    for width, rows in (
        *((width, frames) for width in _FRAME_WIDTHS),
        (KEY_BYTES, bases),
        (KEY_BYTES, chunks),
    ):
        parts.append(columns[at : at + width * rows])
        at += width * rows
    lengths = little_endian_integers("I", columns[at:])
    kinds, base_keys = parts[0], parts[7]
    stored_sizes, sizes, counts = (little_endian_integers("I", part) for part in parts[1:4])
    generations, base_counts = little_endian_integers("H", parts[4]), little_endian_integers("H", parts[6])
    if kinds and max(kinds) > max(FrameKind):
        raise ValueError(f"expected a kind of frame, found {max(kinds)}")
    if sum(counts) != chunks or sum(base_counts) != bases or sum(stored_sizes) != stored:
        raise ValueError("expected numbers of chunks, bases and bytes that add up, found others")
    found: list[FrameRow] = []
    chunk = base = 0
    for number, kind in enumerate(kinds):
        row = FrameRow(
            FrameKind(kind),
            stored_sizes[number],
            sizes[number],
            counts[number],
            generations[number],
            parts[5][number],
            base_keys[KEY_BYTES * base : KEY_BYTES * (base + base_counts[number])],
        )
        _check_frame(row, lengths[chunk : chunk + row.chunks])
        chunk += row.chunks
        base += base_counts[number]
        found.append(row)
    return Directory(tuple(found), parts[8], lengths)


def _check_frame(row: FrameRow, lengths: array[int]) -> None:
    if not 0 < row.size <= FRAME_BYTES or not 0 < row.stored <= FRAME_BYTES:
        raise ValueError(f"expected a frame of at most {FRAME_BYTES} bytes, found {row.size}")
    if sum(lengths) != row.size or not all(lengths):
        raise ValueError(f"expected chunks of {row.size} bytes in a frame, found {sum(lengths)}")
    is_delta = row.kind is FrameKind.DELTA
    if is_delta != bool(row.bases) or is_delta != bool(row.depth) or is_delta != bool(row.generation):
        raise ValueError("expected bases, a depth and a generation of each delta and of nothing else")
    if row.depth > DEPTH_MOST:
        raise ValueError(f"expected a depth of at most {DEPTH_MOST}, found {row.depth}")
    if row.kind is FrameKind.STORED and row.stored != row.size:
        raise ValueError(f"expected {row.size} stored bytes of a frame, found {row.stored}")


def _packed(typecode: str, numbers: list[int]) -> bytes:
    return little_endian(array(typecode, numbers))
