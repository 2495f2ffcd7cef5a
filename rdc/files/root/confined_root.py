"""ConfinedRoot: one tree and every operation that looks at its entries, confined to it by directory
descriptors."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from functools import partial

from rdc.errors import FileChangedError, FileError, RdcError
from rdc.files.base.directory_descriptors import Directory, DirectoryCache, meet
from rdc.files.base.metadata import EntryCheck, Storage, identity_of, kind_of, stat_entry
from rdc.files.base.paths import cause_of, check_name, check_path, failure, is_of_another_mount, refused
from rdc.files.base.syscalls import file_system_type
from rdc.files.depth import Depths, Looking
from rdc.files.root.lister import Run, list_directories, list_directory, look_at
from rdc.files.root.policies import GivenTree, ReadPolicy
from rdc.files.root.source_file import SourceFile
from rdc.lean.typed import TypeVar
from rdc.limits import DIRECTORY_BYTES, NAME_BYTES, PATH_BYTES, PATH_DEPTH
from rdc.model.entries import BadCall, BadEntry, ComparedFields, Identity, Kind, Listed, Listing, Metadata
from rdc.model.preserved import FileSystemFacts, packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self


T = TypeVar("T")

NO_ATIME: int = getattr(os, "O_NOATIME", 0)
"""A flag that only Linux has."""

# O_NONBLOCK: if a fifo has replaced the file, opening it must not wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_BOUNDS = {
    errno.EOVERFLOW: (
        f"names and metadata of at most {DIRECTORY_BYTES >> 20} MiB",
        "more entries than that",
        "move some of them to a directory of their own, then run again",
    ),
}
"""Bounds of a directory, by the errno that reports them: expected, found, advice."""


class ConfinedRoot:
    """The top directory of a tree. A relative path names every entry; b"" is the root itself.

    Paths are bytes: names joined by single slashes (rdc.files.base.paths). Each operation opens its
    directory from the root's descriptor without following a link, then acts on one name in it. Concurrent
    changes to the tree therefore cannot make it read or write outside.

    All failures are RdcErrors. FileError concerns one entry (exit code 23). FileChangedError means that an
    entry vanished or was replaced while the tree was read (24). OutOfSpaceError stops the run: the disk is
    full, over quota or read-only (11). Threads may share a root."""

    @classmethod
    def open(
        cls,
        path: bytes,
        *,
        create: bool = False,
        writable: bool = False,
        label: bytes | None = None,
        mode: int = 0o777,
    ) -> Self:
        """Open the directory that a user named. Symlinks in `path` are followed, as rsync does with a
        trailing slash.

        `create` makes a missing last component (`mode` less the umask). `writable` raises OutOfSpaceError for
        a read-only file system now rather than at the first file. `label` replaces `path` in messages, so
        that a server shows no local paths to its peers. Raises FileError if the directory is missing or is
        none."""
        label = path if label is None else label
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            try:
                fd = os.open(path, flags)
            except FileNotFoundError:
                if not create or not path:
                    raise
                os.mkdir(path, mode)
                fd = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise _root_failure(error, label, create=create) from error
        root = cls(fd, label)
        try:
            read_only = writable and os.fstatvfs(fd).f_flag & os.ST_RDONLY
        except OSError as error:  # a mount whose server is gone
            raise _root_failure(error, label, create=False) from error
        if read_only:
            raise failure(OSError(errno.EROFS, ""), b"", label, "write below it")
        return root

    given: GivenTree | None = None
    """Answers in place of a file system, if the entries are on none; None: they have descriptors."""

    store_head: bytes | None = None
    """The head of the store that is shown to be copied; None: the directory is no store."""

    # Where the entries really are. A LayeredRoot shows entries under other paths.

    def top(self) -> Directory:
        """Return the descriptor of the directory that b"" shows. Raises RdcError."""
        return self._directory

    def beneath(self, paths: bytes) -> bytes:
        """Return where entries are below `fileno()`. `paths`: each followed by NUL, as is the result."""
        return paths

    def __init__(self, fd: int, label: bytes, reads: ReadPolicy = ReadPolicy()) -> None:  # noqa: B008 - frozen
        """Take over `fd`, an O_PATH descriptor of a directory. Messages name the root by `label`."""
        self._directory = Directory(fd)
        self._directories = DirectoryCache(self._directory)
        self.label = label
        self.stable = meet(fd)
        """The parts of stats that its file system keeps stable, by what was known when it was opened."""
        self.check = EntryCheck(self.stable)
        """Recognises entries that were listed, and knows this run's own steps."""
        self.storage = Storage()
        """The facts known of the file system, and the metadata that are set on entries there."""
        self.depths = Depths()
        """The number of calls on entries of the tree that are in flight at a time."""
        self.clone_refusals: dict[tuple[int, int], int] = {}
        """The number of times in a row that the kernel refused to clone from one device to another
        (rdc.files.replace.cloning)."""
        self._follow(reads)

    def _follow(self, reads: ReadPolicy) -> None:
        self.reads = reads
        if reads.depth:
            self.depths = Depths(reads.depth)
        # A stand-in that is shown for the real entry is no part of an identity that a listing gave.
        if reads.fakes:
            self.check.leave_out(ComparedFields(kind=False, size=False))
        if Kind.SYMLINK in reads.untimed:
            self.check.leave_out(ComparedFields(mtime=False))

    def having(self, reads: ReadPolicy | None = None) -> Self:
        """Return this root with another policy; None: with the same. Both share all descriptors and what is
        known of the tree. Releasing either releases both."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        if reads is not None:
            other._follow(reads)
        return other

    def rely_on(self, facts: FileSystemFacts, *, learned: bool) -> None:
        """Take `facts` as those of the tree's file system. What it does not keep stable is not compared."""
        self.storage.rely_on(facts, learned=learned)
        self.check.leave_out(facts.stable)

    def real(self, path: bytes) -> bytes:
        """Return the path of an entry below the root's descriptor. It differs where other trees are shown."""
        return path

    def shown(self, path: bytes) -> bytes:
        """Return `path` as messages name it: below the root as the user typed it."""
        return self.label.rstrip(b"/") + b"/" + path if path else self.label

    def failure(self, error: OSError, path: bytes, doing: str, *, reading: bool = False) -> RdcError:
        """Return the RdcError for a failed system call; rdc.files.base.paths.failure has the rules."""
        cause, nested = None, False
        if error.errno in (errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            with suppress(OSError, RdcError):
                directory, name = self.find(path)
                cause = cause_of(error, name, directory.fd)
                nested = is_of_another_mount(error, name, directory.fd, self._directory.fd)
        return failure(error, path, self.shown(path), doing, reading=reading, cause=cause, nested=nested)

    @contextmanager
    def failing(self, path: bytes, doing: str, *, reading: bool = False) -> Iterator[None]:
        """Raise what `failure` returns for an OSError of the block."""
        try:
            yield
        except OSError as error:
            raise self.failure(error, path, doing, reading=reading) from error

    def refused(self, path: bytes, doing: str, *, expected: str, found: str, advice: str) -> FileError:
        """Return the FileError for a state that no system call reported."""
        return refused(path, self.shown(path), doing, expected=expected, found=found, advice=advice)

    def fileno(self) -> int:
        """Return the root's O_PATH descriptor, for calls that take a directory descriptor."""
        return self._directory.fd

    def directory(self, path: bytes, *, fresh: bool = False, reading: bool = False) -> Directory:
        """Return an O_PATH descriptor of the directory at `path`.

        With `fresh` it is opened now; otherwise a cached descriptor may be up to 0.05 s old. Raises
        RdcError. With `reading`, a missing or replaced directory is a FileChangedError.
        """
        check_path(path)
        if self.reads.followed is not None and (referent := self.reads.followed.referent(path)) is not None:
            return self.reads.followed.top.directory(referent, fresh=fresh, reading=reading)
        try:
            cached = None if fresh else self._directories.trusted(path)
            return self._directories.get_fresh(path) if cached is None else cached
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
        if self.reads.followed is not None:
            self.reads.followed.top.release()

    def locate(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]:
        """Return the directory that holds `path` and the entry's name in it. Writers of rdc.files use it.

        Raises RdcError.
        """
        try:
            return self.find(path, fresh=fresh)
        except OSError as error:
            raise self.failure(error, path, "open its directory") from error

    def find(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]:
        """Do what `locate` does, but raise OSError. The root itself is "." in itself."""
        if not path:
            return self._directory, b"."
        if self.reads.followed is not None and (referent := self.reads.followed.referent(path)) is not None:
            return self.reads.followed.top.find(referent, fresh=fresh)
        parent, _, name = path.rpartition(b"/")
        directory = None if fresh else self._directories.trusted(parent)
        if directory is None:
            check_path(path)
            directory = self._directories.get_fresh(parent)
        elif len(path) <= PATH_BYTES:
            check_name(path, name)  # its directory's path was checked when that was opened
        else:
            check_path(path)
        return directory, name

    def perform(
        self, path: bytes, doing: str, call: Callable[[bytes, int], T], *, reading: bool = False
    ) -> T:
        """Return `call(name, descriptor of its directory)`, and raise its OSError as an RdcError.

        The call is repeated once if the cached descriptor belonged to a directory that has been removed.
        """
        try:
            directory, name = self.find(path)
            try:
                return call(name, directory.fd)
            except FileNotFoundError:
                if directory is self._directory or not directory.removed():
                    raise
                directory, name = self.find(path, fresh=True)
                return call(name, directory.fd)
        except OSError as error:
            raise self.failure(error, path, doing, reading=reading) from error

    def _stat(self, path: bytes) -> os.stat_result:
        return self.perform(path, "look at it", stat_entry, reading=True)

    # Listing one directory. Each listing opens it from the root, because walks open each one once.

    def list(self, path: bytes) -> Listing:
        """Return the entries of `listed` alone, unpacked: for who need not know what else is there."""
        return self.listed(path).unpacked()

    def listed(self, path: bytes) -> Listed:
        """Return what a directory is shown to have, sorted by name bytes. Raises RdcError."""
        return self.viewed(path, self.list_unviewed(path))

    @property
    def lists_ahead(self) -> bool:
        """Return whether threads may list several directories at a time: none depends on what others
        showed."""
        return self.reads.followed is None

    def list_unviewed(
        self, path: bytes, *, limit: int = DIRECTORY_BYTES, looking: Looking | None = None
    ) -> Listed:
        """Return what `listed` returns before `viewed` sees it.

        `limit`: bytes, as DIRECTORY_BYTES counts them; more are a FileError. `looking`: how many entries
        are looked at at a time; None: as `depths` has it. Threads may call it.
        """
        top, below = self._directory.fd, path
        if self.reads.followed is not None and (referent := self.reads.followed.referent(path)) is not None:
            top, below = self.reads.followed.top.fileno(), referent
        if not path and self.reads.only is not None and not self.reads.lists_top:
            return self._named(self.reads.only)
        try:
            # A shorter path is within both bounds of paths, so it needs no check.
            if len(below) > PATH_DEPTH:
                check_path(below)
            # One call opens and lists: a walk does little else.
            return list_directory(top, below, limit=limit, depth=looking or self.depths.looking)
        except OSError as error:
            check_path(below)
            if not path and self.reads.only is not None and error.errno == errno.EACCES:
                return self._named(self.reads.only)
            raise self._listing_failure(error, path) from error

    def list_many(self, todo: Sequence[bytes], *, looking: Looking) -> Run | None:
        """List directories of a walk as `list_directories` does. None: each has to be listed for itself, as
        where what is shown is not what is there."""
        reads = self.reads
        if not self.lists_ahead or reads.restates or reads.only is not None:
            return None
        return list_directories(self._directory.fd, todo, depth=looking)

    def _named(self, name: bytes) -> Listed:
        """Return the root as if it had this entry alone. Raises RdcError."""
        try:
            return look_at(name, self._directory.fd)
        except OSError as error:
            raise self._listing_failure(error, b"") from error

    def viewed(self, path: bytes, listed: Listed) -> Listed:
        """Return what is shown of a directory, where that differs from what is there."""
        if self.reads.followed is not None:
            listed = self.reads.followed.shown(self, path, listed)
        return self.restated(path, listed)

    def restated(self, path: bytes, listed: Listed) -> Listed:
        """Return what is shown of a directory whose links were followed."""
        reads = self.reads
        nodes = reads.nodes and Kind.SPECIAL in listed.listing.kinds
        if nodes or reads.restates:
            from rdc.files.root.listing_view import as_policy_says

            return as_policy_says(self, path, listed)
        return listed

    def unlisted(self, path: bytes, bad: BadEntry) -> RdcError:
        """Return the error of an entry that could not be looked at, whose path is `path`."""
        doing = "read the link" if bad.call is BadCall.READ_LINK else "look at it"
        if bad.call is BadCall.NAME:
            expected, found, advice = f"a name of at most {NAME_BYTES} bytes", "a longer one", "rename it"
        elif bad.call is BadCall.KIND:
            expected, found, advice = "a kind of entry that systems know", "another", "check the file system"
        else:
            return self.failure(OSError(bad.errno, os.strerror(bad.errno)), path, doing)
        return self.refused(path, doing, expected=expected, found=found, advice=f"{advice}, then run again")

    def _listing_failure(self, error: OSError, path: bytes) -> RdcError:
        if error.errno not in _BOUNDS:
            return self.failure(error, path, "list the directory", reading=True)
        expected, found, advice = _BOUNDS[error.errno]
        return self.refused(path, "list the directory", expected=expected, found=found, advice=advice)

    # Looking at single entries.

    def identity(self, path: bytes) -> Identity:
        """Return the identity of the entry at `path`, without following a link.

        Raises FileChangedError if nothing is there.
        """
        return identity_of(self._stat(path))

    def link_count(self, path: bytes) -> int:
        """Return how many names the file at `path` has, inside and outside the tree."""
        return self._stat(path).st_nlink

    def metadata(self, path: bytes) -> Metadata:
        """Return mode, mtime (nanoseconds), uid and gid of the entry at `path`."""
        found = self._stat(path)
        timed = not self.reads.untimed or kind_of(found.st_mode) not in self.reads.untimed
        mtime = packed_time(found.st_mtime_ns) if timed else 0
        if self.reads.fakes:
            from rdc.files.root.listing_view import faked_at

            faked = faked_at(self, path)
            if faked is not None:
                return Metadata(stat.S_IMODE(faked.mode), mtime, faked.uid, faked.gid)
        return Metadata(stat.S_IMODE(found.st_mode), mtime, found.st_uid, found.st_gid)

    def kind(self, path: bytes) -> Kind | None:
        """Return the kind of the entry at `path`, or None if it or a directory above it is missing.

        A symlink or another non-directory above `path` is a FileError, because nothing can be made at `path`.
        """
        try:
            directory, name = self.find(path)
            found = stat_entry(name, directory.fd)
        except FileNotFoundError:
            return None  # the usual answer for a new file, so no RdcError is built for it
        except OSError as error:
            raise self.failure(error, path, "look at it") from error
        if self.reads.fakes and stat.S_ISREG(found.st_mode):
            from rdc.files.root.listing_view import faked_at

            faked = faked_at(self, path)
            return kind_of(found.st_mode if faked is None else faked.mode)
        return kind_of(found.st_mode)

    def open_read(self, path: bytes) -> SourceFile:
        """Open a regular file for reading. Raises FileChangedError for anything else."""
        doing = "open it for reading"
        try:
            fd, found = self.perform(
                path,
                doing,
                partial(_open_for_reading, more=NO_ATIME) if self.reads.keeps_atimes else _open_for_reading,
                reading=True,
            )
        except FileChangedError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno == errno.EINVAL:
                # Only of a link to be read would it tell that another entry took its place.
                raise self.failure(cause, path, doing) from cause
            raise
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise self.failure(_not_regular(found), path, "open it for reading", reading=True)
        source = SourceFile(fd, found, path, self.shown(path))
        source.rate = self.reads.rate
        if self.reads.opened is not None:
            self.reads.opened(path, source.identity)
        return source


def _open_for_reading(name: bytes, parent: int, more: int = 0) -> tuple[int, os.stat_result]:
    """Open a file with the flags `more`, or without them where only its owner may use them."""
    try:
        fd = os.open(name, _READ | more, dir_fd=parent)
    except PermissionError:
        if not more:
            raise
        fd = os.open(name, _READ, dir_fd=parent)
    try:
        return fd, os.fstat(fd)
    except BaseException:
        os.close(fd)
        raise


def _not_regular(found: os.stat_result) -> OSError:
    return OSError(errno.EISDIR if stat.S_ISDIR(found.st_mode) else errno.ENXIO, "")


def _root_failure(error: OSError | ValueError, label: bytes, *, create: bool) -> RdcError:
    advice = "check the spelling and run again"
    if isinstance(error, ValueError):
        expected, found = "a path without NUL bytes", "one"
    elif isinstance(error, FileNotFoundError):
        expected, found = "a directory", "nothing, not even the directory above it" if create else "nothing"
    elif isinstance(error, NotADirectoryError):
        expected, found = "a directory", "a file, here or on the way"
    elif isinstance(error, FileExistsError):
        # mkdir found a name there that could not be opened.
        expected, found = "a directory", "a symbolic link to nothing"
        advice = "make what it leads to, or remove the link"
    else:
        return _about(failure(error, b"", label, "open it"), label)
    return _about(refused(b"", label, "open it", expected=expected, found=found, advice=advice), label)


def _about(error: RdcError, label: bytes) -> RdcError:
    """Return the error with the path of the tree itself, which programs read as `filename`."""
    if isinstance(error, FileError):
        error.path_bytes = label
    return error
