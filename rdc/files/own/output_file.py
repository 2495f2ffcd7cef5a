"""Files that a run writes where the user says: opened safely, claimed, written aside, put in place."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress

from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable
from rdc.files.base.directory_descriptors import Closing
from rdc.files.base.paths import failure, make_aside
from rdc.files.base.taking_names import flush, sync_directory, take_free_name
from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rdc.model.entries import PackedInodes


# OpenedPath: where a path that a user named leads, found without following a link that another user made.
#
# Files that rdc writes on request lie anywhere, also in directories that others may write to, such as /tmp.
# The kernel's fs.protected_symlinks guards only links that open(2) follows in sticky directories. rdc looks
# at each link itself: one that belongs neither to the effective user nor to root is not followed, wherever it
# is. The directory is held open, so what happens to the path afterwards redirects nothing.

LINKS = 40
"""Links followed on one path, as in the kernel."""

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_OWN_DESCRIPTORS = b"/proc/self/fd"


class OpenedPath(Closing):
    """A name in an open directory, which leads through no further link. A context manager."""

    __slots__ = ("descriptor", "directory", "is_magic", "name", "path")

    def __init__(self, path: bytes, *, make: int = 0, last: bool = True) -> None:
        """Open the directory that `path` leads to. `make`: the mode of missing directories, which are
        created; 0: they are not. `last=False`: a link at the path itself is not followed, so the name may be
        one.

        Raises OSError, and UsageError for a link of another user.
        """
        self.path = path
        self.directory = -1
        self.name = b""
        self.descriptor: int | None = None
        """The open descriptor of this process that the path means, such as 1 for /dev/stdout."""
        self.is_magic = False
        """True if the name is a link of procfs, which only the kernel can follow."""
        if b"\0" in path:
            raise OSError(errno.EINVAL, "a name holds no NUL byte")
        try:
            self._walk(make, last)
        except BaseException:
            self.close()
            raise

    def look(self) -> os.stat_result | None:
        """Return the stat of the entry; None if nothing is there. Raises OSError."""
        if self.descriptor is not None:
            return os.fstat(self.descriptor)
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=self.is_magic)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        fd, self.directory = self.directory, -1
        if fd >= 0:
            os.close(fd)

    def _walk(self, make: int, last: bool) -> None:
        todo = self._begin(self.path)
        links = 0
        while todo:
            name = todo.pop()
            if name in (b"", b"."):
                self.name = b"."  # a slash at the end of the path means a directory
                continue
            found = None if name == b".." else self._stat(name)
            if found is not None and stat.S_ISLNK(found.st_mode) and (todo or last):
                links += 1
                self._check_link(name, found, links)
                todo += self._followed(name, is_last=not todo)
            elif todo:
                if found is None and make and name != b"..":
                    with suppress(FileExistsError):
                        os.mkdir(name, make, dir_fd=self.directory)
                self._enter(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self.directory))
            else:
                self.name = name

    def _followed(self, name: bytes, *, is_last: bool) -> list[bytes]:
        """Follow a link. Return the components that are then to be walked, the first one last."""
        if not self.is_of_procfs():
            text = os.readlink(name, dir_fd=self.directory)
            return self._begin(text) if text.startswith(b"/") else _steps(text)
        if is_last:
            self._end_in_procfs(name)
        else:
            self._enter(os.open(name, _DIRECTORY, dir_fd=self.directory))
        return []

    def _begin(self, path: bytes) -> list[bytes]:
        """Enter the directory where `path` begins, and return its components, the first one last."""
        self._enter(os.open(b"/" if path.startswith(b"/") else b".", _DIRECTORY))
        return _steps(path)

    def _enter(self, fd: int) -> None:
        self.close()
        self.directory = fd

    def _stat(self, name: bytes) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _check_link(self, name: bytes, found: os.stat_result, links: int) -> None:
        """Raise UsageError for a link of another user, and OSError after too many of them."""
        if links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if found.st_uid not in {os.geteuid(), 0}:
            shown = printable(self.path)
            raise UsageError(
                f"{shown}: cannot write it: {printable(name)} is a symbolic link of user {found.st_uid}, and"
                " rdc follows no link of another user; name the place that it leads to"
            )

    def is_of_procfs(self) -> bool:
        """Return whether links of the directory lead where only the kernel knows, as /proc/self/fd/1."""
        try:
            return os.fstat(self.directory).st_dev == os.stat(b"/proc/self").st_dev
        except OSError:
            return False

    def _end_in_procfs(self, name: bytes) -> None:
        """End at a link of procfs that is the last component. Raises OSError for a file without a name."""
        self.name = name
        if name.isdigit() and os.path.samestat(os.fstat(self.directory), os.stat(_OWN_DESCRIPTORS)):
            self.descriptor = int(name)
            return
        self.is_magic = True
        found = self.look()
        if found is not None and stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is open in another process; name the file itself")


def claim_directory(path: bytes) -> None:
    """Check the directory that a run will fill with results: nothing is there yet, or an empty directory.

    Raises UsageError for a place with other contents, and FileError (exit code 11) for one that cannot be
    used.
    """
    shown = printable(path)
    try:
        with OpenedPath(os.path.join(path, b"")) as opened:
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=opened.directory)
            try:
                filled = bool(os.listdir(fd))
            finally:
                os.close(fd)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise UsageError(
            f"{shown}: expected a new or an empty directory, found a file; name another"
        ) from error
    except OSError as error:
        raise _no_directory(error, path) from error
    if filled:
        raise UsageError(
            f"{shown}: expected a new or an empty directory, found one with files, which are never replaced;"
            " name another, or delete it"
        )


def make_result_directory(path: bytes) -> None:
    """Create a directory for results and those above it, as far as they are missing. Raises RdcError."""
    try:
        make_directory(path)
    except OSError as error:
        raise _no_directory(error, path) from error


def _no_directory(error: OSError, path: bytes) -> RdcError:
    reason = f"cannot make the directory or write to it: {error.strerror}; name another"
    return FileError(path, f"{printable(path)}: {reason}", code=ExitCode.FILE_IO)


def make_directory(path: bytes, mode: int = 0o777) -> None:
    """Create a directory and those above it, as far as they are missing. Raises as OpenedPath does."""
    OpenedPath(os.path.join(path, b""), make=mode).close()


def _steps(path: bytes) -> list[bytes]:
    """Split at slashes; the first component comes last."""
    return path.split(b"/")[::-1]


# Claims: the files that a run will write, which it must not read (FILES.md, "Result files").


class ExistingFile(Record):
    """A regular file that the run will write."""

    device: int
    inode: int
    path: bytes
    """The path of the result."""


class Claims(Record):
    """The files that a run must not read, since it will replace or write them."""

    existing: tuple[ExistingFile, ...] = ()
    directories: frozenset[tuple[int, int]] = frozenset()
    """Device and inode number of directories that the run fills. Walks leave them out."""

    def check(self, device: int, inode: int, shown: bytes) -> None:
        """Raise UsageError if this file, which the run would read, is one that a result would replace."""
        for one in self.existing:
            if (one.device, one.inode) == (device, inode):
                raise _is_read(one.path, shown)

    def check_rows(self, inodes: PackedInodes, shown: Callable[[int], bytes]) -> None:
        """Check all rows of a directory. `shown` gives the path of a row."""
        for one in self.existing:
            number = one.inode.to_bytes(8, "little")
            at = inodes.inodes.find(number)
            while at >= 0:
                row = at // 8
                if not at % 8 and inodes.identity(row) == (one.device, one.inode):
                    raise _is_read(one.path, shown(row))
                at = inodes.inodes.find(number, at + 1)

    def check_below(self, paths: Iterable[bytes]) -> None:
        """Check the trees at `paths` where other processes walk them: no result may replace a file there."""
        tops = [os.path.realpath(path) for path in paths]
        for one in self.existing:
            real = os.path.realpath(one.path)
            for top in tops:
                if real == top or real.startswith(top.rstrip(b"/") + b"/"):
                    raise _is_read(one.path, real)

    def check_named(self, paths: Iterable[bytes]) -> None:
        """Check files that the run reads because the user named them. Others report what is missing."""
        for path in paths:
            try:
                found = os.stat(path)
            except (OSError, ValueError):
                continue
            self.check(found.st_dev, found.st_ino, path)


def claim_log(path: bytes) -> Claims:
    """Return what a run that appends to a log must not read as if it were something else."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return Claims()
    return Claims((ExistingFile(found.st_dev, found.st_ino, path),))


