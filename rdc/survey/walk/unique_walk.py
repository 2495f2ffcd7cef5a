"""UniqueWalk: walks several trees and visits each directory once, however often it is reached."""

from __future__ import annotations

from functools import partial

from rdc.errors import ExitCode, UsageError, printable
from rdc.files.base.relative_path import join
from rdc.model.entries import Kind, strings
from rdc.progress import Problem
from rdc.survey.walk.storage_use import StorageUse
from rdc.tree.filters import FilteredTree
from rdc.tree.walk import measuring_walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.own.claims import Claims
    from rdc.files.root.root import Root
    from rdc.progress import Event, Reporter
    from rdc.tree.filters import FilterList
    from rdc.tree.walk import WalkedDirectory

__all__ = ["UniqueWalk"]


class UniqueWalk:
    """Directories are identified by device and inode. So paths that overlap and bind mounts that lead upwards
    are walked once. Directories below a root that cannot be read are reported by the path that the user would
    type."""

    def __init__(
        self,
        filters: FilterList,
        reporter: Reporter,
        *,
        one_file_system: bool,
        use: StorageUse = StorageUse(),  # noqa: B008 - it has no state
        stopped: Callable[[], bool] = lambda: False,
        met_again: Callable[[bytes], None] = lambda _: None,
        claims: Claims | None = None,
    ) -> None:
        """`use`: what the walk may ask of storage. `stopped`: asked before each directory; True
        ends the walk. `met_again`: called with the path, as the user would type it, of each directory that
        was visited before. `claims`: the results of this run. A file that one of them would replace ends the
        walk by a UsageError; directories that the run fills are left out and reported."""
        self._filters = filters
        self._reporter = reporter
        self._one_file_system = one_file_system
        self.use = use
        self._stopped = stopped
        self._met_again = met_again
        self.claims = claims
        self._entered: set[int] = set()

    def below(self, root: Root) -> Iterator[WalkedDirectory]:
        """The directories of the tree at `root`, starting with itself. Raises FileError if `root` cannot be
        read."""
        if self._stopped():
            return
        root = self.use.bind(root)
        top = root.identity(b"")
        if self._fills(top.device, top.inode):
            raise UsageError(
                f"{printable(root.shown(b''))}: this run would read it, and write its own files there; name"
                " another directory for them"
            )
        if not self._enters(top.device, top.inode):
            self._met_again(root.shown(b""))
            return

        def report(event: Event, /) -> None:
            if isinstance(event, Problem):
                event = Problem(event.code, root.shown(event.path), event.message)
            self._reporter(event)

        def descend(device: int, inode: int) -> bool:
            if self._stopped() or (self._one_file_system and device != top.device):
                return False
            if self._fills(device, inode):
                report(_left_out(root, directory, device, inode))
                return False
            if self._enters(device, inode):
                return True
            self._met_again(root.shown(_path_of(directory, device, inode)))
            return False

        filters = self._filters.at_source(FilteredTree(root))
        for directory in measuring_walk(root, filters, report, descend):
            if self.claims is not None and self.claims.existing:
                self.claims.check_rows(directory.inodes, partial(_shown, root, directory))
            yield directory

    def _fills(self, device: int, inode: int) -> bool:
        """Return whether the run writes its own files into a directory."""
        return self.claims is not None and (device, inode) in self.claims.directories

    def _enters(self, device: int, inode: int) -> bool:
        """Marks a directory as visited. Returns whether it was new."""
        before = len(self._entered)
        self._entered.add(device << 64 | inode)
        return len(self._entered) > before


def _shown(root: Root, directory: WalkedDirectory, row: int) -> bytes:
    return root.shown(join(directory.path, strings(directory.listing.names)[row]))


def _path_of(parent: WalkedDirectory, device: int, inode: int) -> bytes:
    """Return the path of a directory in `parent`."""
    rows = parent.listing.rows_of(Kind.DIRECTORY)
    row = next(row for row in rows if parent.inodes.identity(row) == (device, inode))
    return join(parent.path, strings(parent.listing.names)[row])


def _left_out(root: Root, parent: WalkedDirectory, device: int, inode: int) -> Problem:
    path = _path_of(parent, device, inode)
    text = f"{printable(root.shown(path))}: left out, since this run writes its own files there"
    return Problem(ExitCode.OK, path, text)
