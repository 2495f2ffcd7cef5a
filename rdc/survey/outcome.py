"""What a survey ends with: everything its report is made of, and what a part file holds."""

from __future__ import annotations

from rdc.errors import ExitCode, worse
from rdc.limits import SCAN_PROBLEMS
from rdc.model.scan import ScanProblem
from rdc.survey.census import Census

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanOptions
    from rdc.progress import Problem
    from rdc.survey.places import Places

__all__ = ["Outcome"]


class Outcome:
    """Counters and the census. Grows while a scan runs."""

    def __init__(self, options: ScanOptions) -> None:
        self.options = options
        self.census = Census(options)
        self.paths: list[bytes] = []
        self.files = 0
        self.bytes = 0
        self.allocated_bytes = 0
        self.hardlinks = 0
        self.holes_bytes = 0
        self.already_shared_bytes = 0
        self.found_files = 0
        self.found_bytes = 0
        self.known_bytes = 0
        self.reason = ""
        """Why not everything was read: as Coverage has it."""
        self.problems: list[ScanProblem] = []
        self.more_problems = 0
        self.interrupted = False
        """This very run, not one that wrote a part."""
        self.code = ExitCode.OK

    @property
    def places(self) -> Places:
        return self.census.places

    def problem(self, problem: Problem) -> None:
        """Something could not be read."""
        self.add_problem(ScanProblem(problem.path, problem.message, problem.code))

    def add_problem(self, problem: ScanProblem) -> None:
        self.code = worse(self.code, problem.code)
        if len(self.problems) < SCAN_PROBLEMS:
            self.problems.append(problem)
        else:
            self.more_problems += 1
