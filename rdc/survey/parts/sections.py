"""The sections of a part file: compressed, bounded in size, and checked before use."""

from __future__ import annotations

import struct
from array import array

import zstandard

from rdc.files.own.output_file import OutputKind
from rdc.limits.searches import PART_SECTION_BYTES
from rdc.model.entries import little_endian, little_endian_integers
from rdc.survey.container import PartError, SectionReader, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import BinaryIO

MAGIC = b"RDCPART\x03"
"""Begins a part; the last byte is the version that is written."""

SCAN_PART = OutputKind("a part of a scan", lambda head: head.startswith(MAGIC[:-1]))
MERGED_SCAN = OutputKind("a part of a scan", None)

VERSIONS = (2, 3)
"""Versions that are read."""

_HEAD = struct.Struct("<4sII32s")
_LENGTH = struct.Struct("<I")
ZSTD_LEVEL = 3

NUMBER_LIMIT = (1 << 64) - 1
"""The largest number of a column."""

Section = tuple[bytes, list[bytes]]
"""A tag of four bytes, and the section's fields."""

STORED_OVERHEAD = 64
"""Bytes that zstd may add to a section."""

FIELDS_MOST = 16
"""Most fields of a section that a reader accepts. No section has more than nine."""


def encode_section(tag: bytes, *fields: bytes | int | str) -> bytes:
    """Encodes a section. Numbers from 0 to 2^64 - 1 become 8 bytes, text becomes UTF-8."""
    raw = b"".join([_LENGTH.pack(len(field)) + field for field in map(_bytes, fields)])
    stored = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(raw)
    return b"".join(section(_HEAD, tag, (len(raw), len(stored)), [stored]))


def _bytes(field: bytes | int | str) -> bytes:
    if isinstance(field, int):
        return field.to_bytes(8, "little")
    return field.encode() if isinstance(field, str) else field


def read_sections(
    stream: BinaryIO, name: str, limits: Mapping[bytes, int] | None = None
) -> Iterator[Section]:
    """The sections before the one tagged LAST.

    `name`: the file in messages. `limits`: the most bytes of sections by tag; others have PART_SECTION_BYTES.
    No more are read, or unpacked. Raises PartError, with the offset, for damage, an early end, or bytes after
    LAST.
    """
    file = SectionReader(stream, name, _HEAD, "scan")
    magic = file.magic
    if len(magic) < len(MAGIC) or magic[:-1] != MAGIC[:-1]:
        raise PartError(f"{name}: expected a part that rdc scan -o wrote, found another kind of file")
    if magic[-1] not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise PartError(
            f"{name}: a part of version {magic[-1]}; this rdc reads {known}; merge with the newer rdc"
        )
    while True:
        tag, (size, length) = file.begin()
        most = PART_SECTION_BYTES if limits is None else limits.get(tag, PART_SECTION_BYTES)
        # What cannot be packed takes a little more.
        if size > most or length > most + (most >> 8) + STORED_OVERHEAD:
            raise file.damaged(f"at most {most} bytes", f"a section of {max(size, length)}")
        stored = file.stored(tag, length)
        try:
            # `decompress` allocates the size that the frame states, so that size is checked first.
            if zstandard.frame_content_size(stored) != size:
                raise zstandard.ZstdError("another size")
            fields = _split(zstandard.ZstdDecompressor().decompress(stored))
        except (zstandard.ZstdError, struct.error) as error:
            raise file.damaged("a section that can be unpacked", type(error).__name__) from error
        if fields is None:
            raise file.damaged(f"a section of {size} bytes in fields", "other bytes")
        if tag == b"LAST":
            file.check_end()
            return
        yield tag, fields
        file.at += _HEAD.size + length


def _split(raw: bytes) -> list[bytes] | None:
    fields: list[bytes] = []
    at = 0
    while at < len(raw):
        (length,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        if length > len(raw) - at or len(fields) == FIELDS_MOST:
            return None
        fields.append(raw[at : at + length])
        at += length
    return fields


def packed(numbers: bytes | array[int]) -> bytes:
    """A column of native 64-bit numbers as little-endian ones."""
    return little_endian(array("Q", numbers))


def unpacked(column: bytes) -> array[int]:
    """Decodes what `packed` wrote. Raises ValueError for anything else."""
    if len(column) % 8:
        raise ValueError("a column of 64-bit numbers is expected")
    return little_endian_integers("Q", column)


def packed_names(names: list[bytes]) -> bytes:
    """Each followed by NUL."""
    return b"\0".join([*names, b""])


def unpacked_names(column: bytes) -> list[bytes]:
    """Decodes what `packed_names` wrote. Raises ValueError for anything else."""
    names = column.split(b"\0")
    if names.pop():
        raise ValueError("names without an end")
    return names
