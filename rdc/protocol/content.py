"""The contents of files, whole or in ranges, and the failure of one."""

from __future__ import annotations

from rdc.limits import (
    CELLS_PER_ANSWER,
    DATA_BYTES,
    FILES_PER_MESSAGE,
    ORDINAL_LIMIT,
    PACKED_BYTES,
    RANGES_PER_MESSAGE,
    SIZE_LIMIT,
    TABLE_STRIDE_MAX,
)
from rdc.protocol.claims import CELL_BYTES, NO_CLAIMS, Claimed, Claims
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.field_types import DIGEST_BYTES, Digest, Failure, Files, Line, Mtime, Ordinal, Size
from rdc.protocol.fields import Blob, Column, Content, Flag, Gaps, Integer
from rdc.protocol.ranges import Ranged, columns_of
from rdc.records import dataclass
from rdc.typed import Annotated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

TABLE_WORD = 4
"""Bytes of a number of a table."""

__all__ = [
    "Code",
    "Correction",
    "Data",
    "FileBatch",
    "FileEnd",
    "FileFailed",
    "FileRequest",
    "Literals",
    "RangeRequest",
    "Table",
    "Targets",
]


@wire(12)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RangeRequest(Ranged, WireMessage):
    """D: these bytes of a file, in this order; or none, where only claims are to be looked at."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE)]
    """Bytes between the end of the range before (or the file's start) and each range: increasing and disjoint
    by construction."""
    lengths: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE, lowest=1)]
    pack: Annotated[bool, Flag()] = False
    """They may come as Literals: D has all that is around them."""
    claims: Annotated[Claims, Claimed()] = NO_CLAIMS
    """What D takes the file to have elsewhere: where that is wrong a Correction precedes the answer."""
    blank: Annotated[bool, Flag()] = False
    """The claims are about machine code without its targets, which are to come."""

    @classmethod
    def of(
        cls,
        file: int,
        rows: array[int],
        *,
        pack: bool = False,
        claims: Claims = NO_CLAIMS,
        blank: bool = False,
    ) -> RangeRequest:
        """From increasing, disjoint ranges, offset and length by turns (typecode 'Q')."""
        return cls(file, *columns_of(rows), pack, claims, blank)

    def check(self) -> str | None:
        if self.pack and sum(self.lengths) > PACKED_BYTES:
            return f"pack: {sum(self.lengths)} bytes, the limit is {PACKED_BYTES}"
        if not self.lengths and (self.pack or not self.claims.cells):
            return "lengths: none"
        if self.blank and (self.pack or not self.claims.cells):
            return "blank: without claims, or to be packed"
        return self.check_ranges()


@wire(37)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Correction(WireMessage):
    """S, before the answer to a RangeRequest: what these of its cells have in no range of it."""

    file: Ordinal
    cells: Annotated[tuple[int, ...], Gaps(CELLS_PER_ANSWER, SIZE_LIMIT // CELL_BYTES)]
    payload: Annotated[bytes | memoryview, Content(0, CELLS_PER_ANSWER * CELL_BYTES)]
    """All of it, in order."""

    def check(self) -> str | None:
        if len(self.payload) > len(self.cells) * CELL_BYTES:
            return f"payload: {len(self.payload)} bytes of {len(self.cells)} cells"
        return None


@wire(38)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Targets(WireMessage):
    """S, before the answer to a RangeRequest: the targets in its next cells, but for those it corrects."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, CELLS_PER_ANSWER * CELL_BYTES)]


@wire(35)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literals(WireMessage):
    """S: the whole answer to a RangeRequest that may be packed."""

    file: Ordinal
    packed: Annotated[bytes, Blob(1, 2 * PACKED_BYTES)]
    """A zstd frame without magic number, whose prefix is what is around the ranges."""


@wire(13)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileRequest(WireMessage):
    """D: these files whole."""

    files: Files


@wire(14)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Data(WireMessage):
    """S: the next bytes of a file or of its ranges."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, DATA_BYTES)]


@wire(36)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Code(WireMessage):
    """S: the next bytes of a file's ranges, machine code with absolute targets."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, DATA_BYTES)]


@wire(39)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table(WireMessage):
    """S: the next bytes of a file's ranges, numbers as differences between rows."""

    file: Ordinal
    stride: Annotated[int, Integer(TABLE_WORD, TABLE_STRIDE_MAX)]
    """Bytes of a row."""
    payload: Annotated[bytes | memoryview, Content(1, DATA_BYTES)]

    def check(self) -> str | None:
        return f"stride: {self.stride} bytes" if self.stride % TABLE_WORD else None


@wire(30)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileBatch(WireMessage):
    """S: small files of the oldest FileRequest, unchanged since they were listed."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE, highest=DATA_BYTES)]
    digest: Digest
    """BLAKE3 of the payload."""
    payload: Annotated[bytes | memoryview, Content(0, DATA_BYTES)]
    """Their contents, one after the other."""

    def check(self) -> str | None:
        if len(self.sizes) != len(self.files):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        if sum(self.sizes) != len(self.payload):
            return f"payload: {len(self.payload)} bytes for files of {sum(self.sizes)}"
        return None


@wire(15)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileEnd(WireMessage):
    """S: all Data of the request for this file was sent."""

    file: Ordinal
    size: Size
    """Bytes of Data since the request: of a whole file, its size."""
    digest: Annotated[bytes, Blob(0, DIGEST_BYTES)] = b""
    """Whole files: BLAKE3 of what was sent. Ranges: empty."""
    mtime_ns: Mtime = None
    like: Annotated[int | None, Integer(highest=ORDINAL_LIMIT, optional=True)] = None
    """A file that was sent whole before: this one has the same content, and no Data came."""

    def check(self) -> str | None:
        if len(self.digest) not in {0, DIGEST_BYTES}:
            return f"digest: {len(self.digest)} bytes"
        if self.like is not None and (not self.digest or self.like == self.file):
            return f"like: file {self.like}, without a digest or itself"
        return None


@wire(16)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FileFailed(WireMessage):
    """S, in place of an answer about this file."""

    file: Ordinal
    code: Failure
    message: Line
