"""Messages with the content of files, whole or in ranges, and the failure of one file."""

from __future__ import annotations

from rdc.lean.typed import Annotated
from rdc.limits.wire import (
    CHECK_BLOCKS_PER_ANSWER,
    DATA_BYTES,
    FILES_PER_MESSAGE,
    HOLES_PER_MESSAGE,
    ORDINAL_LIMIT,
    PACKED_BYTES,
    RANGES_PER_MESSAGE,
    SIZE_LIMIT,
    TABLE_STRIDE_MAX,
)
from rdc.model.sync_report import Purpose
from rdc.protocol.messages.comparison import BlockAnswer, NodeAnswer, TreeAnswer, TreeRequest
from rdc.protocol.messages.field_types import (
    CHECK_BLOCK_BYTES,
    DIGEST_BYTES,
    NO_CLAIMS,
    AboutFile,
    AboutFiles,
    Claimed,
    Claims,
    Digest,
    Failure,
    Files,
    Line,
    Mtime,
    Ordinal,
    Ranged,
    Size,
    columns_of,
)
from rdc.protocol.wire.codec import ANSWERING, ASKING, DESTINATION, SOURCE, Message, message, message_kinds
from rdc.protocol.wire.fields import Blob, Column, Content, Flag, Gaps, Integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from typing import TypeAlias

TABLE_WORD = 4
"""Bytes of a number in a table."""


@message(12, by=DESTINATION, when=ASKING, asks="file", purpose=Purpose.LITERALS)
class RangeRequest(Ranged, Message):
    """D: asks for these bytes of a file, in this order. Without ranges only the claims are checked."""

    file: Ordinal
    gaps: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE)]
    """Bytes between the end of the previous range (or the file's start) and each range. The ranges are thus
    increasing and disjoint."""
    lengths: Annotated[tuple[int, ...], Column(RANGES_PER_MESSAGE, lowest=1)]
    pack: Annotated[bool, Flag()] = False
    """Whether the bytes may come as Literals: D has everything around them."""
    claims: Annotated[Claims, Claimed()] = NO_CLAIMS
    """The content that D expects elsewhere in the file. A Correction precedes the answer wherever that is
    wrong."""
    blank: Annotated[bool, Flag()] = False
    """Whether the claims are about content with masked x86 operands, which S sends as Targets."""

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
        """A request for increasing, disjoint ranges: offset and length by turns (typecode 'Q')."""
        return cls(file, *columns_of(rows), pack, claims, blank)

    def check(self) -> str | None:
        if self.pack and sum(self.lengths) > PACKED_BYTES:
            return f"pack: {sum(self.lengths)} bytes, the limit is {PACKED_BYTES}"
        if not self.lengths and (self.pack or not self.claims.cells):
            return "lengths: none"
        if self.blank and (self.pack or not self.claims.cells):
            return "blank: without claims, or to be packed"
        return self.check_ranges()


