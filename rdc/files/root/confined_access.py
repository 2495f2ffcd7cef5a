"""ConfinedAccess: turns a relative path into a directory descriptor and a name, without leaving the tree."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

from rdc.errors import FileError, RdcError
from rdc.files.base.directory_descriptors import Directory, DirectoryCache
from rdc.files.base.known_devices import meet
from rdc.files.base.os_errors import failure, refused
from rdc.files.base.relative_path import check_name, check_path
from rdc.files.base.storage import Storage
from rdc.files.base.syscalls import file_system_type
from rdc.files.depth.depth import Depths
from rdc.limits.paths import PATH_BYTES
from rdc.typed import Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.depth.read_rate import ReadRate
    from rdc.model.entries import Kind
    from rdc.model.listed import Listed
    from rdc.progress import Reporter

__all__ = ["ConfinedAccess", "LinkView", "ListingView", "PartKeeper", "stat_entry"]

T = TypeVar("T")


class ListingView(Protocol):
    """Changes what is shown of a directory's entries."""

    def shown(self, root: ConfinedAccess, path: bytes, listed: Listed) -> Listed:
        """Return what is shown of the directory at `path` below `root`, given what is there."""


class LinkView(ListingView, Protocol):
    """Shows symlinks as what they lead to (rdc.files.root.followed_links)."""

    top: ConfinedAccess
    """Nothing outside of it is read."""

    def begin(self, on_problem: Reporter, excluded: Callable[[bytes, bool], bool]) -> None:
        """Forget all links that were followed, before a new walk."""

    def referent(self, path: bytes) -> bytes | None:
        """Return where the entry at `path` is below `top`, if its path leads through a followed link."""


class PartKeeper(Protocol):
    """Keeps the parts of unfinished files. rdc.files.replace.partial_directory is the one that is used."""

    def keep(self, path: bytes, directory: int, temporary: bytes) -> None:
        """Take over a temporary of the file at `path`. Never raises."""

    def release(self) -> None:
        """Close all descriptors."""


