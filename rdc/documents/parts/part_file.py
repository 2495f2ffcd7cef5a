"""A part at rest: writes it, and reads it with every byte checked (DOCUMENTS.md, "A part")."""

from __future__ import annotations

import os
import struct
from array import array
from operator import le, lt

from blake3 import blake3

from rdc.documents.features import SHINGLE_SIZES, SHINGLE_VERSION
from rdc.documents.parts.block import COUNTS, SAMPLES, SEED, BlockLayout
from rdc.documents.parts.range_section import decode_range
from rdc.documents.parts.slice_head import DocumentHead, decode_slice
from rdc.errors import ExitCode, UsageError, printable
from rdc.files.own.output_file import OutputKind
from rdc.lean.records import dataclass
from rdc.limits.searches import PART_BLOCK_BYTES, PART_NAMES, READ_BYTES, SLICE_HEAD_BYTES
from rdc.model.entries import little_endian_integers
from rdc.progress import Problem
from rdc.survey.container import PartError, SectionReader, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from rdc.documents.read.range_outcome import RangeOutcome

MAGIC = b"RDCDOCS\x01"
"""The first bytes of a part. Its last byte is the version of the format."""

MAGIC_OF_SLICES = b"RDCDOCS\x02"
"""The first bytes of a part of a slice."""

DOCUMENT_PART = OutputKind("a part of documents", lambda head: head.startswith(MAGIC[:-1]))
MERGED_DOCUMENTS = OutputKind("a part of documents", None)

_SECTION = struct.Struct("<4sQ32s")
"""Tag, bytes of content, BLAKE3-256 of tag and content."""

_PROBLEM = struct.Struct("<IIQ")
"""Exit code, bytes of the path, rows left out."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a part, checked, and where it is."""

    part: int
    """The number of the part, as the caller counts them."""
    start: int
    """Bytes before it in the file."""
    layout: BlockLayout
    rows_before: int = 0
    """Added to each row: the rows of the same file before the range that the block is of."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a part has, without its columns."""

    head: DocumentHead
    blocks: list[Block]
    """The blocks of files that one machine read whole."""
    problems: list[Problem]
    left_out: int
    ranges: list[PartRange]


@dataclass(frozen=True, slots=True)
class PartRange:
    """A range of a file, and its blocks."""

    outcome: RangeOutcome
    blocks: list[Block]


def method(unit: str) -> bytes:
    """The parameters that two parts must share."""
    return (
        f"rdc documents 1; shingles {SHINGLE_VERSION} of {SHINGLE_SIZES[unit]} {unit};"
        f" {SAMPLES} samples by one permutation, seed {SEED}"
    ).encode()


def encode_section(tag: bytes, columns: Iterable[bytes]) -> Iterator[bytes]:
    """Encodes a section."""
    spans = list(columns)
    return section(_SECTION, tag, [sum(map(len, spans))], spans)


def part_start(unit: str, magic: bytes = MAGIC) -> Iterator[bytes]:
    """Encodes what comes before the blocks."""
    yield magic
    yield from encode_section(b"HEAD", [method(unit)])


def part_end(problems: Iterable[Problem], left_out: int) -> Iterator[bytes]:
    """Encodes what comes after the blocks. `left_out`: rows and files that could not be used."""
    for problem in problems:
        message = problem.message.encode("utf-8", "surrogateescape")
        head = _PROBLEM.pack(problem.code, len(problem.path), left_out)
        left_out = 0
        yield from encode_section(b"FAIL", [head, problem.path, message])
    yield from encode_section(b"LAST", [])


def read_part(stream: BinaryIO, name: str, number: int) -> Part:
    """Checks a whole part. `name`: the file in messages.

    Raises PartError, with the offset, for damage, and UsageError for a part of other parameters.
    """
    return _Reader(stream, name, number).read()


def read_head(stream: BinaryIO, name: str) -> DocumentHead:
    """Reads the start of a part. Raises as read_part()."""
    return _Reader(stream, name, 0).head()


