"""A part at rest: writes it, and reads it with every byte checked (DOCUMENTS.md, "A part" and "A
slice").
"""

from __future__ import annotations

import os
import struct
import sys
from array import array
from bisect import bisect_right
from operator import le, lt, sub

from blake3 import blake3

from rdc.documents.read.file_kinds import FileRange
from rdc.documents.read.text_batch import ProblemKind, RangeOutcome, RowProblem, RowProblems, TextBatch
from rdc.errors import ExitCode, UsageError, printable
from rdc.files.own.output_file import OutputKind
from rdc.kernel import upper_halves
from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.records import Record
from rdc.limits import (
    PART_BLOCK_BYTES,
    PART_NAMES,
    READ_BYTES,
    ROW_PROBLEMS,
    SCAN_SLICES,
    SIZE_LIMIT,
    SLICE_HEAD_BYTES,
)
from rdc.model.entries import little_endian, little_endian_integers, strings
from rdc.progress import Problem
from rdc.similarity.samples import one_permutation
from rdc.similarity.texts import FeatureColumn, shingles
from rdc.survey.container import PartError, SectionReader, section
from rdc.survey.slices import SliceSet, WalkTotals, are_options, option_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

    from typing_extensions import Buffer

    from rdc.model.similar import DocumentOptions


SHINGLE_VERSION = 1
"""Version of the rules in tests/reference/shingles.py. One search compares features of one version."""

SHINGLE_SIZES = {"words": 5, "chars": 8}
"""The number of words or characters of a shingle."""


def text_features(text: Buffer, offsets: Buffer, unit: str) -> FeatureColumn:
    """Return the features of each text of a column. `unit`: a key of SHINGLE_SIZES."""
    return shingles(text, offsets, SHINGLE_SIZES[unit], unit="chars" if unit == "chars" else "words")


SAMPLES = 128
"""Samples a document."""

SAMPLE_BYTES = 4 * SAMPLES

SEED = 1

DIGEST_BYTES = 16
"""Bytes of the BLAKE3 digest of a text that tell equal texts."""

COUNTS = struct.Struct("<4Q")
"""Sources, documents, shingles, bytes of names."""


SLICE_BYTES = 256 << 10
"""Bytes of texts whose features are made and used before those of others. They take about as much."""


class BlockLayout(Record):
    """The offsets of the columns of a block, from its start."""

    sources: int
    documents: int
    shingles: int
    name_bytes: int

    @property
    def name_ends(self) -> int:
        return COUNTS.size

    @property
    def names(self) -> int:
        return self.name_ends + 8 * self.sources

    @property
    def source_of(self) -> int:
        return self.names + self.name_bytes

    @property
    def rows(self) -> int:
        return self.source_of + 4 * self.documents

    @property
    def sizes(self) -> int:
        return self.rows + 8 * self.documents

    @property
    def digests(self) -> int:
        return self.sizes + 8 * self.documents

    @property
    def samples(self) -> int:
        return self.digests + DIGEST_BYTES * self.documents

    @property
    def shingle_ends(self) -> int:
        return self.samples + SAMPLE_BYTES * self.documents

    @property
    def sets(self) -> int:
        return self.shingle_ends + 8 * self.documents

    @property
    def end(self) -> int:
        return self.sets + 4 * self.shingles


def encode_block(batch: TextBatch, unit: str) -> list[bytes]:
    """Return the columns of a block, in order; a column may be several spans. Threads may call it in
    parallel."""
    samples: list[bytes] = []
    sets: list[bytes] = []
    digests: list[bytes] = []
    sizes, ends = array("Q"), array("Q")
    shingles = 0
    for span in batch.spans:
        for offsets in _slices(span.offsets):
            column = text_features(span.text, offsets, unit)
            samples.append(one_permutation(column.features, column.offsets, SAMPLES, SEED).data)
            sets.append(upper_halves(column.features))
            ends.extend([shingles + end for end in array("q", column.offsets[8:])])
            shingles += len(sets[-1]) // 4
        lengths = array("Q", map(sub, span.offsets[1:], span.offsets))
        digests.append(_digests(name_parts(span.content(), lengths), len(lengths)))
        sizes += lengths
    names, name_ends = bytearray(), array("Q")
    for path in batch.paths:
        names += path
        name_ends.append(len(names))
    return [
        COUNTS.pack(len(batch.paths), len(batch), shingles, len(names)),
        little_endian(name_ends),
        bytes(names),
        little_endian(batch.sources),
        little_endian(batch.rows),
        little_endian(sizes),
        *digests,
        *map(_little_endian, samples),
        little_endian(ends),
        *map(_little_endian, sets),
    ]


