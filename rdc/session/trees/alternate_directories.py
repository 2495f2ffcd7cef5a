"""The alternate directories of a run (--link-dest, --compare-dest, --copy-dest), opened for reading.

Each is a root directory of its own: no path below it is resolved through a link or leads out of it.
"""

from __future__ import annotations

import os

from rdc.errors import FileError, RdcError, TrustError, printable
from rdc.files.root.policies import ReadPolicy
from rdc.model.entries import EMPTY_LISTING, Kind, Listing, Metadata
from rdc.model.options import Alternates, AlternateUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.root.root import Root
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.plan.compare import Difference

__all__ = ["AlternateDirectories", "open_alternates"]


class AlternateDirectories:
    """The opened directories, and which files are made from a file in one of them."""

    def __init__(self, use: AlternateUse, roots: Sequence[Root], missing: Sequence[str] = ()) -> None:
        """`missing`: one line for each directory that cannot be opened."""
        self.use = use
        self.roots = roots
        self.missing = missing
        self.linked = 0
        """Files that became hard links to files below them."""
        self.cloned = 0
        """Files that became clones: they share their blocks."""
        self.make_equal: Callable[[int], bool] | None = None
        """With --checksum: makes a file whose content turned out to be that of its base. False: it has to be
        rebuilt."""
        self._linked: set[int] = set()
        self._bases: dict[int, int] = {}
        """For each file with a base in an alternate directory, the number of that."""

    def listings(self, root: Root, path: bytes) -> Sequence[Listing]:
        """The listings of the directory at `path` in all of them, empty where there is none.

        A directory that is the destination's own, which is below `root`, has nothing to offer.
        """
        own = _directory_id(root, path)
        return [self._listing(one, path, own) for one in self.roots]

    @staticmethod
    def _listing(root: Root, path: bytes, own: tuple[int, int] | None) -> Listing:
        here = _directory_id(root, path)
        if here is None or here == own:
            return EMPTY_LISTING
        try:
            return root.list(path)
        except FileError:
            return EMPTY_LISTING

    def top_difference(self, metadata: Metadata, preserved: Preserved) -> Difference | None:
        """How the best of the directories themselves differs from the source's; None: there is none."""
        from rdc.plan.compare import difference

        found = None
        for root in self.roots:
            differing = difference(Kind.DIRECTORY, metadata, root.metadata(b""), preserved=preserved)
            if found is None or not differing:
                found = differing
            if not differing:
                break
        return found

    def note_linked(self, file: int) -> None:
        """Notes a file that is a hard link now: its metadata are those of a file elsewhere, and must stay."""
        self._linked.add(file)

    def is_linked(self, file: int) -> bool:
        return file in self._linked

    def note_base(self, file: int, number: int) -> None:
        """Notes that a file is made from the one at its path in the directory of this number."""
        self._bases[file] = number

    def has_base(self, file: int) -> bool:
        return file in self._bases

    def base_root(self, file: int) -> Root | None:
        """The directory that has a base of this file; None if none has."""
        number = self._bases.get(file)
        return None if number is None else self.roots[number]

    def release(self) -> None:
        """Closes all descriptors."""
        for root in self.roots:
            root.release()


def _directory_id(root: Root, path: bytes) -> tuple[int, int] | None:
    """Device and inode of the directory at `path`; None if there is none."""
    try:
        found = os.fstat(root.directory(path).fd)
    except (FileError, OSError):
        return None
    return found.st_dev, found.st_ino


def open_alternates(
    alternates: Alternates, options: SyncOptions, open_directory: Callable[[bytes], Root]
) -> AlternateDirectories:
    """Opens the alternate directories, each by `open_directory`. They show what the destination shows.

    As in rsync, one that is missing is no error. Raises TrustError if one lies outside of what is served.
    """
    roots, missing = [], []
    for directory in alternates.directories:
        try:
            roots.append(open_directory(directory))
        except TrustError:
            raise
        except RdcError as error:
            missing.append(f"{alternates.option}={printable(directory)} is not looked at: {error}")
    reads = ReadPolicy(nodes=options.nodes, keeps_atimes=options.open_noatime, untimed=options.untimed)
    return AlternateDirectories(alternates.use, [root.having(reads) for root in roots], missing)
