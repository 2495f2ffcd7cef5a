"""The source's half of the turns of a session that stays open."""

from __future__ import annotations

from rdc.limits import GONE_BYTES
from rdc.model.entries import EMPTY_LISTING
from rdc.protocol.listings import slice_listing
from rdc.protocol.messages import Changed, Done, Renamed, Turn, TurnEnd, Watch
from rdc.records import dataclass
from rdc.session.commands import Receive, Send
from rdc.session.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.entries import Listing, Metadata
    from rdc.session.commands import Conversation
    from rdc.tree.manifest import Manifest

__all__ = ["Changes", "DirectoryChange", "TurnSource"]


@dataclass(frozen=True, slots=True)
class DirectoryChange:
    """What is different in one directory."""

    path: bytes
    metadata: Metadata
    """The directory's own."""
    listing: Listing
    """Entries that are new or different."""
    gone: tuple[bytes, ...]
    """Names that are no more, in order."""
    doubtful: tuple[int, ...] = ()
    """Rows of `listing`: files whose content is to be compared though size and mtime may agree."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What one turn tells."""

    renames: Sequence[Renamed]
    directories: Sequence[DirectoryChange]
    """Each once, parents before their children."""
    entries: int
    """Of the whole tree."""
    files: int
    """Regular files among them."""
    read_errors: int


class TurnSource(Source):
    """A Source for one turn."""

    @property
    def manifest(self) -> Manifest:
        """All entries that the destination was told of in this turn."""
        return self._description.manifest

    @property
    def read_errors(self) -> int:
        """Directories that could not be read."""
        return self._description.read_errors

    def run_first(self, *, again: bool, origin: bytes) -> Conversation[Done]:
        """The turn that the session opens with: the trees are compared. `again`, `origin`: see Watch."""
        yield Send(Watch(again, origin), 1)
        return (yield from self.run())

    def run_whole(self) -> Conversation[Done]:
        """A later turn in which the trees are compared."""
        yield Send(Turn(True), 0)
        return (yield from self.run())

    def run_changes(self, changes: Changes) -> Conversation[Done]:
        """A turn that tells what changed, and answers what is asked about that."""
        yield Send(Turn(False), 0)
        for rename in changes.renames:
            yield Send(rename, 0)
        for directory in changes.directories:
            for part in self._parts(directory):
                yield Send(part, 0)
        yield Send(TurnEnd(changes.entries, changes.files, changes.read_errors), 0)
        while True:
            received = self._heard.popleft() if self._heard else (yield Receive())
            if received is None:
                continue
            if isinstance(received.message, Done):
                return received.message
            yield from self._serve(received)

    def _parts(self, directory: DirectoryChange) -> Iterator[Changed]:
        gone = list(_slices(directory.gone))
        path, metadata, seen = directory.path, directory.metadata, 0
        for listing in slice_listing(directory.listing):
            first, rows = len(self.manifest), range(seen, seen + len(listing))
            doubtful = tuple(row - seen for row in directory.doubtful if row in rows)
            seen += len(listing)
            self.manifest.extend(path, listing.packed())
            yield Changed(path, metadata, first, gone.pop(0) if gone else b"", listing, doubtful)
        for names in gone:
            yield Changed(path, metadata, len(self.manifest), names, EMPTY_LISTING, ())


def _slices(names: Sequence[bytes]) -> Iterator[bytes]:
    """Names, each ended by NUL, in pieces that a message has room for."""
    piece = bytearray()
    for name in names:
        if len(piece) + len(name) + 1 > GONE_BYTES:
            yield bytes(piece)
            piece.clear()
        piece += name + b"\0"
    if piece:
        yield bytes(piece)
