"""FoundRange: a range of a file as a part of a slice has it (DOCUMENTS.md, "A slice")."""

from __future__ import annotations

import struct

from rdc.documents.read.file_range import FileRange
from rdc.documents.read.range_outcome import RangeOutcome
from rdc.documents.read.row_problems import ProblemKind, RowProblem, RowProblems
from rdc.errors import ExitCode
from rdc.lean.records import dataclass
from rdc.limits.searches import ROW_PROBLEMS, SCAN_SLICES
from rdc.limits.wire import SIZE_LIMIT
from rdc.progress import Problem

__all__ = ["FoundRange", "decode_range", "encode_range"]

_RANGE_COUNTS = struct.Struct("<8QII")
"""Number of the range, number of ranges, bytes of the file, lines, blocks before this section that are of the
range, rows left out, bad rows, 1 if the range was read to its end; bytes of the path, number of problems."""

_RANGE_PROBLEM = struct.Struct("<BIQQI")
"""Kind, exit code, row, rows left out, bytes of the message."""

_FAILURE = len(ProblemKind)
"""The kind of a problem of the file itself."""


@dataclass(frozen=True, slots=True)
class FoundRange:
    outcome: RangeOutcome
    blocks: int
    """The number of blocks that it has, just before it in the part."""


def encode_range(found: FoundRange) -> bytes:
    """The content of a section RANG."""
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
    """Raises ValueError or struct.error for content that no search writes."""
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
