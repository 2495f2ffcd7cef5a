"""The source's side of a session that stays open: a comparison of the whole trees, then turn after turn."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, FileError, ProtocolError, UsageError, printable
from rdc.model.entries import Kind
from rdc.model.watch import Halted, InStep, Limited, Resumed
from rdc.progress import PlanKnown, Problem
from rdc.protocol.messages import Hello, Open, Opened, Role
from rdc.records import dataclass, replace
from rdc.session.changes import UNEXPECTED
from rdc.session.driver import Idle, Pace, Receive, Send
from rdc.session.news import News
from rdc.session.source import SourceTree
from rdc.session.turns import TurnSource
from rdc.tree.walk import PackedWalk
from rdc.watch.events import Batch, TreeEvents
from rdc.watch.record import Record
from rdc.watch.scan import Retries, Scan

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.signer import FileSigner
    from rdc.model.watch import WatchEvent, WatchOptions
    from rdc.progress import Event
    from rdc.protocol.messages import Done
    from rdc.session.driver import Conversation
    from rdc.tree.filters import FilterList

__all__ = ["Follower", "Meter"]

HALT_SECONDS = 0.5
"""Between two looks for a source that is gone."""

LIMITED_SECONDS = 10
"""Between two looks at a tree of which not every directory can be watched."""

EARLY_SECONDS = 5.0
"""After a turn with errors, until the whole trees are compared again; doubled each time, up to --rescan."""

NOTHING = Batch(frozenset(), frozenset(), (), overflow=False)
EVERYTHING = replace(NOTHING, overflow=True)


@dataclass(frozen=True, slots=True)
class Meter:
    """Bytes through the connection so far."""

    sent: int
    received: int


class Follower:
    """One session. Events go to `tell`, those of single entries to `report`."""

    def __init__(
        self,
        source: bytes,
        destination: bytes,
        options: WatchOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        report: Callable[[Event], None],
        tell: Callable[[WatchEvent], None],
        meter: Callable[[], Meter],
        *,
        again: bool,
        clock: Callable[[], float] = time.monotonic,
        make_events: Callable[[bytes], TreeEvents] = TreeEvents,
    ) -> None:
        """`again`: another session brought the destination in step before."""
        self._source = source
        self._destination = destination
        self._options = options
        self._filters = filters
        self._secret = secret
        self._signer = signer
        self._report = report
        self._tell = tell
        self._meter = meter
        self._again = again
        self._clock = clock
        self._make_events = make_events
        self._events: TreeEvents | None = None
        self._record: Record | None = None
        self._root: tuple[int, int] | None = None
        """Device and inode of the tree's top."""
        self._retries = Retries(clock)
        self._failed: set[bytes] = set()
        self._said: set[tuple[bytes, str]] = set()
        self._limited = False
        self._next_look: float | None = None
        self._next_whole: float | None = None
        self._early = EARLY_SECONDS
        self._errors = False
        self.in_step = False
        """The first comparison came to its end."""
        self.entries = 0
        """Of the source, as last told."""

    def close(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    # The session

    def run(self) -> Conversation[None]:
        """Never ends by itself: an error does it, or whoever stops the process."""
        tree = self._open()
        try:
            self._arm(tree)
            yield from self._dial()
            yield from self._compare_all(tree, first=True)
        finally:
            tree.root.close()
        while True:
            yield from self._pause()
            reason = self._trouble()
            if reason is None:
                reason = yield from self._turn()
            if reason is not None:
                yield from self._halt(reason)

    def _dial(self) -> Conversation[None]:
        options = self._options.sync
        yield Pace(options.bandwidth, options.timeout)
        yield Send(Open(Role.DESTINATION, self._destination, self._secret, options), 0)
        while True:
            received = yield Receive()
            if received is not None and isinstance(received.message, Opened):
                return
            if received is None or not isinstance(received.message, Hello):
                raise ProtocolError("expected Hello and Opened")

    def _pause(self) -> Conversation[None]:
        """Until something is to be done."""
        events = self._watching()
        while True:
            now = self._clock()
            waits = [
                events.due(),
                self._retries.seconds,
                None if self._next_look is None else self._next_look - now,
                None if self._next_whole is None else self._next_whole - now,
            ]
            seconds = min((wait for wait in waits if wait is not None), default=None)
            if seconds is not None and seconds <= 0:
                return
            received = yield Idle(events.bell, seconds)
            if received is not None:
                raise ProtocolError(f"a source was sent {type(received.message).__name__} between turns")
            events.quiet()

    # Turns

    def _turn(self) -> Conversation[str | None]:
        """One turn, where there is something to tell. Why nothing could be done, if so."""
        now = self._clock()
        tree = SourceTree.open(self._source)
        try:
            if self._next_whole is not None and self._next_whole <= now:
                yield from self._compare_all(tree, first=False)
                return None
            batch = self._watching().take()
            if self._next_look is not None and self._next_look <= now:
                self._next_look = now + LIMITED_SECONDS
                batch = replace(batch, overflow=True)
            return (yield from self._tell_changes(tree, batch))
        finally:
            tree.root.close()

    def _tell_changes(self, tree: SourceTree, batch: Batch) -> Conversation[str | None]:
        record = self._known()
        scan = Scan(tree, self._filters, record, self._watching(), self._retries, self._take)
        try:
            scan.read(batch)
        except FileError as error:
            self._watching().touch(tree.only or b"", tree=True)
            return str(error)
        self._check_limit()
        if scan.emptied and not self._options.sync.force_empty:
            self._watching().touch(tree.only or b"", tree=True)
            return f"{self._name} is empty; --force-empty follows all the same"
        changes = scan.changes(batch, rename=self._options.sync.delete)
        for path in set(self._retries.due()).difference(scan.told):
            # Its directory was read and it is no more, or could not be read now.
            if record.kind(path) is Kind.FILE:
                self._retries.add(path)
            else:
                self._retries.settle([path])
        if changes is None:
            return None
        began, meter = self._clock(), self._meter()
        self._failed.clear()
        done = yield from self._half(tree).run_changes(changes)
        self._retries.settle(path for path in scan.told if path not in self._failed)
        self._finish(done, began, meter, whole=False)
        if done.code is UNEXPECTED:
            self._next_whole = self._clock()
        return None

    def _compare_all(self, tree: SourceTree, *, first: bool) -> Conversation[None]:
        began, meter = self._clock(), Meter(0, 0) if first else self._meter()
        self._failed.clear()
        self._said.clear()
        self._errors = False
        self._retries.clear()
        half = self._half(tree)
        if first:
            done = yield from half.run_first(again=self._again)
        else:
            done = yield from half.run_whole()
        self._record = record = Record(half.manifest)
        record.settle(b"", tree.root.metadata(b""))
        self.in_step = True
        self._next_whole = self._clock() + self._options.rescan if self._options.rescan else None
        self._finish(done, began, meter, whole=True)

    def _half(self, tree: SourceTree) -> TurnSource:
        return TurnSource(tree, self._filters, self._secret, self._signer, News(self._take))

    def _finish(self, done: Done, began: float, before: Meter, *, whole: bool) -> None:
        for path in self._failed:
            self._retries.add(path)
        if self._errors:
            early = self._clock() + self._early
            self._next_whole = early if self._next_whole is None else min(self._next_whole, early)
            self._early = min(
                2 * self._early, max(EARLY_SECONDS, float(self._options.rescan or EARLY_SECONDS))
            )
        elif whole:
            self._early = EARLY_SECONDS
        self._errors = False
        now, record = self._meter(), self._known()
        self.entries = record.entries
        self._tell(
            InStep(
                whole,
                record.files,
                done.changed,
                done.deleted,
                now.sent - before.sent,
                now.received - before.received,
                self._clock() - began,
            )
        )

    def _take(self, event: Event) -> None:
        """Passes on what a turn tells, but a file that is being written is no error: it is tried again."""
        if isinstance(event, PlanKnown) and self.in_step:
            return
        if isinstance(event, Problem):
            if event.code is ExitCode.VANISHED and event.path:
                self._failed.add(event.path)
                return
            key = (event.path, event.message)
            self._errors = self._errors or event.code is not ExitCode.OK
            if key in self._said:
                return
            self._said.add(key)
        self._report(event)

    # The source

    @property
    def _name(self) -> str:
        return printable(self._source)

    def _open(self) -> SourceTree:
        tree = SourceTree.open(self._source)
        if tree.only is not None and tree.root.kind(tree.only) is not Kind.DIRECTORY:
            tree.root.close()
            raise UsageError(f"{self._name}: a directory is expected (a link to one needs a '/' at the end)")
        self._root = self._identity()
        return tree

    def _identity(self) -> tuple[int, int]:
        found = os.stat(self._source)
        return found.st_dev, found.st_ino

    def _trouble(self) -> str | None:
        """Why the source cannot be read as what it was."""
        try:
            found = os.stat(self._source)
        except OSError as error:
            return f"{self._name} is gone ({error.strerror})"
        if not stat.S_ISDIR(found.st_mode):
            return f"{self._name} is no directory any more"
        if (found.st_dev, found.st_ino) == self._root:
            return None
        if self._options.sync.delete:
            return f"{self._name} is another directory now (unmounted?); to follow this one, start again"
        return f"{self._name} is another directory now"

    def _halt(self, reason: str) -> Conversation[None]:
        """Until the source is back. Without --delete another directory in its place will do, when something
        is in it."""
        self._tell(Halted(reason))
        told = reason
        while True:
            received = yield Idle(self._watching().bell, HALT_SECONDS)
            if received is not None:
                raise ProtocolError(f"a source was sent {type(received.message).__name__} between turns")
            self._watching().quiet()
            if self._is_back():
                break
            reason = self._trouble() or told
            if reason != told:
                told = reason
                self._tell(Halted(reason))
        replaced = self._root != self._identity()
        tree = self._open()
        try:
            self._arm(tree)
        finally:
            tree.root.close()
        self._watching().touch(tree.only or b"", tree=True)
        if replaced:
            self._next_whole = self._clock()
        self._tell(Resumed())

    def _is_back(self) -> bool:
        try:
            if self._options.sync.delete and self._root != self._identity():
                return False
            with os.scandir(self._source) as entries:
                # What the filters leave out counts too: a scan will tell.
                if (
                    next(entries, None) is None
                    and self._known().entries
                    and not self._options.sync.force_empty
                ):
                    return False
        except OSError:
            return False
        return True

    # Watching

    def _arm(self, tree: SourceTree) -> None:
        """Watches every directory before anything is listed for the destination: what changes from here on is
        told, however long the comparison takes."""
        self.close()
        start = tree.only or b""
        events = self._events = self._make_events(start)

        def watch(path: bytes) -> None:
            events.watch(tree.root, path)

        for _ in PackedWalk(tree.root, self._filters, lambda _: None, start=start, known=watch):
            pass
        self._check_limit()

    def _check_limit(self) -> None:
        limit = self._watching().limit
        if limit is None:
            return
        if self._next_look is None:
            self._next_look = self._clock() + LIMITED_SECONDS
        if not self._limited:
            self._limited = True
            self._tell(Limited(limit, LIMITED_SECONDS))

    def _watching(self) -> TreeEvents:
        if self._events is None:
            raise RuntimeError("the source is not watched yet")
        return self._events

    def _known(self) -> Record:
        if self._record is None:
            raise RuntimeError("the trees were not compared yet")
        return self._record
