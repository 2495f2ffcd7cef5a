"""The format of a file, by its name, and for .json by its first line; and which files, and which ranges
of large ones, one slice of a search reads.
"""

from __future__ import annotations

import json

from rdc.kernel import name_ranks
from rdc.lean.enums import Enum
from rdc.lean.records import Record
from rdc.limits import RANGE_BYTES, READ_BYTES
from rdc.limits import TEXT_LINE_BYTES as LINE_BYTES
from rdc.model.entries import Kind, PackedListing, little_endian_integers, strings
from rdc.survey.slices import SLICE_KEY, WalkTotals, name_rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from typing import BinaryIO

    from rdc.model.scan import ScanSlice


def json_decoder() -> json.JSONDecoder:
    """Return a decoder that takes numbers of any length. CPython reads no integer of more than 4,300 digits,
    and takes quadratic time for long ones; a number has no text, so its value does not matter."""
    return json.JSONDecoder(parse_int=_number, parse_float=_number)


def _number(_: str) -> int:
    return 0


# FileRange: bytes of a JSONL or Parquet file that one slice reads.


class FileRange(Record):
    """One of the ranges of bytes that a file is divided into.

    What begins in the range belongs to it: lines of a JSONL file, row groups of a Parquet file.
    """

    number: int
    """From 0."""
    of: int
    start: int
    end: int
    size: int
    """Bytes of the whole file when it was listed."""

    @classmethod
    def of_file(cls, number: int, of: int, size: int) -> FileRange:
        return cls(number, of, size * number // of, size * (number + 1) // of, size)


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
    """Return whether slices share a large file. A packed one can only be read from its start."""
    kind = kind_of(path, format_)
    return kind is FileKind.PARQUET or (kind is FileKind.LINES and packing_of(path) is Packing.NONE)


def begins_json_lines(stream: BinaryIO, field: str) -> bool:
    """Return whether the first line that is not empty is a JSON object with the field. Reads no more than
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


# SliceFiles: which files, and which ranges of large ones, one slice of a search reads.


def ranges_of(path: bytes, size: int, slices: int, format_: str = "auto") -> int:
    """Return how many ranges a file has among this many slices, if it is read in this format."""
    if not is_divided(path, format_):
        return 1
    return max(1, min(slices, size // RANGE_BYTES))


class SliceFiles:
    """Chooses what one slice reads: files by a hash of their path, and of a large file one range.

    The ranges of a file belong to as many slices, one after another. A corpus often lies in one directory, so
    files of a directory do not stay together as in slices of a scan. Adds up what was walked meanwhile.
    """

    def __init__(self, slice_: ScanSlice, format_: str) -> None:
        """`format_`: one of FORMATS."""
        self._format = format_
        self._number = slice_.number - 1
        self._of = slice_.of
        self._files = self._bytes = self._directories = 0

    @property
    def totals(self) -> WalkTotals:
        """The totals of everything that was walked, whichever slice it belongs to."""
        return WalkTotals(self._files, self._bytes, self._directories, self._number + 1)

    def has_path(self, path: bytes) -> bool:
        """Return whether a path that cannot be listed belongs here."""
        return self._first(path) == self._number

    def has_file(self, path: bytes, size: int) -> bool:
        """Count a file, and return whether it or a range of it belongs here."""
        self._files += 1
        self._bytes += size
        return self._distance(self._first(path)) < ranges_of(path, size, self._of, self._format)

    def rows(self, directory: bytes, listing: PackedListing) -> list[int]:
        """Count the files of a directory, and return the rows of those that are read here."""
        self._directories += 1
        rows = listing.rows_of(Kind.FILE)
        if not rows:
            return []
        self._files += len(rows)
        sizes: array[int] = little_endian_integers("Q", listing.sizes)
        self._bytes += sum(map(sizes.__getitem__, rows))
        base = _rank(directory)
        ranks: array[int] = little_endian_integers("Q", name_ranks(SLICE_KEY, listing.names))
        names: list[bytes] = []
        chosen = []
        for row in rows:
            distance = self._distance(base + ranks[row])
            # Most files have one range.
            if distance and sizes[row] >= 2 * RANGE_BYTES:
                names = names or strings(listing.names)
                if distance < ranges_of(names[row], sizes[row], self._of, self._format):
                    chosen.append(row)
            elif not distance:
                chosen.append(row)
        return chosen

    def range_of(self, path: bytes, size: int) -> FileRange | None:
        """Return the range of a file of this slice; None for the whole file."""
        ranges = ranges_of(path, size, self._of, self._format)
        return None if ranges == 1 else FileRange.of_file(self._distance(self._first(path)), ranges, size)

    def _first(self, path: bytes) -> int:
        """Return the slice, from 0, of a path and of the first range of a file."""
        at = path.rfind(b"/") + 1
        return (_rank(path[:at]) + _rank(path[at:])) % self._of

    def _distance(self, first: int) -> int:
        return (self._number - first) % self._of


def _rank(name: bytes) -> int:
    return name_rank(name.replace(b"\0", b""))
