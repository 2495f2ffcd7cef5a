"""Reads one directory into a PackedListing: in C on Linux, elsewhere as rdc.files.listing defines it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rdc.files.listing import read_directory
from rdc.limits import DIRECTORY_BYTES
from rdc.model.entries import PackedListing, strings

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["read_packed"]


def _built() -> ModuleType | None:
    try:
        from rdc.files import _walk
    except ImportError:  # a checkout without a compiler: correct, and several times slower
        return None
    return _walk if hasattr(_walk, "read_directory") else None


_extension = _built()


def read_packed(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> PackedListing:
    """The entries of the directory open for reading at `fd`: what `listing.read_directory` gives."""
    if _extension is None:
        return read_directory(fd, on_temporary, limit).packed()
    *columns, temporaries = _extension.read_directory(fd, on_temporary is not None, limit)
    if temporaries and on_temporary is not None:
        for name in strings(temporaries):
            on_temporary(name)
    return PackedListing(*columns)
