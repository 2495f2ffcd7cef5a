"""`watch`: a session that is dialled again whenever its remote side is lost, until the user stops it."""

from __future__ import annotations

import contextlib
import os
import time

from rdc.catalog.catalog import opened_catalog
from rdc.catalog.signer import FileSigner
from rdc.catalog.store import UserCatalog
from rdc.errors import ExitCode, ProtocolError, RdcError, StoppedError, StreamError, UsageError
from rdc.files.base.store_guard import check_local
from rdc.lean.records import replace
from rdc.limits import DAEMON_TIMEOUT_SECONDS
from rdc.model.selection import has_rule_files
from rdc.model.sync import OPTIONS, SyncOptions
from rdc.progress import STOP_SECONDS, Event, Problem, StopSignal, check_stop
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Condition, Describe, Follow, Hello, Opened, Role, Watch
from rdc.session.destination.change_turn import LiveDestination
from rdc.session.runtime.commands import Conversation, EventRelay, Idle, Pace, Receive, Send, entries_memory
from rdc.session.runtime.driver import run
from rdc.session.serve import greeting, send_open
from rdc.session.sync_run import new_secret
from rdc.session.transfer.destination import Terms
from rdc.session.trees.destination_root import keeps, wants_listing
from rdc.session.trees.sites import ANYWHERE, entry_of
from rdc.session.trees.source_tree import check_overlap
from rdc.tree import filter_list
from rdc.watching.follower import HALT_SECONDS, Follower, Origin
from rdc.watching.listeners import FarSourceTurns, Listener, SourceRelay
from rdc.watching.records import Halted, Resumed, WatchOptions, WatchReport, WatchReporter
from rdc.watching.watch_loop import WatchLoop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rdc.catalog.store import SignatureStore
    from rdc.model.location import Location, RemoteShell
    from rdc.protocol.messages import Done, Message
    from rdc.session.far.far_host import Traffic
    from rdc.tree.filters import FilterList
    from rdc.watching.announced_tree import InodeStamps


# The destination's side of a watch that it dialled: a far source is followed, and the user here is informed.


class Receiver:
    """One session; an Audience of its turns. user: receives their events."""

    def __init__(
        self,
        path: bytes,
        options: WatchOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        user: Listener,
        traffic: Callable[[], Traffic],
        *,
        asked: bytes,
        origin: bytes,
        again: bool,
    ) -> None:
        """asked: requested of the source, in the form of announced(). origin: the directory that an earlier
        session followed, empty without one. again: that session brought `path` in sync, and not empty."""
        self._path = path
        self._asked = asked
        self._options = options
        self._filters = filters
        self._secret = secret
        self._signer = signer
        self._user = user
        self.origin = origin
        self._again = again
        self.turns = FarSourceTurns(user, traffic)

    def run(self, opening: Conversation[None]) -> Conversation[None]:
        """Receive until an error, or until the process is stopped. opening: the messages up to the source's
        Opened."""
        options = self._options.sync
        destination = LiveDestination(
            self._path,
            ANYWHERE,
            Terms(options, self._filters, self._secret, self._signer),
            whole=wants_listing(self._path, options),
            preserved=keeps(self._path, options, catalog=self._signer.catalog),
            audience=self,
            asked=self._asked,
        )
        if self._again:
            destination.check_again()
        yield from opening
        yield Send(Follow(self._options.rescan, self.origin if self._again else b""), 0)
        while (received := (yield Idle())) is not None:
            message = received.message
            if isinstance(message, Watch):
                self.origin = message.origin
                yield Send(Describe(destination.whole, destination.preserved), received.round + 1)
                yield from destination.run(message)
                break
            if not self.hear(message):
                raise ProtocolError(f"expected Watch, found {type(message).__name__}")
        # A source asked to follow never ends the session itself.
        raise StreamError("the remote side ended the session")

    # As an Audience

    def begins(self) -> None:
        self.turns.begin(whole=False)

    def events(self) -> EventRelay:
        return _TurnRelay(self.turns.take, self._user.report)

    def ended(self, done: Done, *, whole: bool, files: int) -> None:
        self.turns.files = files
        self.turns.end(done, whole=whole)

    def hear(self, message: Message) -> bool:
        if isinstance(message, Condition):
            self.turns.show(message)
            return True
        return self.events().take(message)


class _TurnRelay(SourceRelay):
    """Also reports this side's problems to the source, which decides about retries."""

    def report(self, event: Event, *, far: bool = False) -> None:
        super().report(event, far=far)
        if not far and isinstance(event, Problem) and event.code is not ExitCode.OK:
            self.waiting.append(event)


def run_watch(
    source: Location,
    destination: Location,
    options: WatchOptions,
    *,
    shell: RemoteShell,
    reporter: WatchReporter,
    catalog: SignatureStore | UserCatalog | None,
    keys: str | os.PathLike[str] | None,
    stop: StopSignal | None,
    sleep: Callable[[float], None],
) -> WatchReport:
    """Keep `destination` in sync with the directory `source`, as `rdc.watch` does."""
    between = source.host is not None and destination.host is not None
    _check_watched(options.sync)
    _check_apart(source, destination, options.sync)
    far = destination if source.host is None else source
    if far.host is not None:
        # Without a limit TCP would notice a dead connection after a quarter of an hour.
        timeout = options.sync.timeout or DAEMON_TIMEOUT_SECONDS
        options = replace(options, sync=replace(options.sync, timeout=timeout))
    with opened_catalog(None if between else catalog, reporter) as store:
        signer = FileSigner(catalog=store)
        kind: type[WatchLoop] = _FromHere if source.host is None else _FromThere
        if between:
            from rdc.watching.between_hosts import Between

            kind = Between
        watch_ = kind(source, destination, options, reporter, signer, stop, shell, keys)
        try:
            with contextlib.suppress(KeyboardInterrupt, StoppedError), contextlib.closing(signer):
                watch_.run(_stoppable(sleep, stop))
        finally:
            watch_.close()
        return watch_.report()


