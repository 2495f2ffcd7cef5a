"""Writes a result file that a user named: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from rdc.files.failure import failure
from rdc.files.temporary import temporary_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["write_output"]


def write_output(path: bytes, pieces: Iterable[bytes]) -> None:
    """Replaces the file at `path` by the pieces one behind another, atomically (mode 0666 less the umask).

    Raises OutOfSpaceError or FileError; the old file is then as it was.
    """
    directory, name = os.path.split(path)
    aside = os.path.join(directory, temporary_name(name))
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except (OSError, ValueError) as error:
        cause = error if isinstance(error, OSError) else OSError(22, str(error))
        raise failure(cause, path, path, "write it") from error
    try:
        try:
            for piece in pieces:
                left = memoryview(piece)
                while left:
                    left = left[os.write(fd, left) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(aside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(aside)
        if isinstance(error, OSError):
            raise failure(error, path, path, "write it") from error
        raise
