"""RowProblems: what is wrong with rows of one file, named up to a limit and counted beyond."""

from __future__ import annotations

from enum import IntEnum

from rdc.errors import ExitCode, printable
from rdc.lean.records import dataclass, replace
from rdc.limits.searches import ROW_PROBLEMS
from rdc.progress import Problem

__all__ = ["ProblemKind", "RowProblem", "RowProblems"]


class ProblemKind(IntEnum):
    ROW = 0
    """A bad row. The first ones of a file are named."""
    NOTE = 1
    """Something else that one part of the file has."""
    WHOLE = 2
    """Every range of the file meets it."""


@dataclass(frozen=True, slots=True)
class RowProblem:
    kind: ProblemKind
    row: int
    """0 if it is of no single row."""
    message: str
    """It completes `PATH: row N: `, or `PATH: `."""
    left_out: int = 0
    """Rows left out because of a WHOLE one. Others are counted apart."""


class RowProblems:
    """Collects the problems of one file. `count` is the number of rows left out."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.found: list[RowProblem] = []
        self.count = 0
        self.bad = 0
        """Rows that were added one by one."""

    def add(self, row: int, reason: str) -> None:
        """`reason` completes `PATH: row N: `."""
        self.count += 1
        self.bad += 1
        if self.bad <= ROW_PROBLEMS:
            self.found.append(RowProblem(ProblemKind.ROW, row, reason))

    def note(self, message: str, row: int = 0) -> None:
        """A problem that is not counted among bad rows."""
        self.found.append(RowProblem(ProblemKind.NOTE, row, message))

    def refuse(self, message: str, left_out: int) -> None:
        """A problem of the file, which every range of it meets."""
        self.count += left_out
        self.found.append(RowProblem(ProblemKind.WHOLE, 0, message, left_out))

    def take(self, other: RowProblems, rows: int) -> None:
        """Adds those of the next range of the same file, with `rows` rows before it."""
        self.count += other.count
        bad = self.bad
        for one in other.found:
            if one.kind is ProblemKind.WHOLE and one in self.found:
                self.count -= one.left_out
                continue
            bad += one.kind is ProblemKind.ROW
            if one.kind is not ProblemKind.ROW or bad <= ROW_PROBLEMS:
                self.found.append(replace(one, row=one.row + rows) if one.row else one)
        self.bad += other.bad

    def problems(self) -> list[Problem]:
        """All of them, and how many rows were not named."""
        messages = [f"row {one.row}: {one.message}" if one.row else one.message for one in self.found]
        if self.bad > ROW_PROBLEMS:
            messages.append(f"{self.bad - ROW_PROBLEMS:,} more rows could not be used; {self.bad:,} in all")
        shown = printable(self.path)
        return [Problem(ExitCode.PARTIAL, self.path, f"{shown}: {message}") for message in messages]
