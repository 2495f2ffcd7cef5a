"""Explorer: walks the paths of a scan, each directory once, however it is reached."""

from __future__ import annotations

import os
import stat

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.root.root import Root
from rdc.model.entries import Kind, strings
from rdc.progress import Problem
from rdc.survey.walk.unique_walk import UniqueWalk
from rdc.tree.filter_list import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.scan import ScanOptions
    from rdc.progress import Reporter
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.scan.found_files import Found
    from rdc.tree.inode_walk import InodeDirectory

__all__ = ["Explorer"]


class Explorer:
    """Fills `found` and `locations`. What it cannot read is reported and skipped.

    Overlapping paths are counted once. Symlinks are followed only if they are paths of the scan.
    """

    def __init__(
        self,
        options: ScanOptions,
        found: Found,
        locations: ChunkLocations,
        reporter: Reporter,
        stopped: Callable[[], bool],
    ) -> None:
        self._walk = UniqueWalk(
            filter_list(options.rules),
            reporter,
            one_file_system=options.one_file_system,
            stopped=stopped,
            met_again=self._report_again,
        )
        self._found = found
        self._locations = locations
        self._report = reporter
        self.single_files = False
        """Whether a path named a single file, which a walk may find again although it has one link."""

    def explore(self, path: bytes) -> None:
        """Lists the files below `path`, or `path` itself if it is a file."""
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            mode = stat.S_IFDIR  # opening it reports the error
        try:
            if stat.S_ISREG(mode):
                directory, name = os.path.split(os.path.realpath(path))
                # Beside a symlink, another file may have the target's name, so the target's directory is
                # shown.
                shown = directory if os.path.islink(path) else os.path.dirname(path)
                self.single_files = True
                self._add_file(Root.open(directory, label=shown or b"."), shown, name)
            else:
                self._add_tree(Root.open(path))
        except FileError as error:
            self._report(Problem(error.code, path, str(error)))

    def _add_file(self, root: Root, shown: bytes, name: bytes) -> None:
        """Adds a single file."""
        try:
            found = os.stat(name, dir_fd=root.fileno(), follow_symlinks=False)
        except OSError as error:
            raise root.failure(error, name, "look at it", reading=True) from error
        if stat.S_ISREG(found.st_mode):
            self._found.add_file(root, self._locations.add_directory(shown or b".", -1), name, found)

    def _add_tree(self, root: Root) -> None:
        numbers: dict[bytes, int] = {}
        for found in self._walk.below(root):
            path = found.path
            parent = numbers.get(path.rpartition(b"/")[0], -1) if path else -1
            number = numbers[path] = self._locations.add_directory(root.shown(path) or b".", parent)
            self._found.add(root, number, path, found.listing, found.inodes)
            self._report_special(root, found)

    def _report_special(self, root: Root, found: InodeDirectory) -> None:
        for row in found.listing.rows_of(Kind.SPECIAL):
            shown = root.shown(join(found.path, strings(found.listing.names)[row]))
            text = f"{printable(shown)}: skipped, neither file, directory nor symlink"
            self._report(Problem(ExitCode.OK, shown, text))

    def _report_again(self, shown: bytes) -> None:
        self._report(Problem(ExitCode.OK, shown, f"{printable(shown)}: counted already under another path"))