def _is_read(path: bytes, shown: bytes) -> UsageError:
    other = "" if shown == path else f" as {printable(shown)}"
    return UsageError(
        f"{printable(path)}: this run would read it{other}, and then write it; name another place, or leave"
        " the file out of what is read"
    )


# Result files: the files that rdc writes because a user named them (FILES.md, "Result files").
#
# `claim_outputs` looks at all of them before a run reads anything. The run then asks the Claims about each
# file that it reads. `write_output` writes one: completely or not at all.

HEAD_BYTES = 64 << 10
"""Bytes at the start of a file by which its kind is known. A kept document has one line, of two names of at
most 4,096 bytes each, which JSON and base64 make longer."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC

ATTEMPTS = 8
"""Times that an entry is looked at again, if another process makes one there in between."""


class OutputKind(Record):
    """One kind of result files."""

    name: str
    """The kind of file, for messages: 'a part of a scan'."""
    begins: Callable[[bytes], bool] | None
    """True if the first HEAD_BYTES of a file are those of this kind. A file without content is of every kind;
    it is not asked about. None: no file can be told from an input that was left out by mistake."""


class Output(Record):
    """A result file that a user asked for."""

    path: bytes
    kind: OutputKind
    overwrite: bool | None = None
    """True if it may also replace a file of another kind. None: the user has no option that allows it."""


def claim_outputs(outputs: Sequence[Output], directories: Sequence[bytes] = ()) -> Claims:
    """Look at where all results of a run will be, before it reads anything.

    `directories`: that the run fills with files of its own; a missing one is passed over. Raises UsageError
    for a result that may not be written there, and FileError (exit code 11) for one that cannot be.
    """
    existing = []
    used: set[tuple[int, int, bytes]] = set()
    for output in outputs:
        with _opened(output) as opened:
            found = _judged(opened, output)
            if opened.descriptor is None and (found is None or stat.S_ISREG(found.st_mode)):
                directory = os.fstat(opened.directory)
                key = (directory.st_dev, directory.st_ino, opened.name)
                if key in used:
                    raise UsageError(f"{printable(output.path)}: two results cannot go to one file")
                used.add(key)
            if found is not None and stat.S_ISREG(found.st_mode):
                existing.append(ExistingFile(found.st_dev, found.st_ino, output.path))
    return Claims(tuple(existing), frozenset(_numbers_of(directories)))


def _numbers_of(directories: Sequence[bytes]) -> Iterable[tuple[int, int]]:
    for path in directories:
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(path)
            yield found.st_dev, found.st_ino


def write_output(output: Output, parts: Iterable[bytes]) -> None:
    """Write a result: the joined `parts`.

    A regular file is written aside and renamed, with the mode 0666 less the umask. It is durable on return. A
    pipe, device or descriptor is written to. Raises OutOfSpaceError, FileError or UsageError. An existing
    file then keeps its content, unless only the sync of its directory failed.
    """
    with _opened(output) as opened:
        found = _judged(opened, output)
        if found is None or (stat.S_ISREG(found.st_mode) and opened.descriptor is None):
            _replace(opened, output, parts)
        else:
            _write_into(opened, output, parts)


def _opened(output: Output) -> OpenedPath:
    try:
        return OpenedPath(output.path)
    except FileNotFoundError as error:
        why = "the directory it should be in is not there; make it and run again"
        raise _refusal(output, why) from error
    except OSError as error:
        if error.filename is None:  # raised by OpenedPath itself
            raise _refusal(output, str(error.strerror)) from error
        raise _failure(error, output) from error


def _judged(opened: OpenedPath, output: Output) -> os.stat_result | None:
    """Return the entry that a result may replace or be written to, None if there is none.

    Raises FileError and UsageError if it may not or cannot.
    """
    try:
        found = opened.look()
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise _refusal(output, "expected a file, found a directory; name a file in it")
        if opened.descriptor is not None:
            return found
        directory = os.fstat(opened.directory)
        if found is not None and not stat.S_ISREG(found.st_mode):
            shared = directory.st_mode & stat.S_ISVTX and directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if shared and found.st_uid not in {os.geteuid(), 0, directory.st_uid}:
                raise UsageError(
                    f"{printable(output.path)}: cannot write it: expected a file, found a pipe or device of"
                    f" user {found.st_uid} in a directory that others share; name another place"
                )
            return found
        if not os.access(b".", os.W_OK | os.X_OK, dir_fd=opened.directory):
            raise _refusal(output, "its directory may not be written to; name another place")
        if found is None and opened.is_of_procfs():  # access(2) tells root that it may write there
            raise _refusal(output, "no file can be made in /proc; name another place")
        if found is not None and found.st_size and not output.overwrite:
            _check_kind(opened, output)
    except OSError as error:
        raise _failure(error, output) from error
    return found


def _check_kind(opened: OpenedPath, output: Output) -> None:
    """Raise UsageError unless the existing file begins as this kind does."""
    if output.kind.begins is None:
        other = "move this one away" if output.overwrite is None else "replace this one with --overwrite"
        raise UsageError(
            f"{printable(output.path)}: expected nothing there, since {output.kind.name} could also be one of"
            f" the inputs; name a new file, or {other}"
        )
    try:
        with open(os.open(opened.name, _READ, dir_fd=opened.directory), "rb") as file:
            head = file.read(HEAD_BYTES)
    except PermissionError:
        head = b""
    if not (head and output.kind.begins(head)):
        other = "move it away" if output.overwrite is None else "replace it with --overwrite"
        raise UsageError(
            f"{printable(output.path)}: expected {output.kind.name}, or nothing, found another file; name"
            f" another place, or {other}"
        )


def _write_into(opened: OpenedPath, output: Output, parts: Iterable[bytes]) -> None:
    try:
        if opened.descriptor is not None:
            fd = os.dup(opened.descriptor)
        else:
            follow = 0 if opened.is_magic else os.O_NOFOLLOW
            fd = os.open(opened.name, _WRITE | follow, dir_fd=opened.directory)
        try:
            _write_all(fd, parts)
        finally:
            os.close(fd)
    except OSError as error:
        raise _failure(error, output) from error


def _replace(opened: OpenedPath, output: Output, parts: Iterable[bytes]) -> None:
    fd = -1

    def make(name: bytes) -> None:
        nonlocal fd
        fd = os.open(name, _CREATE, 0o666, dir_fd=opened.directory)

    try:
        aside = make_aside(opened.name, make)
    except OSError as error:
        raise _failure(error, output) from error
    try:
        try:
            _write_all(fd, parts)
            flush(fd)
            _publish(opened, output, aside)
            aside = b""
            sync_directory(opened.directory, fd)
        finally:
            os.close(fd)
    except BaseException as error:
        if aside:
            with contextlib.suppress(OSError):
                os.unlink(aside, dir_fd=opened.directory)
        if isinstance(error, OSError):
            raise _failure(error, output) from error
        raise


def _publish(opened: OpenedPath, output: Output, aside: bytes) -> None:
    """Give a finished file its name, if the entry there now may be replaced. Raises OSError too."""
    fd = opened.directory
    for _ in range(ATTEMPTS):
        found = _judged(opened, output)
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise _refusal(
                output, "expected a file or nothing, found a pipe or device that was made meanwhile"
            )
        if found is not None:
            os.rename(aside, opened.name, src_dir_fd=fd, dst_dir_fd=fd)
            return
        try:
            take_free_name(aside, opened.name, fd)
        except FileExistsError:
            continue  # made meanwhile: look at it
        return
    raise _refusal(output, "another process makes and removes files of this name")


def _write_all(fd: int, parts: Iterable[bytes]) -> None:
    for part in parts:
        left = memoryview(part)
        while left:
            left = left[os.write(fd, left) :]


def _refusal(output: Output, reason: str) -> FileError:
    return FileError(
        output.path, f"{printable(output.path)}: cannot write it: {reason}", code=ExitCode.FILE_IO
    )


def _failure(error: OSError, output: Output) -> RdcError:
    return failure(error, output.path, output.path, "write it")
