"""The source's side of a session that stays open: a comparison of the whole trees, then turn after turn."""

from __future__ import annotations

import os
import time

from blake3 import blake3

from rdc.errors import ExitCode, FileError, ProtocolError, RdcError, UsageError, printable
from rdc.files.facts.file_systems import file_system_of, path_of
from rdc.lean.records import replace
from rdc.lean.typed import TypeVar
from rdc.model.entries import Kind
from rdc.progress import Event, PlanKnown, Problem
from rdc.session.destination.change_turn import UNEXPECTED
from rdc.session.far.far_host import Traffic
from rdc.session.runtime.commands import Conversation, Idle
from rdc.session.source.turns import TurnSource
from rdc.session.trees.sites import ANYWHERE, Site
from rdc.session.trees.source_tree import SourceTree
from rdc.tree import filter_list
from rdc.tree.walk import Walk
from rdc.watching.announced_tree import AnnouncedTree, InodeStamps
from rdc.watching.events import Batch, Mounts, TreeEvents
from rdc.watching.listeners import FarUser, Listener, SourceRelay, Troubles
from rdc.watching.read_changes import ReadChanges, Retries
from rdc.watching.records import Halted, InStep, Limited, Resumed, WatchOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rdc.catalog.signer import FileSigner
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Done
    from rdc.session.serve import FollowedTree
    from rdc.tree.filters import FilterList
    from rdc.tree.manifest import Manifest


# The times at which a source is read without an inotify event: at intervals, or where events are missing.

LIMITED_SECONDS = 10
"""Seconds between two scans of a tree that is not watched completely."""

EARLY_SECONDS = 5.0
"""Seconds from a turn with errors to the next comparison of the whole trees; doubled each time, up to
--rescan."""


