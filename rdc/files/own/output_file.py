"""Writes a result file that a user named: completely or not at all."""

from __future__ import annotations

import contextlib
import os
import stat

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.durability import sync_directory_of
from rdc.files.base.os_errors import failure
from rdc.files.base.temporary_names import temporary_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["check_output", "write_output"]


def check_output(path: bytes) -> None:
    """Raise FileError (exit code 11) if write_output would fail at once, so that long work is not done in
    vain."""
    directory = b"" if b"\0" in path else os.path.dirname(os.path.realpath(path))
    if not directory:
        reason = "no name holds a NUL byte"
    elif os.path.isdir(path):
        reason = "expected a file, found a directory; name a file in it"
    elif not os.path.isdir(directory):
        reason = "the directory it should be in is not there; make it and run again"
    elif not os.path.exists(path) and not os.access(directory, os.W_OK | os.X_OK):
        reason = "its directory may not be written to; name another place"
    else:
        return
    name = printable(path)
    raise FileError(path, f"{name}: cannot write it: {reason}", code=ExitCode.FILE_IO)


def write_output(path: bytes, parts: Iterable[bytes]) -> None:
    """Replace the file at `path`, or the target of a link there, by the joined `parts`.

    A regular file is replaced atomically (mode 0666 less the umask). A pipe, terminal or device is written
    to. Raises OutOfSpaceError or FileError. A regular file then keeps its old content, unless only the sync
    of its directory failed.
    """
    check_output(path)
    try:
        target = os.path.realpath(path)
        # /dev/stdout leads to a name such as pipe:[7] that cannot be resolved, so it is opened by `path`.
        if os.path.lexists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            _write_into(path, parts)
            return
    except FileNotFoundError:
        pass  # a dangling link: its target is created
    except OSError as error:
        raise failure(error, path, path, "write it") from error
    _replace(target, path, parts)


def _write_into(path: bytes, parts: Iterable[bytes]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _write_all(fd, parts)
    finally:
        os.close(fd)


def _replace(target: bytes, path: bytes, parts: Iterable[bytes]) -> None:
    directory, name = os.path.split(target)
    aside = os.path.join(directory, temporary_name(name))
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise failure(error, path, path, "write it") from error
    try:
        try:
            _write_all(fd, parts)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(aside, target)
        sync_directory_of(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        if isinstance(error, OSError):
            raise failure(error, path, path, "write it") from error
        raise


def _write_all(fd: int, parts: Iterable[bytes]) -> None:
    for part in parts:
        left = memoryview(part)
        while left:
            left = left[os.write(fd, left) :]
