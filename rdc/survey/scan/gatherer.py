"""Gatherer: takes what a walk meets into Found and ChunkLocations, all of it or what one slice has."""

from __future__ import annotations

from rdc.lean.records import dataclass
from rdc.lean.typed import Protocol
from rdc.survey.slices import SliceDivision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Problem, Reporter
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.scan.found_files import Found
    from rdc.survey.walk.file_columns import FileRows, Met


@dataclass(frozen=True, slots=True)
class Walked:
    """What a walk over all paths of a scan met, whichever slice it belongs to."""

    roots: tuple[int, ...]
    """Inode number of each path; 0 if it could not be looked at, and of a URL."""
    single_files: bool
    """Whether a path named a single file, which a walk may find again although it has one link."""
    directories: int
    files: int
    """Names of regular files."""
    bytes: int


class Taker(Protocol):
    """What a walk gives what it meets."""

    def take(self, met: Met) -> None:
        """Takes the files of a directory, in the order of the walk, which goes into the depth first."""

    def take_problem(self, operand: int, problem: Problem) -> None:
        """Takes a problem of the walk."""


class Step:
    """A directory on the way to the one that a walk is in."""

    __slots__ = ("given", "number", "path", "shown", "walked")

    def __init__(self, met: Met) -> None:
        self.path = met.path
        self.shown = met.shown
        self.walked = met.walked
        self.number = -1
        """Its number in ChunkLocations, once it has one."""
        self.given: set[int] = set()
        """The slices that have it in their list."""


class Way:
    """The directories on the way to the current one, of a walk that goes into the depth first."""

    def __init__(self) -> None:
        self.operand = -1
        """Number of the path of the scan that is walked."""
        self.steps: list[Step] = []

    def enter(self, met: Met) -> None:
        """Makes a directory the current one."""
        if met.operand != self.operand:
            self.operand, self.steps = met.operand, []
        step = Step(met)
        above = step.path.rpartition(b"/")[0]
        while self.steps and not (step.path and self.steps[-1].path == above):
            self.steps.pop()
        self.steps.append(step)


ALL = SliceDivision(1, by_inode=False)
"""One slice has everything."""


class Gatherer:
    """What other slices have is left out, and their problems are not reported: all slices meet them, and the
    one that they belong to reports them.

    A slice counts few of the directories that it walks, so only those and the ones above them get a number.
    Numbers still increase in the order of the walk. A directory without a number has no numbered directory
    below it. So when it gets one, all directories with smaller numbers came before it.
    """

    def __init__(
        self,
        found: Found,
        locations: ChunkLocations,
        reporter: Reporter,
        division: SliceDivision = ALL,
        number: int = 1,
    ) -> None:
        """`number`: of the slice that is gathered."""
        self._found = found
        self._locations = locations
        self._reporter = reporter
        self._division = division
        self._number = number
        self._way = Way()

    def take(self, met: Met) -> None:
        share = self._division.shares(met).get(self._number)
        if not met.is_single:
            self.enter(met)
        if share is not None:
            self.add(met, share)

    def enter(self, met: Met) -> None:
        """Makes a directory the current one, of which all or nothing may be added."""
        self._way.enter(met)

    def add(self, met: Met, files: FileRows) -> None:
        """Adds files of the current directory, or a file that is a path of the scan, and numbers the
        directory."""
        if met.is_single:
            number = self._locations.add_directory(met.shown, -1, met.operand, met.walked)
        else:
            number = -1
            for step in self._way.steps:
                if step.number < 0:
                    step.number = self._locations.add_directory(step.shown, number, met.operand, step.walked)
                number = step.number
        self._found.add_met(met, number, files)

    def take_problem(self, operand: int, problem: Problem) -> None:
        if self._division.of_directory(operand, problem.path) == self._number:
            self.report(problem)

    def report(self, problem: Problem) -> None:
        """Reports a problem of this slice."""
        self._reporter(problem)