class Schedule:
    def __init__(self, clock: Callable[[], float], rescan: int) -> None:
        """clock: monotonic seconds. rescan: seconds between two comparisons, 0 for never."""
        self._clock = clock
        self._rescan = rescan
        self._early = EARLY_SECONDS
        self._compare: float | None = None
        self._look: float | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds until something is due; None for never."""
        moments = [moment for moment in (self._compare, self._look) if moment is not None]
        return min(moments) - self._clock() if moments else None

    @property
    def compare_due(self) -> bool:
        """Return whether the whole trees are due for a comparison."""
        return self._compare is not None and self._compare <= self._clock()

    def look_due(self) -> bool:
        """Return whether the whole source is due for a scan; True once each time."""
        if self._look is None or self._look > self._clock():
            return False
        self._look = self._clock() + LIMITED_SECONDS
        return True

    def limited(self) -> bool:
        """Note that some directories are not watched from now on. Return True on the first call."""
        if self._look is not None:
            return False
        self._look = self._clock() + LIMITED_SECONDS
        return True

    def compared(self) -> None:
        """Record a comparison of the trees."""
        self._compare = self._clock() + self._rescan if self._rescan else None

    def compare_now(self) -> None:
        self._compare = self._clock()

    def ended(self, *, whole: bool, errors: bool) -> None:
        """Record a turn. Errors make the next comparison come early."""
        if errors:
            early = self._clock() + self._early
            self._compare = early if self._compare is None else min(self._compare, early)
            self._early = min(2 * self._early, max(EARLY_SECONDS, float(self._rescan)))
        elif whole:
            self._early = EARLY_SECONDS


MARK_BYTES = 16


class Origin:
    """The followed directory. It outlives sessions and remembers what was at the path when entries were last
    announced."""

    def __init__(
        self, path: bytes, options: SyncOptions, site: Site = ANYWHERE, *, name: str = "", mark: bytes = b""
    ) -> None:
        """path: a path of `site`. name: the path in messages. mark: the directory that an earlier session
        followed, if it had entries; empty otherwise."""
        self._path = path
        self._site = site
        self._options = options
        self._name = name or printable(path)
        self.mark = mark
        """Opaque id of the directory that was last opened to be followed. It survives a new mount of the same
        file system if that has an id of its own."""
        self._mounts: Mounts | None = None
        self.announced = bool(mark)
        """True if entries were announced, so an empty directory is suspicious."""

    def open(self) -> SourceTree:
        """Return the tree, opened for one turn: an open tree could not be unmounted. FileError if it is
        gone."""
        # Every rdc that follows or is followed knows special files by their kinds.
        return SourceTree.open(self._path, self._site).showing(self._options.nodes)

    def accept(self) -> None:
        """Follow the directory that is now at the path. UsageError if it is no directory, FileError if
        nothing is there."""
        tree = self.open()
        try:
            if tree.root.given is not None:
                raise UsageError(f"{self._name}: a snapshot does not change, so there is nothing to watch")
            if tree.only is not None and tree.root.kind(tree.only) is not Kind.DIRECTORY:
                raise UsageError(
                    f"{self._name}: a directory is expected (a link to one needs a '/' at the end)"
                )
            self.mark = _mark(tree)
            self.close()
            self._mounts = Mounts(path_of(tree.root.directory(tree.only or b"", fresh=True).fd))
        finally:
            tree.root.release()

    def close(self) -> None:
        if self._mounts is not None:
            self._mounts.close()
            self._mounts = None

    def trouble(self) -> str | None:
        """Return why the path does not hold the same directory; None if it does."""
        problem, mark = self._look()
        if problem is not None:
            return problem
        if mark == self.mark:
            return self._unmounted()
        if self._options.delete:
            return f"{self._name} is another directory now (unmounted?); to follow this one, start again"
        return f"{self._name} is another directory now"

    def absence(self) -> str | None:
        """Return why the watch cannot continue; None if it can. With --delete the same directory must be
        back, without it any directory will do. In both cases it must not be empty."""
        problem = self.trouble() if self._options.delete else self._look()[0]
        if problem is None and self.announced and not self._options.force_empty and self._is_bare:
            return self.empty
        return problem

    def _unmounted(self) -> str | None:
        """Return why the source cannot be followed because a mount below it disappeared; None: it can.

        With --delete, such a mount's content must not look like deleted files.
        """
        missed = self._mounts.missed() if self._mounts is not None and self._options.delete else None
        if missed is None:
            return None
        return f"{printable(missed)} in {self._name} was unmounted; to follow without it, start again"

    def _look(self) -> tuple[str | None, bytes]:
        """Return the problem at the path if any, and the mark of the directory there."""
        try:
            tree = self.open()
        except RdcError as error:
            cause = error.__cause__
            reason = cause.strerror if isinstance(cause, OSError) else None
            return f"{self._name} is gone ({reason or error})", b""
        try:
            if tree.only is not None and tree.root.kind(tree.only) is not Kind.DIRECTORY:
                return f"{self._name} is no directory any more", b""
            return None, _mark(tree)
        except (RdcError, OSError) as error:
            return f"{self._name} cannot be opened: {error}", b""
        finally:
            tree.root.release()

    @property
    def empty(self) -> str:
        return f"{self._name} is empty; --force-empty follows it even so"

    @property
    def _is_bare(self) -> bool:
        """Return whether the directory is empty, as far as it can be read. Filtered entries count as
        content."""
        try:
            tree = self.open()
        except RdcError:
            return True
        try:
            return tree.root.listed(tree.only or b"").is_empty
        except RdcError as error:
            return error.code is ExitCode.VANISHED
        finally:
            tree.root.release()


def _mark(tree: SourceTree) -> bytes:
    """Return a hash of the file system's own id and the inode number, since a remote side needs neither."""
    directory = tree.root.directory(tree.only or b"", fresh=True)
    system, inode = file_system_of(directory.fd).id, os.fstat(directory.fd).st_ino
    return blake3(b"rdc origin %d %d" % (system, inode)).digest(length=MARK_BYTES)


T = TypeVar("T")

HALT_SECONDS = 0.5
"""Seconds between two checks for a source that is gone."""


