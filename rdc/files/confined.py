"""Root: everything rdc does to the entries of one tree, confined to it by directory descriptors."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress

from rdc.errors import ExitCode, FileError, RdcError
from rdc.files.allowance import ENTRY_BYTES, Allowance
from rdc.files.directory import Directory, DirectoryCache
from rdc.files.failure import failure, refused
from rdc.files.metadata import kind_of, set_on_name
from rdc.files.packed import list_beneath, open_directory, read_packed, read_packed_inodes
from rdc.files.path import check_name, check_path
from rdc.files.source import SourceFile, identity_of
from rdc.files.syscalls import rename_no_replace
from rdc.files.temporary import temporary_name
from rdc.limits import DIRECTORY_BYTES, NAME_BYTES, PATH_BYTES
from rdc.model.entries import Identity, Kind, Listing, Metadata, PackedInodes, PackedListing
from rdc.typed import TypeVar

__all__ = ["Root"]

T = TypeVar("T")

# O_NONBLOCK: opening a fifo that took the file's place must not wait for a writer.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

SYMLINK_ATTEMPTS = 64
"""A sweep may take a temporary symlink, which cannot be locked, before its rename: then it is made again. Of
16 attempts one that sweeps without a pause has taken all now and then."""

_BOUNDS = {
    errno.ENAMETOOLONG: (
        f"names of at most {NAME_BYTES} bytes",
        "a longer one",
        "rename it, then run again",
    ),
    errno.EOVERFLOW: (
        f"names and metadata of at most {DIRECTORY_BYTES >> 20} MiB",
        "more entries than that",
        "move some of them to a directory of their own, then run again",
    ),
}
"""What a directory is refused for, by errno: expected, found, what to do."""


class Root:
    """The top directory of a tree; every entry is named by a relative path, b"" being the root itself.

    Paths are bytes, components joined by single slashes (rdc.files.path). Each operation reaches its
    directory from the root's descriptor without following a link, then acts on one name in it, so that
    whatever others do to the tree meanwhile, nothing outside of it is read or written. All failures are
    RdcErrors: FileError (this entry, exit code 23), FileChangedError (it vanished or was replaced while the
    tree is read, 24), OutOfSpaceError (disk full, quota, read-only: stop, 11). Threads may share a Root.
    """

    def __init__(self, fd: int, label: bytes, allowance: Allowance | None = None) -> None:
        """Takes over `fd`, an O_PATH descriptor of a directory. `label` is how messages name the root;
        `allowance` bounds what is written below it."""
        self._directory = Directory(fd)
        self._directories = DirectoryCache(self._directory)
        self._allowance = allowance
        self.label = label
        self.sparse = False
        """New files get holes where their content is zeros."""

    @classmethod
    def open(
        cls, path: bytes, *, create: bool = False, writable: bool = False, label: bytes | None = None
    ) -> Root:
        """Open the directory that a user named; symlinks in `path` are followed, as rsync does with a
        trailing slash.

        `create` makes a missing last component (0777 less the umask). `writable` refuses a read-only file
        system now (OutOfSpaceError) rather than at the first file. `label` replaces `path` in messages: a
        server shows no paths of its own to its peers. Raises FileError when it is missing or no directory.
        """
        label = path if label is None else label
        flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            try:
                fd = os.open(path, flags)
            except FileNotFoundError:
                if not create or not path:
                    raise
                os.mkdir(path)
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

    def shown(self, path: bytes) -> bytes:
        """`path` as messages name it: below the root as the user typed it."""
        return self.label.rstrip(b"/") + b"/" + path if path else self.label

    def may_spend(self, size: int, *, entries: int = 0) -> bool:
        """Whether so many bytes and entries may still be written below this root."""
        return self._allowance is None or self._allowance.covers(size + entries * ENTRY_BYTES)

    def spend(self, path: bytes, size: int, *, entries: int = 0) -> None:
        """For the writers of this package, before they make entries or write bytes of them: raises RdcError
        (11) where more would be written than is allowed."""
        if self._allowance is not None and not self._allowance.take(size + entries * ENTRY_BYTES):
            raise self._spent(path, self._allowance)

    def _spent(self, path: bytes, allowance: Allowance) -> RdcError:
        return RdcError(
            f"{os.fsdecode(self.shown(path))}: cannot write it: this session may write {allowance.size} bytes"
            " in all; what was complete is there, run again to go on",
            code=ExitCode.FILE_IO,
        )

    def fileno(self) -> int:
        """The root's O_PATH descriptor, for the calls that take a directory descriptor."""
        return self._directory.fd

    def forget(self, path: bytes) -> None:
        """Drop descriptors kept of `path` and below, as after moving or removing it; never needed for
        safety."""
        self._directories.forget(path)

    def directory(self, path: bytes, *, fresh: bool = False, reading: bool = False) -> Directory:
        """An O_PATH descriptor of a directory; with `fresh`, of the one that has this path at this moment.
        With `reading`, one that is gone or was replaced is a FileChangedError."""
        check_path(path)
        try:
            return self._directories.get_fresh(path) if fresh else self._directories.get(path)
        except OSError as error:
            raise self.failure(error, path, "open the directory", reading=reading) from error

    def failure(self, error: OSError, path: bytes, doing: str, *, reading: bool = False) -> RdcError:
        return failure(error, path, self.shown(path), doing, reading=reading)

    def refused(self, path: bytes, doing: str, *, expected: str, found: str, advice: str) -> FileError:
        return refused(path, self.shown(path), doing, expected=expected, found=found, advice=advice)

    # Reading

    def list(
        self,
        path: bytes,
        *,
        skip_temporaries: bool = True,
        on_temporary: Callable[[bytes], None] | None = None,
    ) -> Listing:
        """`list_packed` as a Listing.

        With skip_temporaries=False temporary files are entries like any other.
        """
        taker = (on_temporary or _ignore) if skip_temporaries else None
        return self._list(path, lambda fd: read_packed(fd, taker)).unpacked()

    def list_packed(
        self, path: bytes, *, on_temporary: Callable[[bytes], None] | None = None
    ) -> PackedListing:
        """The entries of a directory, sorted by name bytes.

        Temporary files are left out; `on_temporary` takes their names, which is what `sweep` wants.
        """
        if not path or len(path) > PATH_BYTES:
            return self._list(path, lambda fd: read_packed(fd, on_temporary or _ignore))
        try:
            # In one call: a walk is mostly this.
            return list_beneath(self._directory.fd, path, on_temporary or _ignore)
        except OSError as error:
            check_path(path)
            raise self._listing_failure(error, path) from error

    def list_inodes(
        self, path: bytes, *, on_temporary: Callable[[bytes], None] | None = None
    ) -> tuple[PackedListing, PackedInodes]:
        """As `list_packed`, and which file lies behind each entry."""
        return self._list(path, lambda fd: read_packed_inodes(fd, on_temporary or _ignore))

    def _list(self, path: bytes, read: Callable[[int], T]) -> T:
        """Opened from the root, not by a kept descriptor: walks open each directory once."""
        try:
            if path:
                check_path(path)
                fd = open_directory(self._directory.fd, path)
            else:
                fd = os.open(b".", _READ_DIRECTORY, dir_fd=self._directory.fd)
            try:
                return read(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise self._listing_failure(error, path) from error

    def _listing_failure(self, error: OSError, path: bytes) -> RdcError:
        if error.errno not in _BOUNDS:
            return self.failure(error, path, "list the directory", reading=True)
        expected, found, advice = _BOUNDS[error.errno]
        return self.refused(path, "list the directory", expected=expected, found=found, advice=advice)

    def identity(self, path: bytes) -> Identity:
        """What is at `path` itself, a link not followed; FileChangedError when nothing is."""
        return identity_of(self._stat(path))

    def link_count(self, path: bytes) -> int:
        """How many names the file at `path` has, here and elsewhere."""
        return self._stat(path).st_nlink

    def metadata(self, path: bytes) -> Metadata:
        found = self._stat(path)
        return Metadata(stat.S_IMODE(found.st_mode), found.st_mtime_ns, found.st_uid, found.st_gid)

    def kind(self, path: bytes) -> Kind | None:
        """The kind of what is at `path`; None when nothing is, or when something on the way is missing.

        A symlink or another non-directory on the way is a FileError, not None: what is asked for cannot be
        made there either.
        """
        try:
            directory, name = self._locate(path)
            return kind_of(_lstat(name, directory.fd).st_mode)
        except FileNotFoundError:
            return None  # without making an error of it first: for a new file that is the answer
        except OSError as error:
            raise self.failure(error, path, "look at it") from error

    def open_read(self, path: bytes) -> SourceFile:
        """Open a regular file for reading; FileChangedError for anything else."""
        fd, found = self.perform(path, "open it for reading", _open_for_reading, reading=True)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise self.failure(_not_regular(found), path, "open it for reading", reading=True)
        return SourceFile(fd, found, path, self.shown(path))

    # Changing

    def make_directory(self, path: bytes, mode: int = 0o777) -> None:
        """Make a directory (mode less the umask); one that is already there is left as it is."""

        self.spend(path, 0, entries=1)

        def make(name: bytes, parent: int) -> None:
            try:
                os.mkdir(name, mode, dir_fd=parent)
            except FileExistsError:
                if not stat.S_ISDIR(_lstat(name, parent).st_mode):
                    raise

        self.perform(path, "make the directory", make)

    def replace_with_directory(self, path: bytes, mode: int = 0o777) -> None:
        """Make a directory (mode less the umask) in place of the file, link or special file at `path`."""
        self.spend(path, 0, entries=1)
        from rdc.files.exchange import directory_over_file

        self.perform(path, "make the directory", lambda name, parent: directory_over_file(name, parent, mode))

    def replace_symlink(
        self,
        path: bytes,
        target: bytes,
        metadata: Metadata | None = None,
        *,
        owner: bool = False,
        new: bool = False,
    ) -> None:
        """Make `path` a symlink to `target`, atomically in place of whatever is there.

        A directory there that is not empty is a FileError; with `new`, so is anything. The target is text: it
        is never looked at.
        """
        if not target or b"\0" in target or len(target) > PATH_BYTES:
            raise self.refused(
                path,
                "make the link",
                expected="a link target without NUL bytes",
                found=repr(target[:40]),
                advice="this link is left alone",
            )

        self.spend(path, 0, entries=1)

        def replace(name: bytes, parent: int) -> None:
            for attempt in range(SYMLINK_ATTEMPTS):
                temporary = temporary_name(name)
                os.symlink(target, temporary, dir_fd=parent)
                try:
                    if metadata is not None:
                        set_on_name(temporary, parent, _lstat(temporary, parent), metadata, owner=owner)
                    if new:
                        _rename_new(temporary, name, parent)
                        return
                    try:
                        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
                    except IsADirectoryError:
                        from rdc.files.exchange import file_over_directory

                        file_over_directory(temporary, name, parent)
                    return
                except FileNotFoundError:
                    if attempt == SYMLINK_ATTEMPTS - 1:
                        raise
                except BaseException:
                    _unlink_quietly(temporary, parent)
                    raise

        self.perform(path, "make the link", replace)

    def remove_file(self, path: bytes) -> bool:
        """Remove one entry that is no directory; False when nothing is there any more."""
        return self._removed(path, "remove it", _unlink)

    def remove_directory(self, path: bytes) -> bool:
        """Remove an empty directory; False when nothing is there any more."""
        found = self._removed(path, "remove the directory", _rmdir)
        self.forget(path)
        return found

    def _removed(self, path: bytes, doing: str, call: Callable[[bytes, int], None]) -> bool:
        try:
            self.perform(path, doing, call)
        except FileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return False
            raise
        return True

    def set_metadata(self, path: bytes, kind: Kind, metadata: Metadata, *, owner: bool) -> None:
        """Set mode, mtime (nanoseconds) and, with `owner`, uid and gid of an entry that must be of this kind.

        Only what differs is set. Works on entries that nobody may read, and on symlinks themselves.
        """

        def apply(name: bytes, parent: int) -> None:
            now = _lstat(name, parent)
            found = kind_of(now.st_mode)
            if found != kind:
                raise self.refused(
                    path,
                    "set its metadata",
                    expected=f"a {kind.name.lower()}",
                    found=f"a {found.name.lower()}",
                    advice="run again once nothing else changes this tree",
                )
            set_on_name(name, parent, now, metadata, owner=owner)

        self.perform(path, "set its metadata", apply)

    def close(self) -> None:
        """Drop kept descriptors. The root's own closes with the last reference to this object."""
        self._directories.forget(b"")

    def release(self) -> None:
        """As close(), and the root's own descriptor too, for good: nothing of this object keeps the file
        system from being unmounted. Last references can lie in cycles, and go when the collector comes."""
        self.close()
        self._directory.close()

    # How a path becomes a directory descriptor and a name

    def locate(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]:
        """The directory that holds `path` and its name there, for the writers of this package."""
        try:
            return self._locate(path, fresh=fresh)
        except OSError as error:
            raise self.failure(error, path, "open its directory") from error

    def _locate(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]:
        """As `locate`; the root is "." in itself. Raises OSError."""
        if not path:
            return self._directory, b"."
        parent, _, name = path.rpartition(b"/")
        # The parent of most paths is known, which leaves the name to check.
        if self._directories.knows(parent) and len(path) <= PATH_BYTES:
            check_name(path, name)
        else:
            check_path(path)
        return (self._directories.get_fresh if fresh else self._directories.get)(parent), name

    def perform(
        self, path: bytes, doing: str, call: Callable[[bytes, int], T], *, reading: bool = False
    ) -> T:
        """`call(name, descriptor of its directory)`, once more when a kept descriptor was of a removed
        directory."""
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
        return self.perform(path, "look at it", _lstat, reading=True)


def _ignore(name: bytes) -> None:
    pass


def _lstat(name: bytes, parent: int) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _open_for_reading(name: bytes, parent: int) -> tuple[int, os.stat_result]:
    fd = os.open(name, _READ, dir_fd=parent)
    try:
        return fd, os.fstat(fd)
    except BaseException:
        os.close(fd)
        raise


def _rename_new(old: bytes, new: bytes, parent: int) -> None:
    """To a name that nothing has."""
    try:
        rename_no_replace(old, new, parent)
    except OSError as error:
        # Old kernels, and file systems (some network ones) that cannot promise it.
        if error.errno not in {errno.ENOSYS, errno.EINVAL}:
            raise
        with suppress(FileNotFoundError):
            _lstat(new, parent)
            raise FileExistsError(errno.EEXIST, "") from error
        os.rename(old, new, src_dir_fd=parent, dst_dir_fd=parent)


def _unlink(name: bytes, parent: int) -> None:
    os.unlink(name, dir_fd=parent)


def _rmdir(name: bytes, parent: int) -> None:
    os.rmdir(name, dir_fd=parent)


def _unlink_quietly(name: bytes, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        return  # litter that the next sweep takes; the error on its way to the caller matters more


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
        # It could be neither opened nor made.
        expected, found = "a directory", "a symbolic link to nothing"
        advice = "make what it leads to, or remove the link"
    else:
        return failure(error, b"", label, "open it")
    return refused(b"", label, "open it", expected=expected, found=found, advice=advice)
