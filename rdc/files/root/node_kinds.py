"""Distinguishes fifos, sockets and devices, which a plain listing does not."""

from __future__ import annotations

import os
import stat
from array import array

from rdc.errors import FileError
from rdc.files.base.entry_check import stat_entry
from rdc.files.base.metadata import kind_of
from rdc.files.base.relative_path import join
from rdc.lean.records import replace
from rdc.model.entries import (
    DEVICES,
    Kind,
    Listed,
    device_number,
    little_endian,
    little_endian_integers,
    strings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.policies import Confined

__all__ = ["FORMAT_OF_KIND", "is_of_kind", "node_of", "with_node_kinds"]

FORMAT_OF_KIND = {
    Kind.FIFO: stat.S_IFIFO,
    Kind.SOCKET: stat.S_IFSOCK,
    Kind.CHARACTER_DEVICE: stat.S_IFCHR,
    Kind.BLOCK_DEVICE: stat.S_IFBLK,
}
_KIND_OF_FORMAT = {format_: kind for kind, format_ in FORMAT_OF_KIND.items()}


def is_of_kind(mode: int, kind: Kind) -> bool:
    """Return whether an entry with that st_mode has this kind."""
    if kind in FORMAT_OF_KIND:
        return stat.S_IFMT(mode) == FORMAT_OF_KIND[kind]
    return kind_of(mode) is kind


def node_of(found: os.stat_result) -> tuple[Kind, int]:
    """Return the kind and the number of a special file. Raises ValueError for a device that no listing can
    have."""
    kind = _KIND_OF_FORMAT[stat.S_IFMT(found.st_mode)]
    device = (os.major(found.st_rdev), os.minor(found.st_rdev)) if kind in DEVICES else (0, 0)
    return kind, device_number(*device)


def with_node_kinds(root: Confined, path: bytes, listed: Listed) -> Listed:
    """Return the entries of the directory at `path`, in which special files of the kinds that `root` shows
    are what they are.

    Each is looked at once more. They are rare, and trees without them pay nothing.
    """
    listing = listed.listing
    names, kinds = strings(listing.names), bytearray(listing.kinds)
    sizes: array[int] = little_endian_integers("Q", listing.sizes)
    for row in listing.rows_of(Kind.SPECIAL):
        try:
            parent, name = root.locate(join(path, names[row]))
            found = stat_entry(name, parent.fd)
            kind = _KIND_OF_FORMAT.get(stat.S_IFMT(found.st_mode), Kind.SPECIAL)
            if kind in root.reads.nodes:
                if kind in DEVICES:
                    sizes[row] = device_number(os.major(found.st_rdev), os.minor(found.st_rdev))
                kinds[row] = kind
        except (OSError, ValueError, FileError):
            continue  # gone meanwhile, or a device that no other machine can have: left alone, and named
    return replace(listed, listing=replace(listing, kinds=bytes(kinds), sizes=little_endian(sizes)))
