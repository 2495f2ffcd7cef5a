"""Gatherer: takes what a walk meets into Found and ChunkLocations, all of it or what one slice has."""

from __future__ import annotations

from rdc.model.entries import Kind, little_endian_integers
from rdc.records import dataclass
from rdc.survey.scan.directory_numbers import DirectoryNumbers
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from rdc.files.objects.object_listing import ListedObjects
    from rdc.files.objects.object_tree import ObjectTree
    from rdc.files.root.root import Root
    from rdc.progress import Problem, Reporter
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.scan.found_files import Found
    from rdc.survey.walk.slice_choice import SliceChoice
    from rdc.tree.walk import WalkedDirectory

__all__ = ["Gatherer", "MetDirectory", "MetObjects", "Taker", "Walked"]


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


@dataclass(frozen=True, slots=True)
class MetDirectory:
    operand: int
    """Number of the path of the scan."""
    root: Root
    walked: int
    """Position in the walk over everything."""
    found: WalkedDirectory


@dataclass(frozen=True, slots=True)
class MetObjects:
    """The objects of one directory, or one object that a URL names."""

    operand: int
    tree: ObjectTree
    walked: int
    below: bytes
    """The directory's path below its URL."""
    listed: ListedObjects

    @property
    def path(self) -> bytes:
        """The directory's path in the tree."""
        return b"." + (b"/" + self.below if self.listed.below else b"")


class Taker(Protocol):
    """What a walk gives what it meets. `files` and `total_bytes` grow with it."""

    files: int
    total_bytes: int

    def take(self, met: MetDirectory) -> None:
        """Takes a directory, in the order of the walk, which goes into the depth first."""

    def take_file(
        self, operand: int, root: Root, shown: bytes, walked: int, name: bytes, found: os.stat_result
    ) -> None:
        """Takes a file that is a path of the scan itself. `shown`: its directory, as the user would type
        it."""

    def take_objects(self, met: MetObjects) -> None:
        """Takes objects."""

    def take_problem(self, operand: int, problem: Problem) -> None:
        """Takes a problem of the walk."""


class Gatherer:
    """With a `choice`, what other slices have is only added up, and their problems are not reported: all
    slices meet them, and the one that they belong to reports them. Without one, nothing is added up here:
    Found does."""

    def __init__(
        self, found: Found, locations: ChunkLocations, reporter: Reporter, choice: SliceChoice | None = None
    ) -> None:
        self._found = found
        self._locations = locations
        self._reporter = reporter
        self._choice = choice
        self._numbers = DirectoryNumbers(locations, -1)
        self.files, self.total_bytes = 0, 0

    def take(self, met: MetDirectory) -> None:
        found, path = met.found, met.found.path
        rows = found.listing.rows_of(Kind.FILE)
        self._enter(met.operand, path, met.root.shown(path) or b".", met.walked)
        own = True
        if self._choice is not None:
            own = self._choice.has_directory(met.operand, path)
            self.files += len(rows)
            sizes = little_endian_integers("Q", found.listing.sizes)
            self.total_bytes += sum(map(sizes.__getitem__, rows))
            rows = self._choice.chosen(rows, found.inodes, own=own)
        if own or rows:
            self._found.add(met.root, self._numbers.number(), path, found.listing, found.inodes, rows)

    def take_file(
        self, operand: int, root: Root, shown: bytes, walked: int, name: bytes, found: os.stat_result
    ) -> None:
        self.files += 1
        self.total_bytes += found.st_size
        if self._choice is None or self._choice.has_file(operand, found.st_ino, found.st_nlink):
            number = self._locations.add_directory(shown or b".", -1, operand, walked)
            self._found.add_file(root, number, name, found)

    def take_objects(self, met: MetObjects) -> None:
        listed = met.listed
        self.files += len(listed.sizes)
        self.total_bytes += sum(listed.sizes)
        own = self._choice is None or self._choice.has_directory(met.operand, met.below)
        if listed.single:
            if own:
                number = self._locations.add_directory(met.tree.shown(b"."), -1, met.operand, met.walked)
                self._found.add_objects(met.tree, number, b".", listed)
            return
        self._enter(met.operand, met.path, met.tree.shown(met.path), met.walked)
        if own:
            number = self._numbers.number()
            if listed.sizes:
                self._found.add_objects(met.tree, number, met.path, listed)

    def take_problem(self, operand: int, problem: Problem) -> None:
        if self._choice is None or self._choice.has_directory(operand, problem.path):
            self._reporter(problem)

    def _enter(self, operand: int, path: bytes, shown: bytes, walked: int) -> None:
        if operand != self._numbers.operand:
            self._numbers = DirectoryNumbers(self._locations, operand)
        self._numbers.enter(path, shown, walked)
