"""Changes the kind of an entry: a directory where a file or link was, and the other way round.

rename(2) does neither, and removing the old entry first would leave a moment with nothing there. Both change
places with a temporary in one step instead, and what was there goes after. A kill in between leaves it under
the temporary name, where a sweep finds it.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from rdc.files.syscalls import rename_exchange
from rdc.files.temporary import temporary_name

__all__ = ["directory_over_file", "file_over_directory"]

# Old kernels, seccomp filters, file systems that know only the plain rename.
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.EPERM}

DIRECTORY_ATTEMPTS = 16
"""A sweep may take a temporary directory, which cannot be locked, before the exchange."""


def directory_over_file(name: bytes, directory: int, mode: int) -> None:
    """Make a directory (`mode` less the umask) in place of the file or link `name`. Raises OSError.

    A directory that somebody has put there meanwhile, with whatever is in it, stays: it is what was wanted.
    """
    for attempt in range(DIRECTORY_ATTEMPTS):
        temporary = temporary_name(name)
        os.mkdir(temporary, mode, dir_fd=directory)
        try:
            rename_exchange(temporary, name, directory)
        except FileNotFoundError:
            _rmdir_quietly(temporary, directory)
            if attempt == DIRECTORY_ATTEMPTS - 1:
                raise
        except OSError as error:
            _rmdir_quietly(temporary, directory)
            if error.errno not in _NO_EXCHANGE:
                raise
            os.unlink(name, dir_fd=directory)
            os.mkdir(name, mode, dir_fd=directory)
            return
        else:
            try:
                os.unlink(temporary, dir_fd=directory)
            except IsADirectoryError:
                # No sweep would take it, and nobody would look for it there.
                rename_exchange(temporary, name, directory)
                _rmdir_quietly(temporary, directory)
            except OSError:
                pass  # litter at worst, which the next sweep takes
            return


def file_over_directory(temporary: bytes, name: bytes, directory: int) -> None:
    """Rename the file or link `temporary` to `name`, where an empty directory is.

    Raises OSError, ENOTEMPTY when something is in it; the directory is then where it was.
    """
    try:
        rename_exchange(temporary, name, directory)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        os.rmdir(name, dir_fd=directory)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        return
    try:
        os.rmdir(temporary, dir_fd=directory)
    except FileNotFoundError:
        return  # a sweep was faster
    except OSError:
        rename_exchange(temporary, name, directory)
        raise


def _rmdir_quietly(name: bytes, directory: int) -> None:
    with suppress(OSError):
        os.rmdir(name, dir_fd=directory)
