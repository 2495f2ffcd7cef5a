"""RowProblems: what is wrong with rows of one file, named up to a limit and counted beyond."""

from __future__ import annotations

from rdc.errors import ExitCode, printable
from rdc.limits.documents import ROW_PROBLEMS
from rdc.progress import Problem

__all__ = ["RowProblems"]


class RowProblems:
    """Collects the problems of one file. `count` is the number of rows left out."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.count = 0
        self._bad = 0
        """Rows that were added one by one."""

    def add(self, row: int, reason: str) -> None:
        """`reason` completes `PATH: row N: `."""
        self.count += 1
        self._bad += 1
        if self._bad <= ROW_PROBLEMS:
            self.note(f"row {row}: {reason}")

    def note(self, message: str) -> None:
        """A problem that is no single row's."""
        self.problems.append(Problem(ExitCode.PARTIAL, self.path, f"{printable(self.path)}: {message}"))

    def close(self) -> None:
        """Counts the rows that were not named."""
        if self._bad > ROW_PROBLEMS:
            self.note(f"{self._bad - ROW_PROBLEMS:,} more rows could not be used; {self._bad:,} in all")
