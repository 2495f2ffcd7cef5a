"""Replaces a file or link by a directory, or an empty directory by a file or link.

rename(2) does neither. Removing the old entry first would leave a moment with nothing there. So a temporary
and the old entry exchange names in one step, and the old entry is removed afterwards. After a kill in
between, a sweep finds it under the temporary name.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rdc.files.base.durability import sync_directory_at
from rdc.files.base.syscalls import rename_exchange
from rdc.files.base.taking_names import is_refused
from rdc.files.base.temporary_names import make_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["directory_over_file", "file_over_directory"]

DIRECTORY_ATTEMPTS = 16
"""How often the directory is made. A sweep may remove a temporary directory, which cannot be locked, before
the exchange."""


def directory_over_file(
    name: bytes, directory: int, mode: int, require: Callable[[], None] = lambda: None
) -> None:
    """Make a directory (`mode` less the umask) in place of the file or link `name`. Raises OSError.

    `require` is called right before the two exchange their names; what it raises leaves all as it is. If
    another process has put a directory there meanwhile, it stays with its contents: a directory was wanted.
    """
    for attempt in range(DIRECTORY_ATTEMPTS):
        temporary = make_aside(name, lambda aside: os.mkdir(aside, mode, dir_fd=directory))
        try:
            require()
        except BaseException:
            _rmdir_quietly(temporary, directory)
            raise
        try:
            rename_exchange(temporary, name, directory)
        except FileNotFoundError:
            _rmdir_quietly(temporary, directory)
            if attempt == DIRECTORY_ATTEMPTS - 1:
                raise
        except OSError as error:
            _rmdir_quietly(temporary, directory)
            if not is_refused(error):
                raise
            os.unlink(name, dir_fd=directory)
            os.mkdir(name, mode, dir_fd=directory)
            return
        else:
            try:
                os.unlink(temporary, dir_fd=directory)
            except IsADirectoryError:
                # Another process put a directory there. Under the temporary name no sweep would remove it.
                rename_exchange(temporary, name, directory)
                _rmdir_quietly(temporary, directory)
            except OSError:
                pass  # the next sweep removes it
            return


def file_over_directory(temporary: bytes, name: bytes, directory: int) -> None:
    """Rename the file or link `temporary` to `name`, where an empty directory is.

    Raises OSError; ENOTEMPTY if the directory has entries. It then keeps its name.
    """
    # Removals from the directory must be durable before it gets a temporary name. Otherwise a power cut can
    # leave a temporary directory with files in it, which no sweep removes. Kinds change rarely.
    sync_directory_at(name, directory)
    try:
        rename_exchange(temporary, name, directory)
    except OSError as error:
        if not is_refused(error):
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
