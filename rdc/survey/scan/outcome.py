"""Outcome: everything that a report is made from and that a part file stores."""

from __future__ import annotations

from bisect import insort

from rdc.errors import ExitCode, worse
from rdc.limits.searches import SCAN_PROBLEMS
from rdc.model.scan import ScanProblem
from rdc.survey.count.counters import Counters
from rdc.survey.slices import option_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanOptions
    from rdc.progress import Problem
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.slices import SliceSet


class Outcome:
    """All counts of one scan or of merged parts. It grows while a scan runs."""

    def __init__(self, options: ScanOptions) -> None:
        self.options = options
        self.counters = Counters(options)
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
        """Why not everything was read, as in Coverage."""
        self.slices: SliceSet | None = None
        """The slices in it; None for a whole scan and for merged scans."""
        self.problems: list[ScanProblem] = []
        """The first SCAN_PROBLEMS in the order of paths and messages, in whatever order they were added."""
        self.more_problems = 0
        self.interrupted = False
        """Whether this run was interrupted. A merged part's interruption is in `reason`."""
        self.code = ExitCode.OK

    @property
    def locations(self) -> ChunkLocations:
        return self.counters.locations

    def problem(self, problem: Problem) -> None:
        """Records a file that could not be read."""
        self.add_problem(ScanProblem(problem.path, problem.message, problem.code))

    def add_problem(self, problem: ScanProblem) -> None:
        self.code = worse(self.code, problem.code)
        insort(self.problems, problem, key=lambda one: (one.path, one.message))
        if len(self.problems) > SCAN_PROBLEMS:
            self.problems.pop()
            self.more_problems += 1


def shared_options(options: ScanOptions) -> str:
    """The options in which slices of one scan must agree."""
    return option_lines(
        options.rules,
        options.one_file_system,
        ("--time", options.seconds),
        ("--sample", options.sample),
        ("--seed", options.seed),
        ("--shift", options.shift),
    )