class Follower:
    """One session about `origin`, with its events sent to `listener`."""

    def __init__(
        self,
        origin: Origin,
        options: WatchOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        listener: Listener,
        meter: Callable[[], Traffic],
        *,
        again: bool,
        stamps: Mapping[bytes, InodeStamps] | None = None,
        clock: Callable[[], float] = time.monotonic,
        make_events: Callable[[bytes], TreeEvents] = TreeEvents,
    ) -> None:
        """again: an earlier session brought the destination in sync. stamps: of the source at that time."""
        self._origin = origin
        self._options = options
        self._filters = filters
        self._secret = secret
        self._signer = signer
        self._listener = listener
        self._meter = meter
        self._again = again
        self._clock = clock
        self._make_events = make_events
        self._events: TreeEvents | None = None
        self._record: AnnouncedTree | None = None
        self._known_stamps = stamps
        self._armed: dict[bytes, InodeStamps] = {}
        """Stamps of the directories at the time when their watch began."""
        self._retries = Retries(clock)
        self._troubles = Troubles()
        self._schedule = Schedule(clock, options.rescan)
        self.in_step = False
        """True if the first comparison is complete."""

    def close(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    @property
    def stamps(self) -> Mapping[bytes, InodeStamps] | None:
        """Stamps of the source as the destination has it, for a later session."""
        return self._known_stamps if self._record is None else self._record.stamps

    # The session

    def run(self, opening: Conversation[None]) -> Conversation[None]:
        """Follow until an error, or until the process is stopped. opening: the messages up to the
        destination's Opened."""
        if self._origin.announced and (reason := self._origin.absence()) is not None:
            self._events = self._make_events(b"")
            yield from self._await(self._events, reason)
        self._origin.accept()
        yield from opening
        yield from self._with_tree(self._begin)
        while True:
            yield from self._pause()
            reason = self._origin.trouble()
            if reason is None:
                reason = yield from self._with_tree(self._turn)
            if reason is not None:
                yield from self._halt(reason)

    def _with_tree(self, act: Callable[[SourceTree], Conversation[T]]) -> Conversation[T]:
        """Keep the tree open only as long as needed, so the source can be unmounted between two turns."""
        tree = self._origin.open()
        try:
            return (yield from act(tree))
        finally:
            tree.root.release()

    def _begin(self, tree: SourceTree) -> Conversation[None]:
        self._arm(tree)
        yield from self._compare_all(tree, first=True)

    def _pause(self) -> Conversation[None]:
        """Wait for work."""
        events = self._watching()
        yield from self._listener.flush()
        while True:
            waits = [events.due(), self._retries.seconds, self._schedule.seconds]
            seconds = min((wait for wait in waits if wait is not None), default=None)
            if seconds is not None and seconds <= 0:
                return
            yield from _rest(events, seconds)

    # Turns

    def _turn(self, tree: SourceTree) -> Conversation[str | None]:
        """Run a turn if there is something to announce. The result says why nothing could be done, or is
        None."""
        if self._schedule.compare_due:
            yield from self._compare_all(tree, first=False)
            return None
        batch = self._watching().take()
        if self._schedule.look_due():
            batch = replace(batch, overflow=True)
        return (yield from self._send_changes(tree, batch))

    def _send_changes(self, tree: SourceTree, batch: Batch) -> Conversation[str | None]:
        record = self._known()
        self._troubles.begin(whole=False)
        scan = ReadChanges(tree, self._filters, record, self._watching(), self._retries, self._take)
        try:
            scan.read(batch)
        except FileError as error:
            self._watching().touch(tree.only or b"", tree=True)
            return str(error)
        self._check_limit()
        if scan.emptied and not self._options.sync.force_empty:
            self._watching().touch(tree.only or b"", tree=True)
            return self._origin.empty
        reason = self._origin.trouble()
        if reason is not None:
            # The state just read may be what an unmount left.
            self._watching().touch(tree.only or b"", tree=True)
            return reason
        changes = scan.changes(batch, rename=self._options.sync.delete)
        for path in set(self._retries.due()).difference(scan.announced):
            # Its directory was read, and the file is gone or now unreadable.
            if record.kind(path) is Kind.FILE:
                self._retries.add(path)
            else:
                self._retries.drop([path])
        if changes is None:
            record.acknowledge()
            self._schedule.ended(whole=False, errors=self._troubles.errors)
            return None
        began, meter = self._clock(), self._meter()
        done = yield from self._half(tree).run_changes(changes)
        self._retries.drop(path for path in scan.announced if path not in self._troubles.failed)
        if done.code is UNEXPECTED:
            self._schedule.compare_now()
        else:
            record.acknowledge()
        self._finish(done, began, meter, whole=False)
        return None

    def _compare_all(self, tree: SourceTree, *, first: bool) -> Conversation[None]:
        began, meter = self._clock(), Traffic(0, 0) if first else self._meter()
        self._troubles.begin(whole=True)
        self._retries.clear()
        half = self._half(tree)
        if first:
            done = yield from half.run_first(again=self._again, origin=self._origin.mark)
        else:
            done = yield from half.run_whole()
        self._begin_record(half.manifest)
        record = self._known()
        record.set_metadata(b"", tree.root.metadata(b""))
        self.in_step = True
        self._schedule.compared()
        self._finish(done, began, meter, whole=True)

    def _begin_record(self, manifest: Manifest) -> None:
        """Record what a comparison announced, with the stamps from before it."""
        known = self._known_stamps if self._record is None else self._record.stamps
        if known is None:
            known = self._armed
        # A comparison by size and mtime misses changes that only stamps show. The next turn handles them.
        missed = {path for path, stamps in self._armed.items() if known.get(path) != stamps}
        if self._record is not None:
            missed |= self._record.unacknowledged
        for path in missed:
            self._watching().touch(path)
        self._record = AnnouncedTree(manifest, known)
        self._armed = {}

    def _half(self, tree: SourceTree) -> TurnSource:
        return TurnSource(
            tree, self._filters, self._secret, self._signer, SourceRelay(self._take, self._hear)
        )

    def _finish(self, done: Done, began: float, before: Traffic, *, whole: bool) -> None:
        for path in self._troubles.failed:
            self._retries.add(path)
        self._schedule.ended(whole=whole, errors=self._troubles.errors)
        now, record = self._meter(), self._known()
        self._origin.announced = record.entries > 0
        self._listener.emit(
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
        """Handle an event of this side."""
        if not (isinstance(event, PlanKnown) and self.in_step) and self._troubles.take(event):
            self._listener.report(event)

    def _hear(self, event: Event) -> None:
        """Handle an event that the destination reported."""
        if self._troubles.take(event) and self._listener.is_near:
            self._listener.report(event)

    # The source

    def _halt(self, reason: str) -> Conversation[None]:
        mark = self._origin.mark
        yield from self._await(self._watching(), reason)
        self._origin.accept()
        yield from self._with_tree(self._rearm)
        if self._origin.mark != mark:
            # Nothing is known of a different directory, least of all its inodes.
            self._schedule.compare_now()
            self._known_stamps, self._record = self._armed, None
        self._armed = {}

    def _await(self, events: TreeEvents, reason: str) -> Conversation[None]:
        """Wait until the source is back."""
        self._listener.emit(Halted(reason))
        reported = reason
        while True:
            yield from self._listener.flush()
            yield from _rest(events, HALT_SECONDS)
            absence = self._origin.absence()
            if absence is None:
                break
            if absence != reported:
                reported = absence
                self._listener.emit(Halted(absence))
        self._listener.emit(Resumed())
        yield from self._listener.flush()

    def _rearm(self, tree: SourceTree) -> Conversation[None]:
        self._arm(tree)
        self._watching().touch(tree.only or b"", tree=True)
        yield from ()

    # Watching

    def _arm(self, tree: SourceTree) -> None:
        """Watch every directory before the first listing, so each later change is reported, however long the
        comparison takes."""
        self.close()
        start = tree.only or b""
        events = self._events = self._make_events(start)

        def watch(path: bytes) -> None:
            events.watch(tree.root, path)

        def note(event: Event) -> None:
            # The comparison reports such problems itself.
            if isinstance(event, Problem) and event.code not in (ExitCode.OK, ExitCode.VANISHED):
                events.missed(event.path_bytes)

        walk = Walk(
            tree.root,
            self._filters,
            note,
            start=start,
            known=watch,
        )
        self._armed = {path: InodeStamps.of(listing, inodes) for path, listing, inodes in walk}
        self._check_limit()

    def _check_limit(self) -> None:
        limit = self._watching().limit
        if limit is not None and self._schedule.limited():
            self._listener.emit(Limited(limit, LIMITED_SECONDS))

    def _watching(self) -> TreeEvents:
        if self._events is None:
            raise RuntimeError("the source is not watched yet")
        return self._events

    def _known(self) -> AnnouncedTree:
        if self._record is None:
            raise RuntimeError("the trees were not compared yet")
        return self._record


def _rest(events: TreeEvents, seconds: float | None) -> Conversation[None]:
    """Wait for an event at the source, for at most `seconds`."""
    received = yield Idle(events.bell, seconds)
    if received is not None:
        raise ProtocolError(f"a source was sent {type(received.message).__name__} between turns")
    events.quiet()


# The source's side of a watch that was dialled: it follows a directory for a remote user.


def following(tree: FollowedTree) -> Conversation[None]:
    """Return the rest of a session after the remote side's Follow."""
    options, mark = tree.options, tree.follow.origin
    origin = Origin(tree.path, options, tree.site, name=tree.name, mark=mark)
    follower = Follower(
        origin,
        WatchOptions(options, tree.follow.rescan),
        filter_list(options.rules),
        tree.secret,
        tree.signer,
        FarUser(),
        lambda: Traffic(0, 0),  # the user's side counts
        again=bool(mark),
    )
    try:
        yield from follower.run(_nothing())
    finally:
        follower.close()
        origin.close()


def _nothing() -> Conversation[None]:
    """Return an empty opening: Opened came before Follow."""
    yield from ()
