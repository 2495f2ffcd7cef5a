"""Puts a file back that an exchange of two names displaced unexpectedly."""

from __future__ import annotations

import errno
import os

from rdc.files.base.syscalls import rename_exchange, rename_no_replace

__all__ = ["PUT_BACK_ATTEMPTS", "put_back"]

PUT_BACK_ATTEMPTS = 16
"""How often names are exchanged back. Another process may move a file to the name each time."""


def put_back(beside: bytes, name: bytes, directory: int, ours: os.stat_result) -> None:
    """Give `name` back to the file that an exchange displaced to `beside`, and remove `ours` from there.

    `ours` is the file that the exchange put at `name`; removing it must lose nothing. Each exchange is
    checked afterwards. If it displaced `ours`, that is removed. Otherwise it displaced a file that another
    process moved there meanwhile. That file is newer than the one just put there, so it goes back in its
    turn. The file it displaces was replaced by its owner, and is removed as that would have done.

    Raises OSError; EBUSY after PUT_BACK_ATTEMPTS.
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
            # Another process removed the name. It may have meant this file, but restoring it is safer than
            # losing it.
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
