"""JoinedSlices: all slices of one search together, with the rows of divided files counted through.

A slice that reads a range of a JSONL file knows its rows from the first line of the range on. Only all slices
together know how many lines come before.
"""

from __future__ import annotations

from itertools import groupby

from rdc.documents.read.file_kinds import FileKind, kind_of
from rdc.documents.read.row_problems import RowProblems
from rdc.errors import ExitCode, printable
from rdc.lean.records import replace
from rdc.limits.wire import SIZE_LIMIT
from rdc.progress import Problem
from rdc.survey.container import PartError
from rdc.survey.slices import SEARCH, check_complete, check_slices, tree_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.parts.open_parts import OpenParts
    from rdc.documents.parts.part_file import Block, Part, PartRange

__all__ = ["JoinedSlices"]


class JoinedSlices:
    """Adds up whole parts, or all slices of one search."""

    def __init__(self, parts: Sequence[Part], opened: OpenParts) -> None:
        """`opened`: the same parts.

        Raises UsageError if a slice is missing, given twice or of another search, and PartError for
        ranges that no search writes. Both name the part.
        """
        heads = [part.head for part in parts]
        check_slices(heads, SEARCH)
        check_complete(heads, SEARCH)
        self._opened = opened
        self.blocks = [block for part in parts for block in part.blocks]
        self.problems = [problem for part in parts for problem in part.problems]
        self.left_out = sum([part.left_out for part in parts])
        self.later: list[Problem] = []
        """The problems that no part has by itself. They are in `problems` as well."""
        ranges = sorted([one for part in parts for one in part.ranges], key=_order)
        for path, group in groupby(ranges, key=_path):
            self._add_file(path, list(group))
        change = tree_change(heads)
        if change is not None:
            self.later.append(Problem(ExitCode.PARTIAL, change.path, change.message))
        self.problems += self.later

    def _add_file(self, path: bytes, ranges: list[PartRange]) -> None:
        """Adds the ranges of one file in their order, as far as it could be read."""
        numbers = [one.outcome.range.number for one in ranges]
        first = ranges[0].outcome.range
        alike = all(
            (one.outcome.range.of, one.outcome.range.size) == (first.of, first.size) for one in ranges
        )
        if not alike or numbers != list(range(first.of)):
            self._note(
                Problem(
                    ExitCode.PARTIAL,
                    path,
                    f"{printable(path)}: expected one file in all slices, found others, and left it out;"
                    " search again when nobody writes it",
                )
            )
            return
        problems, rows = RowProblems(path), 0
        failures: dict[Problem, None] = {}
        for one in ranges:
            outcome = one.outcome
            self.blocks += [self._counted(block, one, rows) for block in one.blocks]
            problems.take(outcome.problems, rows)
            if outcome.failure is not None:
                failures[outcome.failure] = None
            # Without the lines of this range, rows of later ones have no numbers.
            if not outcome.complete:
                break
            rows += outcome.lines
        for failure in failures:
            self._note(failure)
        self.left_out += problems.count
        self.later += problems.problems()

    def _note(self, problem: Problem) -> None:
        self.left_out += 1
        self.later.append(problem)

    def _counted(self, block: Block, range_: PartRange, rows: int) -> Block:
        """The block with the rows before its range. Raises PartError unless it is of this range."""
        layout, outcome = block.layout, range_.outcome
        last = self._opened.numbers(block, "Q", layout.rows, layout.documents - 1, 1)[0]
        # A range of lines counts them; rows of Parquet have their numbers.
        is_parquet = not outcome.lines and kind_of(outcome.path, "auto") is FileKind.PARQUET
        most = SIZE_LIMIT if is_parquet else outcome.lines
        path = self._opened.bytes(block, layout.names, layout.name_bytes)
        if layout.sources != 1 or path != outcome.path or last > most or rows + last > SIZE_LIMIT:
            raise PartError(
                f"{self._opened.name(block.part)}: forged: expected rows of {printable(outcome.path)}, found"
                " others; search again on the machine it is from"
            )
        return replace(block, rows_before=rows)


def _path(one: PartRange) -> bytes:
    return one.outcome.path


def _order(one: PartRange) -> tuple[bytes, int]:
    return one.outcome.path, one.outcome.range.number