def _slices(offsets: array[int]) -> Iterator[array[int]]:
    """Yield the texts, some at a time: their features stay in the cache of a core until they are used."""
    first, count = 0, len(offsets) - 1
    while first < count:
        end = max(first + 1, bisect_right(offsets, offsets[first] + SLICE_BYTES) - 1)
        yield offsets[first : end + 1]
        first = end


def _digests(names: bytes, count: int) -> bytes:
    """Return the first DIGEST_BYTES of each name."""
    words, digests = array("Q", names), array("Q", bytes(DIGEST_BYTES * count))
    step = NAME_BYTES // 8
    digests[0::2], digests[1::2] = words[0::step], words[1::step]
    return digests.tobytes()


def _little_endian(numbers: bytes) -> bytes:
    """Native 32-bit numbers as those of a block."""
    return numbers if sys.byteorder == "little" else little_endian(array("I", numbers))


_SLICE_COUNTS = struct.Struct("<8Q")
"""Number of the slice, number of slices, files, bytes and directories walked, bytes to read, number of paths,
bytes of paths."""

NUMBER_LIMIT = (1 << 64) - 1
"""The largest of these numbers."""


class DocumentHead(Record):
    name: str
    """The part in messages."""
    unit: str
    """The unit of the shingles."""
    paths: tuple[bytes, ...]
    slices: SliceSet | None
    """The one slice; None for a whole search."""
    size: int
    """Bytes of files that the slice reads."""

    @classmethod
    def expected(
        cls, name: str, paths: Sequence[bytes], options: DocumentOptions, of: int, roots: Sequence[int]
    ) -> DocumentHead:
        """Return the head of a search that has read nothing yet."""
        slices = SliceSet.expected(of, shared_options(options), roots)
        return cls(name, options.shingle, tuple(paths), slices, 0)


def shared_options(options: DocumentOptions) -> str:
    """Return the options in which slices of one search must agree."""
    # A field may have any name.
    field = (
        options.field if options.field.isalnum() else f"hex:{options.field.encode(errors='replace').hex()}"
    )
    return option_lines(
        options.rules,
        options.one_file_system,
        ("--field", field),
        ("--shingle", options.shingle),
        *([] if options.format == "auto" else [("--format", options.format)]),
    )


def encode_slice(paths: Sequence[bytes], slices: SliceSet, size: int) -> bytes:
    """Return the content of a section SLIC. `size`: bytes of the slice's files, as listed."""
    names = b"".join([path + b"\0" for path in paths])
    options = slices.options.encode()
    totals = slices.most
    # Bytes are only compared and added up for progress: those of enough sparse files are cut.
    walked = (totals.files, min(totals.bytes, NUMBER_LIMIT), totals.directories)
    own = min(size, NUMBER_LIMIT)
    counts = _SLICE_COUNTS.pack(slices.numbers[0], slices.of, *walked, own, len(paths), len(names))
    return b"".join([counts, little_endian(array("Q", slices.roots)), names, options])


def decode_slice(content: bytes, name: str, unit: str) -> DocumentHead:
    """Decode the head of a slice. Raises ValueError for content that no search writes."""
    if len(content) < _SLICE_COUNTS.size:
        raise ValueError("a slice with other fields")
    number, of, files, size, directories, own, count, name_bytes = _SLICE_COUNTS.unpack_from(content)
    end = _SLICE_COUNTS.size + 8 * count + name_bytes
    if end > len(content) or not 1 <= number <= of <= SCAN_SLICES:
        raise ValueError("a slice that no search has")
    roots = little_endian_integers("Q", content[_SLICE_COUNTS.size : end - name_bytes])
    paths = strings(content[end - name_bytes : end])
    options = content[end:].decode()
    if len(paths) != count or not are_options(options):
        raise ValueError("a slice with other paths or options")
    totals = WalkTotals(files, size, directories, number)
    slices = SliceSet(of, (number,), options, tuple(roots), totals, totals)
    return DocumentHead(name, unit, tuple(paths), slices, own)


_RANGE_COUNTS = struct.Struct("<8QII")
"""Number of the range, number of ranges, bytes of the file, lines, blocks before this section that are of the
range, rows left out, bad rows, 1 if the range was read to its end; bytes of the path, number of problems."""

_RANGE_PROBLEM = struct.Struct("<BIQQI")
"""Kind, exit code, row, rows left out, bytes of the message."""

_FAILURE = len(ProblemKind)
"""The kind of a problem of the file itself."""


class FoundRange(Record):
    outcome: RangeOutcome
    blocks: int
    """The number of blocks that it has, just before it in the part."""


