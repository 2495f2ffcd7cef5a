"""--remove-source-files at the destination: tells the source which of its entries are here and durable."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, FileError, ProtocolError, RdcError
from rdc.files.base.durability import sync_file_systems
from rdc.files.facts.directory_mark import directory_mark
from rdc.limits.wire import FILES_PER_MESSAGE
from rdc.model.entries import NODES, Kind
from rdc.plan.equal_times import with_equal_times
from rdc.progress import Problem
from rdc.protocol.messages import Landed, Removed
from rdc.session.runtime.commands import Receive, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.session.runtime.commands import Conversation
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.tree.manifest import Manifest

__all__ = ["ConfirmedFiles"]

UNANSWERED = 64
"""Messages that may wait for their answers."""


class ConfirmedFiles:
    """Confirms entries when a run has made all its changes.

    The destination's tree is read once more. An entry is confirmed if it is as it was listed, and if the run
    met no problem with it. So what an option left alone is not confirmed, and a file that was not compared
    by its content is confirmed as the run took it for equal, by size and mtime.
    """

    def __init__(
        self, root: Root, wanted: Manifest, preserved: Preserved, events: EventRelay, options: SyncOptions
    ) -> None:
        """`wanted`: what the source listed."""
        self._root = root
        self._wanted = wanted
        self._preserved = preserved
        self._events = events
        self._options = options
        self._durable: set[int] = set()
        """Devices whose writes are durable."""
        self._waiting = 0

    def confirm(self, round_: int) -> Conversation[int]:
        """Tells the source, and waits for its answers. Returns the round to go on with."""
        if self._events.is_uncertain(b""):
            return round_  # what failed is not known
        for number, path in enumerate(self._wanted.directories):
            rows = self._landed(number, path)
            mark = self._mark(path) if rows else None
            if mark is None:
                continue
            for at in range(0, len(rows), FILES_PER_MESSAGE):
                yield Send(Landed(tuple(rows[at : at + FILES_PER_MESSAGE]), mark), round_)
                self._waiting += 1
                while self._waiting >= UNANSWERED:
                    round_ = yield from self._answer(round_)
        while self._waiting:
            round_ = yield from self._answer(round_)
        return round_

    def _answer(self, round_: int) -> Conversation[int]:
        received = yield Receive()
        if received is None:
            return round_
        if isinstance(received.message, Removed):
            self._waiting -= 1
        elif not self._events.take(received.message):
            raise ProtocolError(f"expected Removed, found {type(received.message).__name__}")
        return max(round_, received.round + 1)

    def _landed(self, number: int, path: bytes) -> list[int]:
        """The rows of a directory whose entries are here."""
        wanted = self._wanted.listing(number)
        try:
            existing = self._root.list(path)
        except RdcError:
            return []  # the run has reported it
        wanted = with_equal_times(wanted, existing, self._options)
        first, prefix = self._wanted.firsts[number], path + b"/" if path else b""
        return [
            first + row
            for row in self._equal_rows(wanted, existing)
            if not self._events.is_uncertain(prefix + wanted.names[row])
        ]

    def _equal_rows(self, wanted: Listing, existing: Listing) -> Iterator[int]:
        rows = {name: row for row, name in enumerate(existing.names)}
        links, existing_links = wanted.links(), existing.links()
        for row, (name, kind) in enumerate(zip(wanted.names, wanted.kinds, strict=True)):
            here = rows.get(name)
            if here is None or existing.kinds[here] != kind:
                continue
            if kind == Kind.SYMLINK:
                equal = links[row] == existing_links[here]
            elif kind == Kind.FILE:
                if self._options.is_left_for_size(wanted.sizes[row]):
                    continue
                # Where mtimes are not preserved, the run has compared or fetched the content of each file
                # that no option left alone.
                compared = not self._preserved.is_timed(kind) and not self._options.narrows
                equal = wanted.sizes[row] == existing.sizes[here] and (
                    compared or self._preserved.same_time(wanted.mtimes[row], existing.mtimes[here])
                )
            else:
                equal = kind in NODES and wanted.sizes[row] == existing.sizes[here]
            if equal:
                yield row

    def _mark(self, path: bytes) -> bytes | None:
        """The mark of a directory, whose file system is durable from then on; None if that failed."""
        try:
            fd = os.open(
                b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._root.directory(path).fd
            )
        except OSError as error:
            self._failed(path, error)
            return None
        except FileError as error:
            self._events.report(Problem(error.code, path, str(error)))
            return None
        try:
            device = os.fstat(fd).st_dev
            if device not in self._durable:
                if not sync_file_systems((fd,)):
                    os.sync()
                    os.fsync(fd)
                self._durable.add(device)
            return directory_mark(fd)
        except OSError as error:
            self._failed(path, error)
            return None
        finally:
            os.close(fd)

    def _failed(self, path: bytes, error: OSError) -> None:
        text = str(self._root.failure(error, path, "make it durable"))
        self._events.report(Problem(ExitCode.PARTIAL, path, f"{text}; the source keeps what is in it"))
