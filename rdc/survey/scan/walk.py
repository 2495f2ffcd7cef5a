"""The walk of a scan: each directory once, however it is reached, and what one slice has of it."""

from __future__ import annotations

import os
import stat

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.paths import join
from rdc.files.objects.object_store import ObjectTree, is_url, parse_url
from rdc.files.root.root import Root
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.model.entries import Kind, strings
from rdc.progress import Event, Problem, Reporter
from rdc.survey.slices import SliceDivision
from rdc.survey.walk.file_columns import FileRows, Met
from rdc.survey.walk.walk_paths import StorageUse, UniqueWalk
from rdc.tree import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.own.output_file import Claims
    from rdc.model.scan import ScanOptions
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.scan.found_files import Found
    from rdc.survey.scan.objects import ObjectWalk
    from rdc.tree.walk import WalkedDirectory


# Gatherer: takes what a walk meets into Found and ChunkLocations, all of it or what one slice has.


class Walked(Record):
    """The entries that a walk over all paths of a scan met, whichever slice they belong to."""

    roots: tuple[int, ...]
    """Inode number of each path; 0 if it could not be looked at, and of a URL."""
    single_files: bool
    """True if a path named a single file, which a walk may find again although it has one link."""
    directories: int
    files: int
    """Names of regular files."""
    bytes: int


class Taker(Protocol):
    """The receiver of the entries that a walk meets."""

    def take(self, met: Met) -> None:
        """Take the files of a directory, in the order of the walk, which goes into the depth first."""

    def take_problem(self, operand: int, problem: Problem) -> None:
        """Take a problem of the walk."""


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
        """Make a directory the current one."""
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
    """Leaves out the entries of other slices; their problems are not reported: all slices meet them, and the
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
        """Take `number`: that of the slice to gather."""
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
        """Make a directory the current one, of which all or nothing may be added."""
        self._way.enter(met)

    def add(self, met: Met, files: FileRows) -> None:
        """Add files of the current directory, or a file that is a path of the scan, and number the
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
        if self._division.of_directory(operand, problem.path_bytes) == self._number:
            self.report(problem)

    def report(self, problem: Problem) -> None:
        """Report a problem of this slice."""
        self._reporter(problem)


# Explorer: walks the paths of a scan, each directory once, however it is reached.


def is_single_file(path: bytes) -> bool:
    """Return whether a path of a scan is a file or leads to one."""
    try:
        return not is_url(path) and stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def single_file(path: bytes) -> tuple[Root, bytes, bytes]:
    """Return the open directory of a file that is a path of a scan, that directory as it is shown, and the
    file's name there. Raises FileError."""
    directory, name = os.path.split(os.path.realpath(path))
    # Beside a symlink, another file may have the target's name, so the target's directory is shown.
    shown = directory if os.path.islink(path) else os.path.dirname(path)
    return Root.open(directory, label=shown or b"."), shown, name


class Explorer:
    """Gives all that it meets to a taker. What it cannot read is a problem, and skipped.

    Overlapping paths are counted once. Symlinks are followed only if they are paths of the scan.
    """

    def __init__(
        self,
        options: ScanOptions,
        taker: Taker,
        stopped: Callable[[], bool],
        paths: Sequence[bytes] = (),
        claims: Claims | None = None,
    ) -> None:
        """`paths`: all that will be explored, if some are URLs of object stores. `claims`: as in
        UniqueWalk."""
        self._options = options
        self._paths = paths
        self._stopped = stopped
        self._objects: ObjectWalk | None = None
        self._taker = taker
        self._walk = UniqueWalk(
            filter_list(options.rules),
            self._report,
            one_file_system=options.one_file_system,
            use=StorageUse(options.depth, options.max_rate),
            stopped=stopped,
            met_again=self._report_again,
            claims=claims,
        )
        self._single_files = False
        self._roots: list[int] = []
        self._directories = self._files = self._bytes = 0

    @property
    def walked(self) -> Walked:
        return Walked(tuple(self._roots), self._single_files, self._directories, self._files, self._bytes)

    def explore(self, path: bytes) -> None:
        """List the files below `path`, or `path` itself if it is a file. Raises UsageError for a file that a
        result of this run would replace."""
        if is_url(path):
            self._roots.append(0)
            self._explore_objects(path)
            return
        try:
            found = os.stat(path)
            mode, inode = found.st_mode, found.st_ino
        except (OSError, ValueError):
            mode, inode = stat.S_IFDIR, 0  # opening it reports the error
        self._roots.append(inode)
        try:
            if stat.S_ISREG(mode):
                self._single_files = True
                root, shown, name = single_file(path)
                self._add_file(self._walk.use.bind(root), shown, name)
            else:
                self._add_tree(self._walk.use.bind(Root.open(path)))
        except FileError as error:
            self._report(Problem(error.code, path, str(error)))

    def _explore_objects(self, path: bytes) -> None:
        if self._objects is None:
            from rdc.survey.scan.objects import ObjectWalk

            self._objects = ObjectWalk(
                self._options, self._paths, self._report, self._stopped, self._walk.use.rate
            )
        for where, found_at, listed in self._objects.explore(parse_url(path)):
            self._take(where, found_at, FileRows.of_objects(listed), is_single=listed.single)

    def _add_file(self, root: Root, shown: bytes, name: bytes) -> None:
        """Add a single file."""
        try:
            found = os.stat(name, dir_fd=root.fileno(), follow_symlinks=False)
        except OSError as error:
            raise root.failure(error, name, "look at it", reading=True) from error
        if not stat.S_ISREG(found.st_mode):
            return
        if self._walk.claims is not None:
            self._walk.claims.check(found.st_dev, found.st_ino, os.path.join(shown, name))
        self._take(root, b"", FileRows.of_file(name, found), is_single=True)

    def _add_tree(self, root: Root) -> None:
        for found in self._walk.below(root):
            self._take(root, found.path, FileRows.of_listing(found.listing, found.inodes))
            self._report_special(root, found)

    def _take(
        self, root: Root | ObjectTree, path: bytes, files: FileRows, *, is_single: bool = False
    ) -> None:
        met = Met(self._operand, root, self._directories, path, files, is_single)
        self._directories += 1
        self._files += len(files)
        self._bytes += met.bytes
        self._taker.take(met)

    @property
    def _operand(self) -> int:
        """Number of the path that is being explored."""
        return len(self._roots) - 1

    def _report(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self._taker.take_problem(self._operand, event)

    def _report_special(self, root: Root, found: WalkedDirectory) -> None:
        for row in found.listing.rows_of(Kind.SPECIAL):
            shown = root.shown(join(found.path, strings(found.listing.names)[row]))
            text = f"{printable(shown)}: skipped, neither file, directory nor symlink"
            self._report(Problem(ExitCode.OK, shown, text))

    def _report_again(self, shown: bytes) -> None:
        self._report(Problem(ExitCode.OK, shown, f"{printable(shown)}: counted already under another path"))
