"""The effect of options on a destination's tree: followed links, alternate directories, skipped entries."""

from __future__ import annotations

import os

from rdc.errors import FileError, RdcError, TrustError, printable
from rdc.files.root.followed_links import FollowedLinks, UnfollowedError
from rdc.files.root.listing_view import restated
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.model.entries import EMPTY_LISTING, Kind, Listed, Listing, Metadata
from rdc.model.options import Alternates, AlternateUse, LinkChoice
from rdc.tree.hard_links import LinkTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.plan.compare import Difference


# Has a destination take its symlinks to directories for these directories, where the source has directories.
#
# Only links that lead to a directory of the destination's own tree are followed. Others stay, and what would
# be below them is named, since no path leads there. A link counts as it is when its directory is compared,
# before anything in there changes. So no link that the source sends in a run is followed in that run.


class _Reached(FollowedLinks):
    """The places that paths lead to through the links that were followed. Listings are shown as they are."""

    def shown(self, root: object, path: bytes, listed: Listed) -> Listed:
        return listed


class DirectoryLinks(Record):
    """The links of one run."""

    root: Root
    links: FollowedLinks

    def existing(self, path: bytes, wanted: Listing, existing: Listing) -> Listing:
        """Return the destination's entries of one directory, in which links are directories where `wanted`,
        the source's entries, has directories. Raises RdcError."""
        if not existing.targets:
            return existing
        directories = {wanted.names[row] for row in wanted.rows_of(Kind.DIRECTORY)}
        stats: dict[int, os.stat_result] = {}
        for row, target in existing.links().items():
            name = existing.names[row]
            if name in directories:
                try:
                    found = self.links.follow(self.root, path, name, target)
                except UnfollowedError:
                    # A directory that cannot be opened, since no path leads through a link: it is named.
                    found = os.stat(b".", dir_fd=self.root.directory(path).fd)
                if found is not None:
                    stats[row] = found
        return restated(existing, stats) if stats else existing


def follow_directory_links(root: Root) -> DirectoryLinks:
    """Return the DirectoryLinks of `root`; their own root goes through links to directories. Raises
    FileError."""
    top = Root(os.open(b".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fileno()), root.label)
    try:
        links = _Reached(root, top, LinkChoice(directories=True), only=None)
    except (OSError, UnfollowedError) as error:
        top.release()
        raise FileError(b"", f"{printable(root.shown(b''))}: cannot keep its links: {error}") from error
    return DirectoryLinks(root.having(replace(root.reads, followed=links)), links)


# The alternate directories of a run (--link-dest, --compare-dest, --copy-dest), opened for reading.
#
# Each is a root directory of its own: no path below it is resolved through a link or leads out of it.


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
        """Return the listings of the directory at `path` in all of them, empty where there is none.

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
        """Return how the best of the directories themselves differs from the source's; None: there is
        none."""
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
        """Note a file that is a hard link now: its metadata are those of a file elsewhere, and must stay."""
        self._linked.add(file)

    def is_linked(self, file: int) -> bool:
        return file in self._linked

    def note_base(self, file: int, number: int) -> None:
        """Note that a file is made from the one at its path in the directory of this number."""
        self._bases[file] = number

    def has_base(self, file: int) -> bool:
        return file in self._bases

    def base_root(self, file: int) -> Root | None:
        """Return the directory that has a base of this file; None if none has."""
        number = self._bases.get(file)
        return None if number is None else self.roots[number]

    def release(self) -> None:
        """Close all descriptors."""
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
    """Open the alternate directories, each by `open_directory`. They show what the destination shows.

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


# Entries that options such as -u and --existing leave alone, and the hard links without them.
#
# Such an entry gets no content, no attributes and no other file under its name. No other name is linked to
# it. The names of its file that are not left alone are linked to each other.


class SkippedEntries:
    """A set of manifest rows, one byte each. Rows are added while directories are compared."""

    def __init__(self) -> None:
        self._marks = bytearray()
        self._leaders: dict[int, int] = {}
        """For each first name that is left alone, the first other name that is not."""

    def add(self, rows: Iterable[int]) -> None:
        """Add rows that the run leaves alone."""
        for row in rows:
            if row >= len(self._marks):
                self._marks += bytes(row + 1 - len(self._marks))
            self._marks[row] = 1

    def __contains__(self, row: int) -> bool:
        return row < len(self._marks) and bool(self._marks[row])

    def is_linked(self, file: int, first: int) -> bool:
        """Return whether the further name `file` of `first` becomes a link to another name and needs nothing
        else.

        The caller has added all rows up to `file` and asks in increasing order. If `first` is left alone, the
        first further name that is not takes its place.
        """
        if file in self:
            return False
        return first not in self or self._leaders.setdefault(first, file) != file

    def remaining(self, table: LinkTable) -> LinkTable:
        """Return the links of `table` that the run has to make. All directories were compared."""
        if not self._marks:
            return table
        found = LinkTable()
        for file, first in table:
            if self.is_linked(file, first):
                found.extend((file,), (self._leaders.get(first, first),))
        return found