def encode_range(found: FoundRange) -> bytes:
    """Return the content of a section RANG."""
    one = found.outcome
    problems = [
        _RANGE_PROBLEM.pack(
            problem.kind,
            ExitCode.PARTIAL,
            problem.row,
            problem.left_out,
            len(message := problem.message.encode("utf-8", "surrogateescape")),
        )
        + message
        for problem in one.problems.found
    ]
    if one.failure is not None:
        message = one.failure.message.encode("utf-8", "surrogateescape")
        problems.append(_RANGE_PROBLEM.pack(_FAILURE, one.failure.code, 0, 1, len(message)) + message)
    counts = _RANGE_COUNTS.pack(
        *(one.range.number, one.range.of, one.range.size, one.lines, found.blocks),
        *(one.problems.count, one.problems.bad, one.complete, len(one.path), len(problems)),
    )
    return b"".join([counts, one.path, *problems])


def decode_range(content: bytes) -> FoundRange:
    """Decode what was found in a range. Raises ValueError or struct.error for content that no search
    writes."""
    number, of, size, lines, blocks, left_out, bad, complete, length, count = _RANGE_COUNTS.unpack_from(
        content
    )
    path = content[_RANGE_COUNTS.size : _RANGE_COUNTS.size + length]
    if not number < of <= SCAN_SLICES or size > SIZE_LIMIT or complete > 1 or len(path) < length:
        raise ValueError("a range that no search has")
    range_ = FileRange.of_file(number, of, size)
    if lines > range_.end - range_.start:
        raise ValueError("more lines than bytes")
    problems = RowProblems(path)
    failure: Problem | None = None
    at = _RANGE_COUNTS.size + length
    for _ in range(count):
        kind, code, row, dropped, length = _RANGE_PROBLEM.unpack_from(content, at)
        at += _RANGE_PROBLEM.size
        message = content[at : at + length].decode("utf-8", "surrogateescape")
        at += length
        if kind == _FAILURE:
            failure = Problem(ExitCode(code), path, message)
        else:
            problems.found.append(RowProblem(ProblemKind(kind), row, message, dropped))
    if at != len(content) or min(bad, ROW_PROBLEMS) > len(problems.found):
        raise ValueError("a range with other fields")
    problems.count, problems.bad = left_out, bad
    return FoundRange(RangeOutcome(path, range_, lines, bool(complete), problems, failure), blocks)


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


class Block(Record):
    """A block of a part, checked, and where it is."""

    part: int
    """The number of the part, as the caller counts them."""
    start: int
    """Bytes before it in the file."""
    layout: BlockLayout
    rows_before: int = 0
    """Added to each row: the rows of the same file before the range that the block is of."""


class Part(Record):
    """The head of a part, without its columns."""

    head: DocumentHead
    blocks: list[Block]
    """The blocks of files that one machine read whole."""
    problems: list[Problem]
    left_out: int
    ranges: list[PartRange]


class PartRange(Record):
    """A range of a file, and its blocks."""

    outcome: RangeOutcome
    blocks: list[Block]


def method(unit: str) -> bytes:
    """Return the parameters that two parts must share."""
    return (
        f"rdc documents 1; shingles {SHINGLE_VERSION} of {SHINGLE_SIZES[unit]} {unit};"
        f" {SAMPLES} samples by one permutation, seed {SEED}"
    ).encode()


def encode_section(tag: bytes, columns: Iterable[bytes]) -> Iterator[bytes]:
    """Encode a section."""
    spans = list(columns)
    return section(_SECTION, tag, [sum(map(len, spans))], spans)


def part_start(unit: str, magic: bytes = MAGIC) -> Iterator[bytes]:
    """Encode what comes before the blocks."""
    yield magic
    yield from encode_section(b"HEAD", [method(unit)])


def part_end(problems: Iterable[Problem], left_out: int) -> Iterator[bytes]:
    """Encode what comes after the blocks. `left_out`: rows and files that could not be used."""
    for problem in problems:
        message = problem.message.encode("utf-8", "surrogateescape")
        head = _PROBLEM.pack(problem.code, len(problem.path_bytes), left_out)
        left_out = 0
        yield from encode_section(b"FAIL", [head, problem.path_bytes, message])
    yield from encode_section(b"LAST", [])


def read_part(stream: BinaryIO, name: str, number: int) -> Part:
    """Check a whole part. `name`: the file in messages.

    Raises PartError, with the offset, for damage, and UsageError for a part of other parameters.
    """
    return _Reader(stream, name, number).read()


def read_head(stream: BinaryIO, name: str) -> DocumentHead:
    """Read the start of a part. Raises as read_part()."""
    return _Reader(stream, name, 0).head()


class _Reader:
    def __init__(self, stream: BinaryIO, name: str, number: int) -> None:
        self._file = SectionReader(stream, name, _SECTION, "search")
        self._name = name
        self._number = number
        self._size = os.fstat(stream.fileno()).st_size

    def head(self) -> DocumentHead:
        """Read what comes before the blocks."""
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
        """Check a block: its digest, its lengths, and what a writer promises of its columns."""
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
    """Return whether names and documents increase, and every number points into its column."""
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
    """Return whether the file starts as a part of documents of any version. False if it cannot be read."""
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
