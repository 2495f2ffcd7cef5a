"""Two names of a directory change places, and change back where that displaced something unexpected."""

from __future__ import annotations

import errno
import os

from rdc.files.syscalls import rename_exchange, rename_no_replace

__all__ = ["PUT_BACK_ATTEMPTS", "put_back"]

PUT_BACK_ATTEMPTS = 16
"""Somebody may move another file to the name while one is put back, and once more: then it begins again."""


def put_back(beside: bytes, name: bytes, directory: int, ours: os.stat_result) -> None:
    """Give `name` back to the file that an exchange displaced to `beside`, and remove `ours` from there.

    `ours` is the file that the exchange put at `name`; removing it must lose nothing. Each exchange is looked
    at after: what came from the name is ours, or a file that somebody has moved there meanwhile. The latter
    is newer than what was just put there and goes back in its turn; what it then displaces has been replaced
    by its owner, and goes as it would have gone without us. Raises OSError, EBUSY when that does not end.
    """
    put: os.stat_result | None = None
    for _ in range(PUT_BACK_ATTEMPTS):
        here = os.stat(beside, dir_fd=directory, follow_symlinks=False)
        if os.path.samestat(here, ours):
            os.unlink(beside, dir_fd=directory)
            return
        try:
            rename_exchange(beside, name, directory)
        except FileNotFoundError:
            # The name was removed, by somebody who may have meant this file: it comes back rather than be
            # lost.
            try:
                rename_no_replace(beside, name, directory)
            except FileExistsError:
                continue
            return
        before, put = put, here
        if before is not None:
            now = os.stat(beside, dir_fd=directory, follow_symlinks=False)
            if os.path.samestat(now, before):
                os.unlink(beside, dir_fd=directory)
                return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
