"""Explorer: walks the paths of a scan, each directory once, however it is reached."""

from __future__ import annotations

import os
import stat

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.objects.object_url import is_url, parse_url
from rdc.files.root.root import Root
from rdc.model.entries import Kind, little_endian_integers, strings
from rdc.progress import Problem
from rdc.survey.scan.directory_numbers import DirectoryNumbers
from rdc.survey.walk.storage_use import StorageUse
from rdc.survey.walk.unique_walk import UniqueWalk
from rdc.tree.filter_list import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.scan import ScanOptions
    from rdc.progress import Event, Reporter
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.scan.found_files import Found
    from rdc.survey.scan.object_walk import ObjectWalk
    from rdc.survey.walk.slice_choice import SliceChoice
    from rdc.tree.inode_walk import InodeDirectory

__all__ = ["Explorer", "is_single_file"]


def is_single_file(path: bytes) -> bool:
    """Whether a path of a scan is a file or leads to one."""
    try:
        return not is_url(path) and stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


class Explorer:
    """Fills `found` and `locations`. What it cannot read is reported and skipped.

    Overlapping paths are counted once. Symlinks are followed only if they are paths of the scan. With a
    `choice`, everything is walked all the same, but only what the slice has is added and reported.
    """

    def __init__(
        self,
        options: ScanOptions,
        found: Found,
        locations: ChunkLocations,
        reporter: Reporter,
        stopped: Callable[[], bool],
        choice: SliceChoice | None = None,
        paths: Sequence[bytes] = (),
    ) -> None:
        """`paths`: all that will be explored, if some are URLs of object stores."""
        self._options = options
        self._paths = paths
        self._stopped = stopped
        self._objects: ObjectWalk | None = None
        self._choice = choice
        self._reporter = reporter
        self._walk = UniqueWalk(
            filter_list(options.rules),
            self._report,
            one_file_system=options.one_file_system,
            use=StorageUse(options.depth, options.max_rate),
            stopped=stopped,
            met_again=self._report_again,
        )
        self._found = found
        self._locations = locations
        self.single_files = False
        """Whether a path named a single file, which a walk may find again although it has one link."""
        self.roots: list[int] = []
        """Inode number of each path explored; 0 if it could not be looked at."""
        self.directories, self.files, self.bytes = 0, 0, 0
        """What was walked, and names of regular files there, whichever slice they belong to."""

    def explore(self, path: bytes) -> None:
        """Lists the files below `path`, or `path` itself if it is a file."""
        if is_url(path):
            self.roots.append(0)
            self._explore_objects(path)
            return
        try:
            found = os.stat(path)
            mode, inode = found.st_mode, found.st_ino
        except (OSError, ValueError):
            mode, inode = stat.S_IFDIR, 0  # opening it reports the error
        self.roots.append(inode)
        try:
            if stat.S_ISREG(mode):
                directory, name = os.path.split(os.path.realpath(path))
                # Beside a symlink, another file may have the target's name, so the target's directory is
                # shown.
                shown = directory if os.path.islink(path) else os.path.dirname(path)
                self.single_files = True
                root = self._walk.use.bind(Root.open(directory, label=shown or b"."))
                self._add_file(root, shown, name)
            else:
                self._add_tree(Root.open(path))
        except FileError as error:
            self._report(Problem(error.code, path, str(error)))

    def _explore_objects(self, path: bytes) -> None:
        if self._objects is None:
            from rdc.survey.scan.object_walk import ObjectWalk

            self._objects = ObjectWalk(
                self._options,
                self._paths,
                self._found,
                self._locations,
                self._report,
                self._stopped,
                self._walk.use.rate,
            )
        walked = self._objects.explore(parse_url(path), self._operand, self.directories, self._choice)
        self.directories += walked.directories
        self.files += walked.files
        self.bytes += walked.bytes

    def _add_file(self, root: Root, shown: bytes, name: bytes) -> None:
        """Adds a single file."""
        try:
            found = os.stat(name, dir_fd=root.fileno(), follow_symlinks=False)
        except OSError as error:
            raise root.failure(error, name, "look at it", reading=True) from error
        if not stat.S_ISREG(found.st_mode):
            return
        walked, self.directories = self.directories, self.directories + 1
        self.files += 1
        self.bytes += found.st_size
        operand = self._operand
        if self._choice is None or self._choice.has_file(operand, found.st_ino, found.st_nlink):
            number = self._locations.add_directory(shown or b".", -1, operand, walked)
            self._found.add_file(root, number, name, found)

    def _add_tree(self, root: Root) -> None:
        numbers = DirectoryNumbers(self._locations, self._operand)
        for found in self._walk.below(root):
            path, rows = found.path, found.listing.rows_of(Kind.FILE)
            numbers.enter(path, root.shown(path) or b".", self.directories)
            self.directories += 1
            own = True
            if self._choice is not None:
                own = self._choice.has_directory(self._operand, path)
                self.files += len(rows)
                sizes = little_endian_integers("Q", found.listing.sizes)
                self.bytes += sum(map(sizes.__getitem__, rows))
                rows = self._choice.chosen(rows, found.inodes, own=own)
            if own or rows:
                self._found.add(root, numbers.number(), path, found.listing, found.inodes, rows)
            self._report_special(root, found)

    @property
    def _operand(self) -> int:
        """Number of the path that is being explored."""
        return len(self.roots) - 1

    def _report(self, event: Event, /) -> None:
        """Reports a problem of the walk. All slices meet it, and the one that it belongs to reports it."""
        if (
            self._choice is None
            or not isinstance(event, Problem)
            or self._choice.has_directory(self._operand, event.path)
        ):
            self._reporter(event)

    def _report_special(self, root: Root, found: InodeDirectory) -> None:
        for row in found.listing.rows_of(Kind.SPECIAL):
            shown = root.shown(join(found.path, strings(found.listing.names)[row]))
            text = f"{printable(shown)}: skipped, neither file, directory nor symlink"
            self._report(Problem(ExitCode.OK, shown, text))

    def _report_again(self, shown: bytes) -> None:
        self._report(Problem(ExitCode.OK, shown, f"{printable(shown)}: counted already under another path"))
