"""An index at rest: the writer, and a reader that checks everything (INDEX.md, "An index at rest")."""

from __future__ import annotations

import struct

from blake3 import blake3

from rdc.errors import RdcError
from rdc.limits.searches import SIMILAR_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from rdc.kernel import TraitIndex

__all__ = ["SimilarityIndexError", "read_index", "write_index"]

MAGIC = b"RDCX"
VERSION = 1

_HEAD = struct.Struct("<4sBQ")
_KEY_AND_SIZE = struct.Struct("<QH9x")
_ROW_BYTES = _KEY_AND_SIZE.size
_SAVED_ROWS = 65_536
_SIZE_CODE_MAX = (52 << 10) + 2047
"""The size code of 2^63 - 1 bytes (rdc.similarity.index.size_code)."""


class SimilarityIndexError(RdcError):
    """Bytes that should be an index are not one, are damaged, or were written by another version."""


def write_index(index: TraitIndex, stream: BinaryIO) -> None:
    digest = blake3()

    def write(data: bytes) -> None:
        digest.update(data)
        stream.write(data)

    keys = index.keys()
    write(_HEAD.pack(MAGIC, VERSION, len(keys) // 8))
    for at in range(0, len(keys), 8 * _SAVED_ROWS):
        write(index.rows(keys[at : at + 8 * _SAVED_ROWS]))
    stream.write(digest.digest())


def read_index(index: TraitIndex, stream: BinaryIO) -> None:
    """Fills an empty index. After SimilarityIndexError, the index holds the rows before the damage."""
    digest = blake3()
    head = _read(stream, _HEAD.size)
    magic, version, files = _HEAD.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise SimilarityIndexError(f"expected an index of version {VERSION}, found {head[:5]!r}")
    if files > SIMILAR_FILES:
        raise SimilarityIndexError(f"an index of {files} files: at most {SIMILAR_FILES} are allowed")
    digest.update(head)
    before = -1
    while files:
        # Read in parts, so memory for a claimed but missing length is never allocated.
        rows = _read(stream, min(files, _SAVED_ROWS) * _ROW_BYTES)
        digest.update(rows)
        for key, size in _KEY_AND_SIZE.iter_unpack(rows):
            if key <= before or size > _SIZE_CODE_MAX:
                raise SimilarityIndexError(f"file {key} with size code {size} after file {before}")
            before = key
        index.put(rows)
        files -= len(rows) // _ROW_BYTES
    if _read(stream, digest.digest_size) != digest.digest():
        raise SimilarityIndexError("the index does not have its checksum; it is damaged: make it anew")
    if stream.read(1):
        raise SimilarityIndexError("there is something after the index; it is damaged: make it anew")


def _read(stream: BinaryIO, size: int) -> bytes:
    """Reads exactly `size` bytes. Raises SimilarityIndexError if fewer are left."""
    parts = []
    while size:
        part = stream.read(size)
        if not part:
            raise SimilarityIndexError(f"the index ends {size} bytes too early; it is damaged: make it anew")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