@message(37, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Correction(Message):
    """S, before the answer to a RangeRequest: the content of check blocks with a wrong claim, without the
    requested ranges."""

    file: Ordinal
    cells: Annotated[tuple[int, ...], Gaps(CHECK_BLOCKS_PER_ANSWER, SIZE_LIMIT // CHECK_BLOCK_BYTES)]
    payload: Annotated[bytes | memoryview, Content(0, CHECK_BLOCKS_PER_ANSWER * CHECK_BLOCK_BYTES)]
    """The content of all these check blocks, in order."""

    def check(self) -> str | None:
        if len(self.payload) > len(self.cells) * CHECK_BLOCK_BYTES:
            return f"payload: {len(self.payload)} bytes of {len(self.cells)} cells"
        return None


@message(38, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Targets(Message):
    """S, before the answer to a RangeRequest: the masked x86 operands in the next check blocks, except
    corrected ones."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, CHECK_BLOCKS_PER_ANSWER * CHECK_BLOCK_BYTES)]


@message(35, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Literals(Message):
    """S: the whole answer to a RangeRequest with `pack`."""

    file: Ordinal
    packed: Annotated[bytes, Blob(1, 2 * PACKED_BYTES)]
    """A zstd frame without magic number. Its prefix is the content around the ranges."""


@message(13, by=DESTINATION, when=ASKING, asks="files", purpose=Purpose.LITERALS)
class FileRequest(AboutFiles, Message):
    """D: asks for these files whole."""

    files: Files


@message(46, by=SOURCE, when=ANSWERING, answers=FileRequest, purpose=Purpose.LITERALS)
class Resized(Message):
    """S, before the content of a file whose size differs from its listing: the new size."""

    file: Ordinal
    size: Size
    """Bytes of the file now. The rest of the answer has exactly as many."""


@message(70, by=SOURCE, when=ANSWERING, answers=(TreeRequest, FileRequest), purpose=Purpose.LITERALS)
class Holes(Message):
    """S, before the TreeAnswer or the content of a file that has holes: what it takes, and where they are."""

    file: Ordinal
    data: Size
    """Bytes of the file outside of its holes. About: it only says what room they need."""
    gaps: Annotated[tuple[int, ...], Column(HOLES_PER_MESSAGE)] = ()
    """Bytes of Data between the end of the previous hole (or what came so far) and each hole. Without holes
    before a TreeAnswer."""
    lengths: Annotated[tuple[int, ...], Column(HOLES_PER_MESSAGE, lowest=1)] = ()
    """Bytes of each hole."""

    def check(self) -> str | None:
        if len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} holes"
        if sum(self.gaps) + sum(self.lengths) > SIZE_LIMIT:
            return f"lengths: the last hole ends past {SIZE_LIMIT}"
        return None


@message(14, by=SOURCE, when=ANSWERING, answers=(RangeRequest, FileRequest), purpose=Purpose.LITERALS)
class Data(Message):
    """S: the next bytes of a file or of its ranges."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, DATA_BYTES)]


@message(36, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Code(Message):
    """S: the next bytes of a file's ranges, through the x86 filter (operands are absolute)."""

    file: Ordinal
    payload: Annotated[bytes | memoryview, Content(1, DATA_BYTES)]


@message(39, by=SOURCE, when=ANSWERING, answers=RangeRequest, purpose=Purpose.LITERALS)
class Table(Message):
    """S: the next bytes of a file's ranges, through the number table filter (numbers are differences between
    rows)."""

    file: Ordinal
    stride: Annotated[int, Integer(TABLE_WORD, TABLE_STRIDE_MAX)]
    """Bytes of a row."""
    payload: Annotated[bytes | memoryview, Content(1, DATA_BYTES)]

    def check(self) -> str | None:
        return f"stride: {self.stride} bytes" if self.stride % TABLE_WORD else None


@message(30, by=SOURCE, when=ANSWERING, answers=FileRequest, purpose=Purpose.LITERALS)
class FileBatch(Message):
    """S: small files of the oldest FileRequest that still agree with their listing."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE, highest=DATA_BYTES)]
    digest: Digest
    """BLAKE3 of the payload."""
    payload: Annotated[bytes | memoryview, Content(0, DATA_BYTES)]
    """The contents of the files, concatenated."""

    def check(self) -> str | None:
        if len(self.sizes) != len(self.files):
            return f"sizes: {len(self.sizes)} for {len(self.files)} files"
        if sum(self.sizes) != len(self.payload):
            return f"payload: {len(self.payload)} bytes for files of {sum(self.sizes)}"
        return None


@message(15, by=SOURCE, when=ANSWERING, answers=(RangeRequest, FileRequest), purpose=Purpose.LITERALS)
class FileEnd(Message):
    """S: ends the Data of the request for this file."""

    file: Ordinal
    size: Size
    """Bytes of Data since the request. For a whole file this is its size, as last announced."""
    digest: Annotated[bytes, Blob(0, DIGEST_BYTES)] = b""
    """BLAKE3 of the content for a whole file; empty for ranges."""
    mtime_ns: Mtime = None
    like: Annotated[int | None, Integer(highest=ORDINAL_LIMIT, optional=True)] = None
    """A file sent whole before that has the same content; no Data came for this one."""

    def check(self) -> str | None:
        if len(self.digest) not in {0, DIGEST_BYTES}:
            return f"digest: {len(self.digest)} bytes"
        if self.like is not None and (not self.digest or self.like == self.file):
            return f"like: file {self.like}, without a digest or itself"
        return None


ABOUT_FILES = tuple(kind for kind in message_kinds().values() if issubclass(kind, (AboutFile, AboutFiles)))
"""All such requests; they are declared above, and in comparison.py."""


@message(16, by=SOURCE, when=ANSWERING, answers=ABOUT_FILES, purpose=Purpose.LITERALS)
class FileFailed(Message):
    """S: the failure of this file, in place of an answer."""

    file: Ordinal
    code: Failure
    message: Line


FileMessage: TypeAlias = (
    "TreeAnswer | NodeAnswer | BlockAnswer | Correction | Targets | Literals | Data | Code | Table"
    " | FileEnd | FileFailed | Holes"
)
"""Answers about one file that comes by delta. Each names it by its row in the source's manifest."""
