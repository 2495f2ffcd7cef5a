"""`rdc unite --watch`: run after run, each when a side is other than the last run left it.

Between two directories of this machine the runs are those of rdc.uniting.run. With another machine one
session stays open and has a meeting for each run; the other side watches its own tree meanwhile and says when
something changed there (rdc.uniting.far_side). A lost line is dialled again. Locks are held only during runs.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import ExitStack

from rdc.catalog.signer import FileSigner
from rdc.errors import ExitCode, ProtocolError, RdcError, StoppedError, UsageError
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.limits import DAEMON_TIMEOUT_SECONDS
from rdc.progress import STOP_SECONDS, Problem, check_stop
from rdc.protocol.messages.uniting import Subject
from rdc.session.runtime.commands import Conversation, Flush, Idle
from rdc.uniting.file_systems import opened_here
from rdc.uniting.meeting import MEETINGS, Again, ends_of
from rdc.uniting.merged_texts import Merging
from rdc.uniting.pages import rest_of, send_page
from rdc.uniting.records import UniteConflict, United, UniteReport
from rdc.uniting.remote import RemoteRun, hold_session
from rdc.uniting.run import unite
from rdc.uniting.sentry import Sentry
from rdc.uniting.state import pair_of_roots
from rdc.watching.follower import LIMITED_SECONDS, Schedule
from rdc.watching.records import Disconnected, Halted, Limited, Resumed
from rdc.watching.watch_loop import FINAL, FIRST_WAIT_SECONDS, LAST_WAIT_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.model.location import Location, RemoteShell
    from rdc.progress import Event, StopSignal
    from rdc.uniting.records import UniteEvent, UniteOptions, UniteReporter
    from rdc.watching.records import WatchEvent

LONGEST_REST_SECONDS = 30.0
"""The next run waits as long as the last one took, and no longer than this: runs take half of the time at
most, however fast a tree changes."""

LIMIT_BYTES = 4096
"""Bytes of the longest text in which the other side says why it is not watched everywhere."""

_LINE = {ExitCode.STREAM, ExitCode.UNREACHABLE, ExitCode.TIMEOUT, ExitCode.CONNECT_TIMEOUT}
"""Errors of a line, which is dialled again. After others the run is what has to be tried again."""


class Watch:
    """The runs of one watch, wherever the sides are, and what was reported of them."""

    def __init__(
        self,
        options: UniteOptions,
        reporter: UniteReporter,
        stop: StopSignal | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`clock` returns seconds that never go back, and `sleep` waits for a number of them."""
        self._options = options
        self._reporter = reporter
        self._stop = stop
        self._clock = clock
        self._sleep = sleep
        self._schedule = Schedule(clock, options.rescan)
        self._said: set[UniteConflict | Problem] = set()
        """Conflicts and problems of the last run. They are reported again once they change."""
        self._says: set[UniteConflict | Problem] = set()
        self._last: UniteReport | None = None
        self._changed = [0, 0]
        self._copied = [0, 0]
        self._halted = False
        self._rest_until = 0.0
        self._began = 0.0

    # Reports

    def report(self, event: UniteEvent | Event | WatchEvent, /) -> None:
        """Report an event of a run; a conflict or problem only if the last run had no such one."""
        if isinstance(event, (UniteConflict, Problem)):
            self._says.add(event)
            if event in self._said:
                return
        self._reporter(event)

    def emit(self, event: WatchEvent) -> None:
        """Report an event of the watch itself."""
        self._reporter(event)

    def begin(self) -> None:
        """Note that a run begins."""
        self._began = self._clock()
        self._says = set()

    def end(self, report: UniteReport) -> None:
        """Note that a run has ended, with `report`."""
        now = self._clock()
        self._rest_until = now + min(now - self._began, LONGEST_REST_SECONDS)
        self._said = self._says
        self._last = report
        for side, (changed, copied) in enumerate(
            ((report.left, report.left_bytes), (report.right, report.right_bytes))
        ):
            self._changed[side] += changed
            self._copied[side] += copied
        self._schedule.compared()
        self._schedule.ended(whole=True, errors=report.exit is ExitCode.PARTIAL)
        if self._halted:
            self._halted = False
            self.emit(Resumed())
        self._reporter(
            United(
                report.left, report.right, report.left_bytes, report.right_bytes, report.entries,
                report.conflicts, report.held, now - self._began,
            )
        )  # fmt: skip

    def total(self) -> UniteReport:
        """Return the sums of all runs, and what the last one left."""
        last = self._last
        if last is None:
            raise StoppedError
        left, right = self._changed
        left_bytes, right_bytes = self._copied
        return replace(
            last, left=left, right=right, left_bytes=left_bytes, right_bytes=right_bytes, first=False,
            exit=ExitCode.OK,
        )  # fmt: skip

    # The loop

    def run(self) -> UniteReport:
        """Run again and again until the user stops it. Raises RdcError if no run came to its end, or for what
        no wait repairs."""
        wait = FIRST_WAIT_SECONDS
        try:
            while True:
                before = self._last
                try:
                    self._hold()
                except StoppedError:
                    raise
                except RdcError as error:
                    if self._last is None or error.code in FINAL:
                        raise
                    if self._last is not before:
                        wait = FIRST_WAIT_SECONDS
                    # What a run began to report was reported, whatever became of it.
                    self._said |= self._says
                    if error.code in _LINE:
                        self.emit(Disconnected(str(error), wait))
                    else:
                        self._halted = True
                        self.emit(Halted(str(error)))
                    self._pause(wait)
                    wait = min(2 * wait, LAST_WAIT_SECONDS)
        except StoppedError:
            return self.total()
        finally:
            self._close()

    def _pause(self, seconds: float) -> None:
        """Wait. Raises StoppedError soon after the user stops it."""
        end = self._clock() + seconds
        check_stop(self._stop)
        while (left := end - self._clock()) > 0:
            self._sleep(min(left, STOP_SECONDS) if self._stop is not None else left)
            check_stop(self._stop)

    def _hold(self) -> None:
        """Run again and again. Raises RdcError."""
        raise NotImplementedError

    def _close(self) -> None:
        """End what watches the sides."""

    # Waiting

    def _check_limit(self, limit: str | None) -> None:
        """Compare at short intervals, too, if a side is not watched everywhere."""
        if limit is not None and self._schedule.limited():
            self.emit(Limited(limit, LIMITED_SECONDS))

    def _is_resting(self) -> bool:
        return self._clock() < self._rest_until

    def _is_due(self, sentries: Iterable[Sentry]) -> bool:
        """Return whether it is time for a run, as far as the sides here tell. Every sentry has looked
        then."""
        if self._is_resting():
            return False
        stirred = [sentry.is_stirred() for sentry in sentries]
        for sentry in sentries:
            self._check_limit(sentry.limit)
        return any(stirred) or self._schedule.compare_due or self._schedule.look_due()

    def _seconds(self, sentries: Iterable[Sentry]) -> float | None:
        """Return how long nothing is to be looked at, unless an event comes; None: for ever."""
        if self._is_resting():
            return self._rest_until - self._clock()
        waits = [self._schedule.seconds, *(sentry.due() for sentry in sentries)]
        return min((max(wait, 0.0) for wait in waits if wait is not None), default=None)


