"""Checks of what a source announces, the modes of new entries, and the error of wrong content."""

from __future__ import annotations

import os
from array import array

from rdc.errors import FileError, ProtocolError, printable
from rdc.files.base.paths import join
from rdc.files.base.syscalls import process_umask
from rdc.lean.records import replace
from rdc.model.entries import Kind, Listing, Metadata
from rdc.protocol.messages import Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.model.preserved import Preserved
    from rdc.protocol.connection import Received
    from rdc.tree.filters import FilterList
    from rdc.tree.selection import Selection


# The error for content that does not match its digest. The caller then tries another way to get it.


class MismatchError(FileError):
    """Bytes do not match their digest: a short digest collided, or the base or the source changed."""


# Checks that a source announces only what it was asked for and what the filter rules include.
#
# A source that could choose other names would choose what is written at the destination, and with --delete
# what is deleted there. It could send a key instead of a document, a whole directory instead of one entry, or
# keys that the user excluded.


def entry_of(path: bytes) -> bytes:
    """The one entry that a source's path means, by rsync's rule.

    It is the last component. b"" means all entries of a directory: the last component is empty, "." or "..".
    """
    name = os.path.basename(path)
    return b"" if name in (b".", b"..") else name


def announced(received: Received | None, asked: bytes | None) -> tuple[Start, int]:
    """The source's Start and the round to go on with.

    `asked`: entry_of() the requested path; None if the source dialled and decides itself. Raises
    ProtocolError for any other message or entry.
    """
    if received is None or not isinstance(received.message, Start):
        raise ProtocolError("expected Start")
    if asked is not None and received.message.only != asked:
        only = received.message.only
        raise ProtocolError(f"{_named(asked)} was asked for, and the far side tells of {_named(only)}")
    return received.message, received.round + 1


def check_announced(names: Collection[bytes], only: bytes) -> None:
    """Raises ProtocolError if `names`, from the source's root directory, include another name than `only`.

    `only` is the entry that Start announced; b"" allows all names.
    """
    for name in names if only else ():
        if name != only:
            raise ProtocolError(f"the far side tells of {_named(name)}, {_named(only)} was announced")


def check_selected(directory: bytes, names: Collection[bytes], selection: Selection) -> None:
    """Raises ProtocolError if `names`, from a directory of the source, include one that is not selected."""
    taken = selection.names(directory)
    if taken is None:
        return
    for name in names:
        if name not in taken:
            shown = printable(join(directory, name))
            raise ProtocolError(f"the far side tells of '{shown}', which was not asked for")


def check_included(
    directory: bytes, listing: Listing, filters: FilterList, selection: Selection | None = None
) -> None:
    """Raises ProtocolError if the rules exclude an entry of `directory`. A directory above a path of
    `selection` may come all the same."""
    kinds = listing.kinds
    for row, name in enumerate(listing.names):
        path = join(directory, name)
        if selection is None or not selection.is_above(path):
            check_path(path, kinds[row] == Kind.DIRECTORY, filters)


def check_path(path: bytes, is_directory: bool, filters: FilterList) -> None:
    """Like check_included for one entry."""
    if filters.excluded(path, is_directory):
        raise ProtocolError(f"the far side tells of '{printable(path)}', which a filter rule leaves out")


def _named(only: bytes) -> str:
    return f"'{printable(only)}'" if only else "the content of a directory"


def with_made_modes(listing: Listing, preserved: Preserved) -> Listing:
    """An announced listing with the modes that its entries get if they are new."""
    if preserved.keeps_all_modes:
        return listing
    umask = process_umask()
    modes = (
        preserved.made_mode(kind, mode, umask)
        for kind, mode in zip(listing.kinds, listing.modes, strict=True)
    )
    return replace(listing, modes=array("H", modes))


def with_made_mode(metadata: Metadata, kind: Kind, preserved: Preserved) -> Metadata:
    """The same for one entry."""
    if preserved.keeps_all_modes:
        return metadata
    return replace(metadata, mode=preserved.made_mode(kind, metadata.mode, process_umask()))