class _Reader:
    def __init__(self, stream: BinaryIO, name: str, number: int) -> None:
        self._file = SectionReader(stream, name, _SECTION, "search")
        self._name = name
        self._number = number
        self._size = os.fstat(stream.fileno()).st_size

    def head(self) -> DocumentHead:
        """Reads what comes before the blocks."""
        start = self._file.magic
        if start not in (MAGIC, MAGIC_OF_SLICES):
            if start[:-1] == MAGIC[:-1]:
                raise UsageError(
                    f"{self._name}: a part of version {start[-1]}, this rdc reads {MAGIC[-1]} and"
                    f" {MAGIC_OF_SLICES[-1]}; search again with this version of rdc"
                )
            raise PartError(
                f"{self._name}: expected a part that rdc similar --text -o wrote, found another kind of file"
            )
        tag, size = self._section()
        unit = self._unit(self._content(tag, size)) if tag == b"HEAD" and size < READ_BYTES else None
        if unit is None:
            raise self._file.damaged("a head", printable(tag))
        if start == MAGIC:
            return DocumentHead(self._name, unit, (), None, 0)
        tag, size = self._section()
        if tag != b"SLIC" or size > SLICE_HEAD_BYTES:
            raise self._file.damaged("a slice", f"a section {printable(tag)} of {size} bytes")
        try:
            return decode_slice(self._content(tag, size), self._name, unit)
        except ValueError as error:
            raise self._file.damaged("a slice", type(error).__name__) from error

    def read(self) -> Part:
        head = self.head()
        part = Part(head, [], [], 0, [])
        left_out = 0
        while True:
            tag, size = self._section()
            if tag == b"BLOK":
                part.blocks.append(self._block(size))
            elif tag == b"FAIL" and size < READ_BYTES:
                left_out += self._problem(self._content(tag, size), part)
            elif tag == b"RANG" and size < READ_BYTES and head.slices is not None:
                self._range(self._content(tag, size), part)
            elif tag == b"LAST" and not size:
                self._content(tag, size)
                self._file.check_end()
                return Part(head, part.blocks, part.problems, left_out, part.ranges)
            else:
                raise self._file.damaged("a block", f"a section {printable(tag)} of {size} bytes")

    def _section(self) -> tuple[bytes, int]:
        file = self._file
        tag, (size,) = file.begin()
        file.at += file.head_bytes
        most = min(PART_BLOCK_BYTES, self._size - file.at)
        if size > most:
            raise file.damaged(f"a section of at most {most} bytes", f"one of {size}")
        return tag, size

    def _content(self, tag: bytes, size: int) -> bytes:
        content = self._file.stored(tag, size)
        self._file.at += size
        return content

    def _unit(self, found: bytes) -> str:
        for unit in SHINGLE_SIZES:
            if found == method(unit):
                return unit
        raise UsageError(
            f"{self._name}: made with other parameters: expected {method('words').decode()!r}, found "
            f"{printable(found[:200])!r}; search again with this version of rdc"
        )

    def _problem(self, content: bytes, part: Part) -> int:
        try:
            code, length, left_out = _PROBLEM.unpack_from(content)
            path = content[_PROBLEM.size : _PROBLEM.size + length]
            message = content[_PROBLEM.size + length :].decode("utf-8", "surrogateescape")
            part.problems.append(Problem(ExitCode(code), path, message))
        except (struct.error, ValueError) as error:
            raise self._file.damaged("a problem", type(error).__name__) from error
        return int(left_out)

    def _range(self, content: bytes, part: Part) -> None:
        try:
            found = decode_range(content)
        except (struct.error, ValueError) as error:
            raise self._file.damaged("a range", type(error).__name__) from error
        first = len(part.blocks) - found.blocks
        if first < 0:
            raise self._file.damaged(
                f"a range of at most {len(part.blocks)} blocks", f"one of {found.blocks}"
            )
        part.ranges.append(PartRange(found.outcome, part.blocks[first:]))
        del part.blocks[first:]

    def _block(self, size: int) -> Block:
        """Checks a block: its digest, its lengths, and what a writer promises of its columns."""
        start = self._file.at
        digest = blake3(b"BLOK")
        counts = self._span(min(size, COUNTS.size), digest)
        layout = BlockLayout(*COUNTS.unpack(counts)) if len(counts) == COUNTS.size else None
        if layout is None or max(layout.sources, layout.documents) > PART_NAMES or layout.end != size:
            raise self._file.damaged("a block with the columns that it states", "other columns")
        self._file.at = start
        columns = counts + self._span(layout.digests - COUNTS.size, digest)
        self._skip(layout.shingle_ends - layout.digests, digest)
        ends = self._span(layout.sets - layout.shingle_ends, digest)
        self._skip(layout.end - layout.sets, digest)
        if digest.digest() != self._file.digest:
            raise self._file.damaged("a block that has its digest", "other bytes")
        if not _is_sound(columns, ends, layout):
            raise self._file.damaged("columns that a search writes", "others")
        self._file.at = start + size
        return Block(self._number, start, layout)

    def _span(self, size: int, digest: blake3) -> bytes:
        span = self._file.stream.read(size)
        if len(span) < size:
            raise self._file.damaged("a whole block", "the end of the file")
        digest.update(span)
        return span

    def _skip(self, size: int, digest: blake3) -> None:
        while size:
            size -= len(self._span(min(size, READ_BYTES), digest))


def _is_sound(columns: bytes, shingle_ends: bytes, layout: BlockLayout) -> bool:
    """Whether names and documents increase, and every number points into its column."""
    name_ends = little_endian_integers("Q", columns[layout.name_ends : layout.names])
    names = columns[layout.names : layout.source_of]
    sources = little_endian_integers("I", columns[layout.source_of : layout.rows])
    rows = little_endian_integers("Q", columns[layout.rows : layout.sizes])
    ends = little_endian_integers("Q", shingle_ends)
    bounds = array("Q", [0]) + name_ends
    if not layout.documents or not all(map(le, bounds, name_ends)) or bounds[-1] != len(names):
        return False
    paths = [names[bounds[at] : bounds[at + 1]] for at in range(len(name_ends))]
    if not all(map(lt, paths, paths[1:])) or max(sources) >= len(paths):
        return False
    documents = list(zip(sources, rows, strict=True))
    if not all(map(lt, documents, documents[1:])):
        return False
    return all(map(le, ends, ends[1:])) and ends[-1] == layout.shingles


def is_document_part(path: str) -> bool:
    """Whether the file starts as a part of documents of any version. False if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return False
    try:
        return os.read(fd, len(MAGIC) - 1) == MAGIC[:-1]
    except OSError:
        return False
    finally:
        os.close(fd)
