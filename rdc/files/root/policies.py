"""The policies of a Root, as frozen values: ReadPolicy, the quota, entries of append-only trees.

A Root gets it when it is made, with a WritePolicy (rdc.files.root.root). Whoever wants another policy makes
a Root of the same tree that has it (`Root.having`), so no part of a run changes how another one works.
"""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock  # threading costs each side of a remote sync 1.4 ms

from rdc.lean.records import Record
from rdc.lean.typed import Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.errors import FileError
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.depth import ReadRate
    from rdc.model.entries import Identity, Kind, Listed, PackedListing
    from rdc.model.preserved import AttributeKinds, Attributes, FileSystemFacts
    from rdc.progress import Reporter


# WriteQuota: how much may still be written below a Root, so that a peer cannot fill a shared file system.

ENTRY_BYTES = 4096
"""Bytes charged for a new entry besides its content, about the size of its inode and name. Empty files fill a
file system too."""


class WriteQuota:
    """A budget that only decreases. Several Roots and threads may share one."""

    __slots__ = ("_left", "_lock", "size")

    def __init__(self, size: int) -> None:
        """`size` is the budget in bytes."""
        self.size = size
        self._left = size
        self._lock = allocate_lock()

    def covers(self, size: int) -> bool:
        """Return whether `size` bytes are left."""
        return size <= self._left

    def take(self, size: int) -> bool:
        """Charge `size` bytes that are about to be written. If they exceed the budget, charge nothing and
        return False."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True


# MadeEntries: the entries that an append-only Root may still change, because they were made through it.


class MadeEntries:
    """The files, directories and links that one Root has made, by device and inode number.

    An entry is noted once it has its name. Nothing below an append-only Root is removed, so its inode number
    stays valid unless another process removes it. Each entry takes about 100 bytes.
    """

    __slots__ = ("_known", "_lock")

    def __init__(self) -> None:
        self._known: set[tuple[int, int]] = set()
        self._lock = allocate_lock()

    def note(self, made: os.stat_result) -> None:
        with self._lock:
            self._known.add((made.st_dev, made.st_ino))

    def has(self, found: os.stat_result) -> bool:
        return (found.st_dev, found.st_ino) in self._known


def rename_to_free_name(old: bytes, new: bytes, directory: int) -> None:
    """Rename the file or link `old` to `new` within `directory`, without ever replacing an entry.

    Raises OSError; EEXIST if `new` is taken, EOPNOTSUPP if the file system has no call that promises it.
    """
    from rdc.files.base.taking_names import hold_free_name

    if not hold_free_name(old, new, directory):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


T = TypeVar("T")

MUNGE = b"/rsyncd-munged/"
"""The prefix that rsync puts in front of a target to make a symlink that leads nowhere."""


class Confined(Protocol):
    """The interface of a tree that its views use: a ConfinedRoot."""

    @property
    def reads(self) -> ReadPolicy: ...

    def fileno(self) -> int: ...

    def directory(self, path: bytes, *, fresh: bool = False, reading: bool = False) -> Directory: ...

    def locate(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]: ...

    def find(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]: ...

    def perform(
        self, path: bytes, doing: str, call: Callable[[bytes, int], T], *, reading: bool = False
    ) -> T: ...

    def refused(self, path: bytes, doing: str, *, expected: str, found: str, advice: str) -> FileError: ...

    def release(self) -> None: ...


class LinkView(Protocol):
    """Shows symlinks as what they lead to (rdc.files.root.followed_links)."""

    @property
    def top(self) -> Confined:
        """The directory that confines the tree: nothing outside of it is read."""

    def begin(self, on_problem: Reporter, excluded: Callable[[bytes, bool], bool]) -> None:
        """Forget all links that were followed, before a new walk."""

    def referent(self, path: bytes) -> bytes | None:
        """Return where the entry at `path` is below `top`, if its path leads through a followed link."""

    def shown(self, root: Confined, path: bytes, listed: Listed) -> Listed:
        """Return what is shown of the directory at `path` below `root`, given what is there."""


class GivenTree(Protocol):
    """Answers for a tree that is on no file system, such as a snapshot of a store: its entries have no
    descriptors. The Root that shows it lists and opens them itself."""

    @property
    def facts(self) -> FileSystemFacts:
        """The facts about what the tree's file system keeps."""

    def attributes(
        self, path: bytes, names: bytes, kinds: AttributeKinds
    ) -> Iterator[tuple[int, bytes, Attributes | OSError]]:
        """Yield what read_directory_attributes yields."""

    def top_attributes(self, kinds: AttributeKinds) -> Attributes:
        """Return the extended attributes of the tree's top."""

    def contents(self, directory: bytes, listing: PackedListing) -> tuple[bytes, bytes]:
        """Return the contents of small files, as read_small does."""


class ReadPolicy(Record):
    """The policy by which a Root shows its entries and reads them."""

    only: bytes | None = None
    """The one entry of the root that a run is about, if there is one. Where the root may be entered and not
    listed, it is looked at by its name."""
    lists_top: bool = True
    """True if the root is listed for `only`, if it may be: for rdc's own temporaries there, and for names
    that the file system takes for the same one."""
    followed: LinkView | None = None
    """The links that are taken for what they lead to; None: no link is followed."""
    fakes: bool = False
    """True if entries stand for others (rdc.files.root.listing_view)."""
    untimed: frozenset[Kind] = frozenset()
    """Kinds of entries whose mtimes are shown as 0 and never set."""
    unmunges: bool = False
    """True if munged symlinks are shown with their real targets."""
    munges: bool = False
    """True if symlinks are shown as what they have to be made from to be munged, so that those that are not
    munged differ from all that is wanted."""
    nodes: frozenset[Kind] = frozenset()
    """The kinds of fifos, sockets and devices that listings show as what they are, not as SPECIAL."""
    keeps_atimes: bool = False
    """True if reading leaves access times alone where this process may open files so."""
    depth: int = 0
    """Calls in flight at a time, however long they take; 0: by their waits."""
    rate: ReadRate | None = None
    """Bounds how fast files are read; None: nothing does."""
    opened: Callable[[bytes, Identity], None] | None = None
    """Hears of each file that is opened alone, and which it is; None: nobody does. Files that are read
    together have the sizes and times that they were listed with."""

    @property
    def restates(self) -> bool:
        """Return whether files, directories and links may be shown as something else than what is there."""
        return bool(self.fakes or self.untimed or self.unmunges or self.munges)
