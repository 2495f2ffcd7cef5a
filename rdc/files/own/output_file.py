"""Result files: the files that rdc writes because a user named them (FILES.md, "Result files").

`claim_outputs` looks at all of them before a run reads anything. The run then asks the Claims about each file
that it reads. `write_output` writes one: completely or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable

from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable
from rdc.files.base.durability import flush, sync_directory
from rdc.files.base.os_errors import failure
from rdc.files.base.syscalls import rename_no_replace
from rdc.files.base.temporary_names import make_aside
from rdc.files.own.claims import Claims, ExistingFile
from rdc.files.own.opened_path import OpenedPath
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Output", "OutputKind", "claim_outputs", "write_output"]

HEAD_BYTES = 64 << 10
"""Bytes at the start of a file by which its kind is known. A kept document has one line, of two names of at
most 4,096 bytes each, which JSON and base64 make longer."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC

_CANNOT_PROMISE = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}
"""Errors where the file system cannot rename without replacing."""

ATTEMPTS = 8
"""Times that an entry is looked at again, if another process makes one there in between."""


@dataclass(frozen=True, slots=True)
class OutputKind:
    """One kind of result files."""

    name: str
    """What a file of this kind is, for messages: 'a part of a scan'."""
    begins: Callable[[bytes], bool] | None
    """Whether the first HEAD_BYTES of a file are those of this kind. A file without content is of every kind;
    it is not asked about. None: no file can be told from an input that was left out by mistake."""


@dataclass(frozen=True, slots=True)
class Output:
    """A result file that a user asked for."""

    path: bytes
    kind: OutputKind
    overwrite: bool = False
    """Whether it may also replace a file of another kind."""


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
        if found is not None and found.st_size and not output.overwrite:
            _check_kind(opened, output)
    except OSError as error:
        raise _failure(error, output) from error
    return found


def _check_kind(opened: OpenedPath, output: Output) -> None:
    """Raise UsageError unless the existing file begins as this kind does."""
    if output.kind.begins is None:
        raise UsageError(
            f"{printable(output.path)}: expected nothing there, since {output.kind.name} could also be one of"
            " the inputs; name a new file, or replace this one with --overwrite"
        )
    try:
        with open(os.open(opened.name, _READ, dir_fd=opened.directory), "rb") as file:
            head = file.read(HEAD_BYTES)
    except PermissionError:
        head = b""
    if not (head and output.kind.begins(head)):
        raise UsageError(
            f"{printable(output.path)}: expected {output.kind.name}, or nothing, found another file; name"
            " another place, or replace it with --overwrite"
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
            rename_no_replace(aside, opened.name, fd)
        except FileExistsError:
            continue  # made meanwhile: look at it
        except OSError as error:
            if error.errno not in _CANNOT_PROMISE:
                raise
            os.rename(aside, opened.name, src_dir_fd=fd, dst_dir_fd=fd)
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
