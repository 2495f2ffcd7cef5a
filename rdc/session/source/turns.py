"""The source's turns in a session that stays open and follows changes."""

from __future__ import annotations

from rdc.lean.records import Record
from rdc.limits import GONE_BYTES
from rdc.model.entries import EMPTY_LISTING, Listing, Metadata
from rdc.protocol.messages import Changed, Done, Renamed, Turn, TurnEnd, Watch
from rdc.protocol.messages.field_types import slice_listing
from rdc.session.runtime.commands import Conversation, Receive, Send
from rdc.session.source.conversation import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.tree.manifest import Manifest


class DirectoryChange(Record):
    """The changes in one directory."""

    path: bytes
    metadata: Metadata
    """The metadata of the directory itself."""
    listing: Listing
    """Entries that are new or different."""
    gone: tuple[bytes, ...]
    """Names that no longer exist, in order."""
    doubtful: tuple[int, ...] = ()
    """Rows of `listing`: files to compare by content, because size and mtime may hide a change."""


class Changes(Record):
    """The changes that one turn announces."""

    renames: Sequence[Renamed]
    directories: Sequence[DirectoryChange]
    """Each directory once, parents before their children."""
    entries: int
    """The number of entries of the whole tree."""
    files: int
    """The number of regular files among them."""
    read_errors: int
    """The number of directories that could not be read."""


class TurnSource(Source):
    """The source's conversation for one turn."""

    @property
    def manifest(self) -> Manifest:
        """All entries announced in this turn."""
        return self._description.manifest

    @property
    def read_errors(self) -> int:
        """The number of directories that could not be read."""
        return self._description.read_errors

    def run_first(self, *, again: bool, origin: bytes) -> Conversation[Done]:
        """Run the first turn of the session, which compares the trees. `again`, `origin`: see Watch."""
        yield Send(Watch(again, origin), 1)
        return (yield from self.run())

    def run_whole(self) -> Conversation[Done]:
        """Run a later turn that compares the trees."""
        yield Send(Turn(True), 0)
        return (yield from self.run())

    def run_changes(self, changes: Changes) -> Conversation[Done]:
        """Run a turn that announces changes and answers requests about them."""
        yield Send(Turn(False), 0)
        return (yield from self.announce(changes, 0))

    def announce(self, changes: Changes, round_: int) -> Conversation[Done]:
        """Announce changes in a turn that has begun, and answer requests about them."""
        for rename in changes.renames:
            yield Send(rename, round_)
        for directory in changes.directories:
            for part in self._parts(directory):
                yield Send(part, round_)
        yield Send(TurnEnd(changes.entries, changes.files, changes.read_errors), round_)
        while True:
            received = self._heard.popleft() if self._heard else (yield Receive())
            if received is None:
                continue
            if isinstance(received.message, Done):
                return received.message
            yield from self._serve(received)

    def _parts(self, directory: DirectoryChange) -> Iterator[Changed]:
        """Split the changes of one directory into messages, and add its entries to the manifest."""
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
    """Pack names, each ended by NUL, into pieces that fit a message."""
    part = bytearray()
    for name in names:
        if len(part) + len(name) + 1 > GONE_BYTES:
            yield bytes(part)
            part.clear()
        part += name + b"\0"
    if part:
        yield bytes(part)
