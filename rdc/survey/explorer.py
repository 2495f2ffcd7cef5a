"""Walks what a scan was asked about: each directory once, however it is reached."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, FileError, printable
from rdc.files.confined import Root
from rdc.model.entries import Kind, strings
from rdc.progress import Problem
from rdc.tree.filters import FilterList
from rdc.tree.inode_walk import InodeWalk
from rdc.tree.walk import join

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.scan import ScanOptions
    from rdc.progress import Event, Reporter
    from rdc.survey.found import Found
    from rdc.survey.places import Places
    from rdc.tree.inode_walk import InodeDirectory

__all__ = ["Explorer"]


class Explorer:
    """Fills `found` and `places`; what it cannot read is reported and passed over.

    A directory is known by device and inode, so that paths that overlap, and bind mounts that lead back up,
    are counted once. Symlinks are not followed, but for the paths that were given.
    """

    def __init__(
        self,
        options: ScanOptions,
        found: Found,
        places: Places,
        reporter: Reporter,
        stopped: Callable[[], bool],
    ) -> None:
        self._options = options
        self._filters = FilterList(options.rules)
        self._found = found
        self._places = places
        self._report = reporter
        self._stopped = stopped
        self._entered: set[tuple[int, int]] = set()
        self._numbers: dict[bytes, int] = {}
        self.single_files = False
        """Whether a file was given by its own name, and may be met a second time without a second link."""

    def explore(self, path: bytes) -> None:
        """Lists the files below `path`, or `path` itself where it is a file."""
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            mode = stat.S_IFDIR  # whose opening says what is wrong
        try:
            if stat.S_ISREG(mode):
                directory, name = os.path.split(os.path.realpath(path))
                shown = os.path.dirname(path)
                self.single_files = True
                self._add_file(Root.open(directory, label=shown or b"."), shown, name)
            else:
                root = Root.open(path)
                self._walk(root, path)
        except FileError as error:
            self._report(Problem(error.code, path, str(error)))

    def _add_file(self, root: Root, shown: bytes, name: bytes) -> None:
        """A file by itself."""
        try:
            found = os.stat(name, dir_fd=root.fileno(), follow_symlinks=False)
        except OSError as error:
            raise root.failure(error, name, "look at it", reading=True) from error
        if stat.S_ISREG(found.st_mode):
            self._found.add_file(root, self._places.add_directory(shown or b".", -1), name, found)

    def _walk(self, root: Root, label: bytes) -> None:
        top = root.identity(b"")
        self._numbers = {}

        def report(event: Event, /) -> None:
            if isinstance(event, Problem):
                event = Problem(event.code, root.shown(event.path), event.message)
            self._report(event)

        def descend(device: int, inode: int) -> bool:
            if self._stopped() or (self._options.one_file_system and device != top.device):
                return False
            return self._enters(device, inode) or self._tell(root, found, device, inode)

        if self._stopped():
            return
        if not self._enters(top.device, top.inode):
            self._tell_again(label)
            return
        for found in InodeWalk(root, self._filters, report, descend):
            path = found.path
            parent = self._numbers.get(path.rpartition(b"/")[0], -1) if path else -1
            number = self._places.add_directory(root.shown(path) if path else label or b".", parent)
            self._numbers[path] = number
            self._found.add(root, number, path, found.listing, found.inodes)
            self._tell_special(root, found)

    def _enters(self, device: int, inode: int) -> bool:
        """Whether this directory has not been entered before."""
        before = len(self._entered)
        self._entered.add((device, inode))
        return len(self._entered) > before

    def _tell(self, root: Root, parent: InodeDirectory, device: int, inode: int) -> bool:
        """False, after a word on the directory below `parent` that was entered before."""
        for row in parent.listing.rows_of(Kind.DIRECTORY):
            if parent.inodes.identity(row) == (device, inode):
                self._tell_again(root.shown(join(parent.path, strings(parent.listing.names)[row])))
                break
        return False

    def _tell_special(self, root: Root, found: InodeDirectory) -> None:
        for row in found.listing.rows_of(Kind.SPECIAL):
            shown = root.shown(join(found.path, strings(found.listing.names)[row]))
            text = f"{printable(shown)}: skipped, neither file, directory nor symlink"
            self._report(Problem(ExitCode.OK, shown, text))

    def _tell_again(self, shown: bytes) -> None:
        self._report(Problem(ExitCode.OK, shown, f"{printable(shown)}: counted already under another path"))
