"""RangeOutcome: what reading one range of a file found, besides texts."""

from __future__ import annotations

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.documents.read.file_range import FileRange
    from rdc.documents.read.row_problems import RowProblems
    from rdc.progress import Problem

__all__ = ["RangeOutcome"]


@dataclass(frozen=True, slots=True)
class RangeOutcome:
    path: bytes
    range: FileRange
    lines: int
    """Lines of a JSONL file that begin in the range. The rows of the next range follow them. 0 for Parquet,
    whose rows have their numbers."""
    complete: bool
    """True if the range was read to its end."""
    problems: RowProblems
    """Rows count from the range's first line."""
    failure: Problem | None
    """Why the file could not be read or is not to be trusted."""

    @property
    def left_out(self) -> int:
        """Rows left out, and 1 for a failure."""
        return self.problems.count + (self.failure is not None)

    def all_problems(self) -> list[Problem]:
        """All problems, where rows count from the range's first line."""
        return [*([] if self.failure is None else [self.failure]), *self.problems.problems()]
