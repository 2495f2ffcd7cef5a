"""What a file holds, by its name, and for .json by its first line."""

from __future__ import annotations

from enum import Enum

from rdc.documents.read.json_decoder import json_decoder
from rdc.limits.searches import LINE_BYTES, READ_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["FileKind", "Packing", "begins_json_lines", "is_divided", "kind_of", "packing_of"]

_LINES = (b".jsonl", b".ndjson")
_MAYBE_LINES = b".json"
_PARQUET = b".parquet"


class FileKind(Enum):
    TEXT = "text"
    """The file is one document."""
    LINES = "lines"
    """Each line is a JSON object with a document."""
    PARQUET = "parquet"
    """Each row is a document."""
    LINES_OR_TEXT = "lines or text"
    """begins_json_lines() decides."""


class Packing(Enum):
    NONE = b""
    GZIP = b".gz"
    ZSTD = b".zst"


def packing_of(path: bytes) -> Packing:
    """Return how a file of JSON lines is packed, by the end of its name in any letter case."""
    name = path[-8:].lower()
    return next((one for one in (Packing.GZIP, Packing.ZSTD) if name.endswith(one.value)), Packing.NONE)


def kind_of(path: bytes, format_: str) -> FileKind:
    """Return what a file of this name holds, if it is read in this format of DocumentOptions."""
    if format_ != "auto":
        return FileKind.LINES if format_ == "jsonl" else FileKind.TEXT
    name = path[-16:].lower()
    packing = packing_of(name)
    plain = name.removesuffix(packing.value)
    if plain.endswith(_LINES):
        return FileKind.LINES
    if plain.endswith(_MAYBE_LINES):
        # A packed file is no text, so only lines can be meant.
        return FileKind.LINES_OR_TEXT if packing is Packing.NONE else FileKind.LINES
    return FileKind.PARQUET if name.endswith(_PARQUET) else FileKind.TEXT


def is_divided(path: bytes, format_: str) -> bool:
    """Whether slices share a large file. A packed one can only be read from its start."""
    kind = kind_of(path, format_)
    return kind is FileKind.PARQUET or (kind is FileKind.LINES and packing_of(path) is Packing.NONE)


def begins_json_lines(stream: BinaryIO, field: str) -> bool:
    """Whether the first line that is not empty is a JSON object with the field. Reads no more than
    LINE_BYTES. Raises OSError and what the stream raises."""
    line = b""
    while not line:
        span = stream.read(READ_BYTES)
        if not span:
            return False
        line = span.removeprefix(b"\xef\xbb\xbf").lstrip()
    parts, size = [line], len(line)
    if not line.startswith(b"{"):
        return False
    while b"\n" not in parts[-1]:
        span = stream.read(READ_BYTES)
        size += len(span)
        if size > LINE_BYTES:
            return False
        if not span:
            break
        parts.append(span)
    return _has_field(b"".join(parts).partition(b"\n")[0], field)


def _has_field(line: bytes, field: str) -> bool:
    try:
        found = json_decoder().decode(line.decode())
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and field in found
