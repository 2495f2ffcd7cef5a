"""What a source may tell of: what it was asked for, by the rules it was given, and nothing else.

A source that chose the names would choose what is written at the destination, and with --delete what goes:
a key where a document was asked for, all of a directory in place of one entry, others' keys where the user
excluded his own from what he fetches.
"""

from __future__ import annotations

import os

from rdc.errors import ProtocolError, printable
from rdc.files.path import join
from rdc.model.entries import Kind
from rdc.protocol.messages import Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.model.entries import Listing
    from rdc.protocol.connection import Received
    from rdc.tree.filters import FilterList

__all__ = ["announced", "check_announced", "check_included", "check_path", "entry_of"]


def entry_of(path: bytes) -> bytes:
    """What a source's path means: the one entry that its last component names, or b"", all that is in a
    directory, where that is empty, "." or ".." (rsync's rule)."""
    name = os.path.basename(path)
    return b"" if name in (b".", b"..") else name


def announced(received: Received | None, asked: bytes | None) -> tuple[Start, int]:
    """The source's Start, and the round to go on with. `asked`: entry_of() the path that it was asked for;
    None: it dialled, and decides. ProtocolError for anything else."""
    if received is None or not isinstance(received.message, Start):
        raise ProtocolError("expected Start")
    if asked is not None and received.message.only != asked:
        only = received.message.only
        raise ProtocolError(f"{_named(asked)} was asked for, and the far side tells of {_named(only)}")
    return received.message, received.round + 1


def check_announced(names: Collection[bytes], only: bytes) -> None:
    """ProtocolError unless these names of entries of a source's root are no other than the one that its Start
    announced; `only` b"": any may be."""
    for name in names if only else ():
        if name != only:
            raise ProtocolError(f"the far side tells of {_named(name)}, {_named(only)} was announced")


def check_included(directory: bytes, listing: Listing, filters: FilterList) -> None:
    """ProtocolError where entries of `directory` are among what the rules leave out."""
    kinds = listing.kinds
    for row, name in enumerate(listing.names):
        check_path(join(directory, name), kinds[row] == Kind.DIRECTORY, filters)


def check_path(path: bytes, is_directory: bool, filters: FilterList) -> None:
    """As check_included, of one entry."""
    if filters.excluded(path, is_directory):
        raise ProtocolError(f"the far side tells of {printable(path)!r}, which a filter rule leaves out")


def _named(only: bytes) -> str:
    return repr(printable(only)) if only else "the content of a directory"