class ConfinedAccess:
    """The part of Root that every operation uses: descriptors, paths in messages, errors."""

    views: tuple[ListingView, ...] = ()
    """What changes the entries that listings show, in order."""

    shown_nodes: frozenset[Kind] = frozenset()
    """The kinds of fifos, sockets and devices that listings show as what they are, not as SPECIAL."""

    made_nodes: frozenset[Kind] = frozenset()
    """The kinds of fifos, sockets and devices that may be made."""

    untimed: frozenset[Kind] = frozenset()
    """Kinds of entries whose mtimes are shown as 0 and never set."""

    fakes = False
    """True if entries stand for others (rdc.files.base.faked_stat)."""

    stages_singly = False
    """True if each new file is written as a Replacement, never in bulk."""

    @property
    def writes_in_bulk(self) -> bool:
        """Whether new files may be written in bulk, where nothing is looked at again."""
        return not self.stages_singly and self.storage.is_plain

    followed: LinkView | None = None
    """The links that are taken for what they lead to, one of the views; None: no link is followed."""

    read_rate: ReadRate | None = None
    """Bounds how fast files are read; None: nothing does."""

    def __init__(self, fd: int, label: bytes) -> None:
        """Take over `fd`, an O_PATH descriptor of a directory. Messages name the root by `label`."""
        self._directory = Directory(fd)
        self._directories = DirectoryCache(self._directory)
        self.label = label
        self.stable = meet(fd)
        """The parts of stats that its file system keeps stable, by what was known when it was opened."""
        self.storage = Storage()
        """What is known of the file system, and what is set of entries there."""
        self.depths = Depths()
        """How many calls on entries of the tree are in flight at a time."""
        self.clone_refusals: dict[tuple[int, int], int] = {}
        """How often in a row the kernel refused to clone from one device to another
        (rdc.files.replace.cloning)."""

    def real(self, path: bytes) -> bytes:
        """Return the path of an entry below the root's descriptor. It differs where other trees are shown."""
        return path

    def shown(self, path: bytes) -> bytes:
        """Return `path` as messages name it: below the root as the user typed it."""
        return self.label.rstrip(b"/") + b"/" + path if path else self.label

    def failure(self, error: OSError, path: bytes, doing: str, *, reading: bool = False) -> RdcError:
        """Return the RdcError for a failed system call; rdc.files.base.os_errors.failure has the rules."""
        cause, nested = None, False
        if error.errno in (errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            from rdc.files.base.error_causes import cause_of, is_of_another_mount

            with suppress(OSError, RdcError):
                directory, name = self._locate(path)
                cause = cause_of(error, name, directory.fd)
                nested = is_of_another_mount(error, name, directory.fd, self._directory.fd)
        return failure(error, path, self.shown(path), doing, reading=reading, cause=cause, nested=nested)

    def refused(self, path: bytes, doing: str, *, expected: str, found: str, advice: str) -> FileError:
        """Return the FileError for a state that no system call reported."""
        return refused(path, self.shown(path), doing, expected=expected, found=found, advice=advice)

    def fix_depth(self, depth: int) -> None:
        """Have `depth` calls in flight, however long they take. 0 does nothing."""
        if depth:
            self.depths = Depths(depth)

    def fileno(self) -> int:
        """Return the root's O_PATH descriptor, for calls that take a directory descriptor."""
        return self._directory.fd

    def directory(self, path: bytes, *, fresh: bool = False, reading: bool = False) -> Directory:
        """Return an O_PATH descriptor of the directory at `path`.

        With `fresh` it is opened now; otherwise a cached descriptor may be up to 0.05 s old. Raises
        RdcError. With `reading`, a missing or replaced directory is a FileChangedError.
        """
        check_path(path)
        if self.followed is not None and (referent := self.followed.referent(path)) is not None:
            return self.followed.top.directory(referent, fresh=fresh, reading=reading)
        try:
            return self._directories.get_fresh(path) if fresh else self._directories.get(path)
        except OSError as error:
            raise self.failure(error, path, "open the directory", reading=reading) from error

    def file_system_type(self, path: bytes) -> int:
        """Return f_type of statfs(2) of the directory at `path`; 0 if that is not known."""
        try:
            return file_system_type(self.directory(path).fd)
        except (OSError, RdcError):
            return 0

    def forget(self, path: bytes) -> None:
        """Drop the cached descriptors of `path` and of everything below it, as after moving or removing it.

        Safety never depends on this call.
        """
        self._directories.forget(path)

    def close(self) -> None:
        """Drop cached descriptors. The root's own closes with the last reference to this object."""
        self._directories.forget(b"")

    def release(self) -> None:
        """Close all descriptors now, the root's own included, so that the file system can be unmounted.

        Waiting for the last reference is not enough: it may lie in a cycle until the collector runs.
        """
        self.close()
        self._directory.close()
        if self.followed is not None:
            self.followed.top.release()

    def locate(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]:
        """Return the directory that holds `path` and the entry's name in it. Writers of rdc.files use it.

        Raises RdcError.
        """
        try:
            return self._locate(path, fresh=fresh)
        except OSError as error:
            raise self.failure(error, path, "open its directory") from error

    def _locate(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]:
        """Do what `locate` does, but raise OSError. The root itself is "." in itself."""
        if not path:
            return self._directory, b"."
        if self.followed is not None and (referent := self.followed.referent(path)) is not None:
            return self.followed.top._locate(referent, fresh=fresh)
        parent, _, name = path.rpartition(b"/")
        # A cached parent was checked when it was opened, so only the name needs a check.
        if self._directories.knows(parent) and len(path) <= PATH_BYTES:
            check_name(path, name)
        else:
            check_path(path)
        return (self._directories.get_fresh if fresh else self._directories.get)(parent), name

    def perform(
        self, path: bytes, doing: str, call: Callable[[bytes, int], T], *, reading: bool = False
    ) -> T:
        """Return `call(name, descriptor of its directory)`, and raise its OSError as an RdcError.

        The call is repeated once if the cached descriptor belonged to a directory that has been removed.
        """
        try:
            directory, name = self._locate(path)
            try:
                return call(name, directory.fd)
            except FileNotFoundError:
                if directory is self._directory or not directory.removed():
                    raise
                directory, name = self._locate(path, fresh=True)
                return call(name, directory.fd)
        except OSError as error:
            raise self.failure(error, path, doing, reading=reading) from error

    def _stat(self, path: bytes) -> os.stat_result:
        return self.perform(path, "look at it", stat_entry, reading=True)


def stat_entry(name: bytes, parent: int) -> os.stat_result:
    """Return the stat of an entry of an open directory, without following a link. Raises OSError."""
    return os.stat(name, dir_fd=parent, follow_symlinks=False)
