"""Walks what a scan was asked about: each directory once, however it is reached."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, FileError, printable
from rdc.files.confined import Root
from rdc.progress import Problem
from rdc.tree.filters import FilterList
from rdc.tree.walk import PackedWalk

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.scan import ScanOptions
    from rdc.progress import Event, Reporter
    from rdc.survey.found import Found
    from rdc.survey.places import Places

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
                self._walk(Root.open(directory, label=shown or b"."), shown, only=name)
            else:
                root = Root.open(path)
                self._walk(root, path)
        except FileError as error:
            self._report(Problem(error.code, path, str(error)))

    def _walk(self, root: Root, label: bytes, only: bytes | None = None) -> None:
        device = root.identity(b"").device
        self._numbers = {}

        def report(event: Event, /) -> None:
            if isinstance(event, Problem):
                event = Problem(event.code, root.shown(event.path), event.message)
            self._report(event)

        def enter(path: bytes) -> bool:
            identity = root.identity(path)
            if self._stopped():
                return False
            if self._options.one_file_system and identity.device != device:
                return False
            if only is not None:
                return not path
            known = (identity.device, identity.inode)
            if known in self._entered:
                text = f"{printable(root.shown(path))}: counted already under another path"
                report(Problem(ExitCode.OK, path, text))
                return False
            self._entered.add(known)
            return True

        filters = self._filters if only is None else FilterList(())
        for path, listing in PackedWalk(root, filters, report, only, enter=enter):
            parent = self._numbers.get(path.rpartition(b"/")[0], -1) if path else -1
            number = self._places.add_directory(root.shown(path) if path else label or b".", parent)
            self._numbers[path] = number
            self._found.add(root, number, path, listing)