def _check_watched(options: SyncOptions) -> None:
    """Raise UsageError for what a watch does not take."""
    for name, declared in OPTIONS.items():
        value = getattr(options, name)
        if not declared.watch and value != declared.default:
            raise UsageError(f"rdc watch does not take {declared.spelling(value)}; rdc sync does")
    if has_rule_files(options.rules):
        raise UsageError(
            "rdc watch reads no rules from files of the tree, as ':', -F, -C, --gitignore and"
            " --exclude-caches do; rdc sync does"
        )


def _check_apart(source: Location, destination: Location, options: SyncOptions) -> None:
    """Raise UsageError if one tree contains the other, as far as this machine can know."""
    if source.host is None and destination.host is None:
        check_local(source.path, destination.path)
        check_overlap(source.path, destination.path, filter_list(options.rules), delete=options.delete)
    elif source.host is not None and destination.host is not None:
        from rdc.session.between_hosts import check_between

        check_between((source,), destination, options)


def _stoppable(sleep: Callable[[float], None], stop: StopSignal | None) -> Callable[[float], None]:
    """Return a sleep that raises StoppedError soon after `stop` is set."""
    if stop is None:
        return sleep

    def sleep_in_steps(seconds: float) -> None:
        end = time.monotonic() + seconds
        check_stop(stop)
        while (left := end - time.monotonic()) > 0:
            sleep(min(left, STOP_SECONDS))
            check_stop(stop)

    return sleep_in_steps


class _Dialled(WatchLoop):
    """A watch with one end in this process, and the other one dialled."""

    def _conversation(self, meter: Callable[[], Traffic]) -> Conversation[None]:
        raise NotImplementedError

    def _session(self) -> None:
        far, compress = self._far, self._options.sync.compress
        compress = compress or (compress is None and far.host is not None)
        connection = Connection(True, greeting(self._signer.params), compress=compress)
        connection.entries.limit = entries_memory(self._options.sync.max_memory)
        host = self._host(far)
        wire = host.dial()
        try:
            run(
                self._conversation(lambda: host.traffic(connection, wire)),
                connection,
                wire,
                stop=self._stop,
            )
        except StoppedError:
            raise
        except RdcError as error:
            # Later errors come from a line that was lost: another session is dialled.
            is_plain = self._in_step and far.host is not None
            raise error if is_plain else host.explained(error, wire) from error
        finally:
            wire.close()
            total = host.traffic(connection, wire)
            self._sent += total.sent
            self._received += total.received

    @property
    def _far(self) -> Location:
        """The tree at the dialled end."""
        return self._destination if self._source.host is None else self._source

    def _opening(self, role: Role, path: bytes, secret: bytes) -> Conversation[None]:
        options = self._options.sync
        yield Pace(options.bandwidth, options.timeout)
        yield from send_open(role, path, secret, options)
        while True:
            received = yield Receive()
            if received is not None and isinstance(received.message, Opened):
                return
            if received is None or not isinstance(received.message, Hello):
                raise ProtocolError("expected Hello and Opened")


class _FromHere(_Dialled):
    """A watch whose source is on this machine, followed by this process."""

    _origin: Origin | None = None
    _stamps: Mapping[bytes, InodeStamps] | None = None

    def _prepare(self, sleep: Callable[[float], None]) -> None:
        """Do not dial for a source that is gone, nor ask for a password after a mistyped path."""
        if self._origin is None:
            origin = Origin(self._source.path, self._options.sync)
            origin.accept()
            self._origin = origin
            return
        reported = None
        while (reason := self._origin.absence()) is not None:
            if reason != reported:
                reported = reason
                self._emit(Halted(reason))
            sleep(HALT_SECONDS)
        if reported is not None:
            self._emit(Resumed())

    def _conversation(self, meter: Callable[[], Traffic]) -> Conversation[None]:
        if self._origin is None:
            raise RuntimeError("a session before it was prepared")
        secret = new_secret()
        again = self._in_step and self._origin.announced
        follower = Follower(
            self._origin,
            self._options,
            self._filters,
            secret,
            self._signer,
            self._user,
            meter,
            again=again,
            stamps=self._stamps,
        )
        try:
            yield from follower.run(self._opening(Role.DESTINATION, self._destination.path, secret))
        finally:
            follower.close()
            self._stamps = follower.stamps


class _FromThere(_Dialled):
    """A watch whose source is on another machine, followed there."""

    _mark = b""
    _had_files = False

    def _conversation(self, meter: Callable[[], Traffic]) -> Conversation[None]:
        secret = new_secret()
        receiver = Receiver(
            self._destination.path,
            self._options,
            self._filters,
            secret,
            self._signer,
            self._user,
            meter,
            asked=entry_of(self._source.inner),
            origin=self._mark,
            again=self._had_files,
        )
        try:
            yield from receiver.run(self._opening(Role.SOURCE, self._source.path, secret))
        finally:
            self._mark = receiver.origin
            if receiver.turns.in_step:
                self._had_files = receiver.turns.files > 0