class LocalWatch(Watch):
    """Both sides are on this machine."""

    def __init__(
        self,
        left: bytes,
        right: bytes,
        options: UniteOptions,
        reporter: UniteReporter,
        stop: StopSignal | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(options, reporter, stop, clock=clock, sleep=sleep)
        self._sides = left, right
        self._sentries: list[Sentry] = []

    def _hold(self) -> None:
        while True:
            self.begin()
            self.end(unite(*self._sides, self._options, self.report, self._stop))
            if not self._sentries:
                pair = pair_of_roots(self._sides)
                self._sentries = [Sentry(_opener(side), pair) for side in self._sides]
            for sentry in self._sentries:
                sentry.forget_settled()
            self._wait()

    def _wait(self) -> None:
        """Wait until a run is due. Raises StoppedError."""
        while not self._is_due(self._sentries):
            check_stop(self._stop)
            seconds = self._seconds(self._sentries)
            if self._stop is not None:
                seconds = STOP_SECONDS if seconds is None else min(seconds, STOP_SECONDS)
            poll = select.poll()
            # The bells are for a time without events: within a burst the clock says when it ends.
            for sentry in self._sentries:
                if sentry.bell is not None:
                    poll.register(sentry.bell, select.POLLIN)
            poll.poll(None if seconds is None else seconds * 1000)
            for sentry in self._sentries:
                sentry.quiet()
        check_stop(self._stop)

    def _close(self) -> None:
        for sentry in self._sentries:
            sentry.close()


def _opener(path: bytes) -> Callable[[], Root]:
    return lambda: opened_here(path)


class RemoteWatch(Watch):
    """One side is on another machine."""

    def __init__(
        self,
        left: Location,
        right: Location,
        options: UniteOptions,
        reporter: UniteReporter,
        stop: StopSignal | None,
        shell: RemoteShell,
        keys: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__(options, reporter, stop)
        self._ends = ends_of(left, right)
        self._location = right if left.host is None else left
        self._shell = shell
        self._keys = keys
        self._sentry: Sentry | None = None

    def _hold(self) -> None:
        from rdc.session.far.far_host import far_host

        # Made for each session: its keys may have changed meanwhile.
        host = far_host(self._location, self._shell, self._keys, self._reporter)
        # After the first run a lost line is dialled again, whatever the remote shell's reason is.
        hold_session(host, self.conversation, self._stop, explained=lambda: self._last is None)

    def conversation(self, signer: FileSigner) -> Conversation[None]:
        """Hold this side of one session: meeting after meeting. Raises RdcError."""
        said, round_, meetings = Again(), None, 0
        merging = self._merging()
        self.begin()
        while True:
            meetings += 1
            with ExitStack() as stack:
                run = RemoteRun(
                    stack, self._ends, merging.options, merging.report, self._stop, signer, said,
                    timeout=DAEMON_TIMEOUT_SECONDS, round_=round_, merged=merging.merged,
                )  # fmt: skip
                found = yield from run.conversation()
            round_ = run.round
            if isinstance(found, Again):
                if meetings == MEETINGS:
                    raise ProtocolError("the sides came to no agreement on how to meet")
                said = found
                continue
            said, meetings = Again(), 0
            if merging.goes_on(found, run.pair, run.texts.get):
                continue
            self.end(merging.total(found))
            if self._sentry is None:
                self._sentry = Sentry(_opener(self._ends.path), run.pair)
            self._sentry.forget_settled()
            round_ = yield from self._wait(self._sentry, round_)
            merging = self._merging()
            self.begin()

    def _merging(self) -> Merging:
        return Merging(self._ends.path, self._ends.near, self._options, self.report)

    def _wait(self, sentry: Sentry, round_: int) -> Conversation[int]:
        """Wait until one of the sides is other than the last run left it. Return the round to go on with."""
        yield from send_page(Subject.WATCH, b"", round_)
        yield Flush()
        # Where this side cannot be looked at, there is no bell, and the next run says why.
        stirred, told = sentry.is_stirred(), False
        while not (self._is_due([sentry]) or (stirred and not (self._is_resting() and sentry.bell))):
            received = yield Idle(sentry.bell, self._seconds([sentry]))
            if received is None:
                sentry.quiet()
                continue
            subject, page, round_ = yield from rest_of(received)
            if subject is not Subject.STIRRED or told or len(page) > LIMIT_BYTES:
                raise ProtocolError(f"expected a page about STIRRED, found {subject.name}")
            if page:
                self._check_limit(page.decode("utf-8", "replace"))
            else:
                stirred = told = True
        return round_

    def _close(self) -> None:
        if self._sentry is not None:
            self._sentry.close()


def watch_united(
    left: Location,
    right: Location,
    options: UniteOptions,
    reporter: UniteReporter,
    stop: StopSignal | None,
    shell: RemoteShell,
    keys: str | os.PathLike[str] | None,
) -> UniteReport:
    """Keep two directories together until `stop` is set, and return the sums of all runs. One of the
    locations may have a host. Raises RdcError."""
    if options.dry_run:
        raise UsageError("--watch excludes --dry-run")
    if left.host is None and right.host is None:
        return LocalWatch(left.path, right.path, options, reporter, stop).run()
    return RemoteWatch(left, right, options, reporter, stop, shell, keys).run()
