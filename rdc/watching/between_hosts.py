"""A watch of which both trees are on other hosts: a relay, dialled again whenever it is lost."""

from __future__ import annotations

import time

from rdc.errors import ExitCode, ProtocolError
from rdc.protocol import messages
from rdc.protocol.connection import DIALECT, Received
from rdc.protocol.messages import Follow, Role
from rdc.session.far.far_host import Traffic
from rdc.session.far.relay import Hop, Relay, Terms, opened_hops, problem_at
from rdc.session.runtime.commands import Conversation, EventRelay, Send
from rdc.session.serve import greeting, send_open
from rdc.session.sync_run import new_secret
from rdc.session.trees.sites import announced, entry_of
from rdc.watching.listeners import FarSourceTurns, Listener
from rdc.watching.watch_loop import WatchLoop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class WatchJunction:
    """A Junction of one session; it ends by an error, or when the process is stopped.

    The source was sent Follow with its Open, so it takes Describe only after its Watch: that of the
    destination, which knows nothing of it, waits here.
    """

    def __init__(self, source: Hop, destination: Hop, user: Listener, *, asked: bytes, mark: bytes) -> None:
        """asked: what the source was asked for, in the form of announced(). mark: as in Follow."""
        self._source = source
        self._destination = destination
        self._user = user
        self._asked = asked
        self.mark = mark
        """The origin of the source's Watch, or of an earlier one."""
        self._watched = False
        """True if the source has sent Watch."""
        self._describe: Received | None = None
        """The destination's Describe, if it waits for Watch."""
        self.turns = FarSourceTurns(user, lambda: self.traffic, host=source.name)
        self.turns.begin(whole=True)
        self._events = EventRelay(self.turns.take)
        self._whole = True
        self.idle_since: float | None = None
        """The end of the last turn; None during a turn."""

    @property
    def over(self) -> bool:
        """Always False: only an error or a signal ends a watch."""
        return False

    @property
    def traffic(self) -> Traffic:
        """The bytes on both hops."""
        both = (self._source.traffic, self._destination.traffic)
        return Traffic(sum(each.sent for each in both), sum(each.received for each in both))

    def from_source(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Notice):
            # The source has already decided that it is to be seen.
            self._user.report(problem_at(self._source, message))
            return
        if isinstance(message, messages.Condition):
            self.turns.show(message)
            return
        if isinstance(message, messages.Watch):
            self.mark, self._watched = message.origin, True
            if self._describe is not None:
                self._source.pass_on(self._describe.message, self._describe.round)
                self._describe = None
        elif isinstance(message, messages.Start):
            announced(received, self._asked)
        elif isinstance(message, messages.Turn):
            self._whole, self.idle_since = message.whole, None
            self.turns.begin(whole=message.whole)
        elif isinstance(message, (messages.Manifest, messages.ListingEnd, messages.TurnEnd)):
            self.turns.files = message.files
        yield received

    def from_destination(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Follow):
            raise ProtocolError("the remote side asks to follow the source, which is this machine's affair")
        if isinstance(message, messages.Describe) and not self._watched:
            self._describe = received
            return
        if isinstance(message, messages.Notice):
            self.turns.take(problem_at(self._destination, message))
            if message.code is ExitCode.OK:
                return
            # The source decides what is tried again.
        elif self._events.take(message):
            return
        yield received
        if isinstance(message, messages.Done):
            self.idle_since = time.monotonic()
            self.turns.end(message, whole=self._whole)


class Between(WatchLoop):
    """The source's host follows its tree, and the destination's serves the turns."""

    _mark = b""
    """The origin of the last session's Watch."""
    _had_files = False
    """True if that session brought the destination in sync, and not empty."""

    def _session(self) -> None:
        own, sync = greeting(self._signer.params), self._options.sync
        secret = new_secret()

        def opening(role: Role) -> Conversation[None]:
            path = (self._source if role is Role.SOURCE else self._destination).path
            yield from send_open(role, path, secret, sync)
            if role is Role.SOURCE:
                yield Send(Follow(self._options.rescan, self._mark if self._had_files else b""), 0)

        terms = Terms(
            DIALECT,
            own.software,
            own.params,
            sync.bandwidth,
            sync.timeout,
            sync.timeout,
            opening,
            self._stop,
        )
        with opened_hops(self._host(self._source), self._host(self._destination), terms) as hops:
            junction = WatchJunction(*hops, self._user, asked=entry_of(self._source.inner), mark=self._mark)
            try:
                Relay(*hops, junction, timeout=sync.timeout, stop=self._stop).run()
            finally:
                self._mark = junction.mark
                if junction.turns.in_step:
                    self._had_files = junction.turns.files > 0
                self._sent += junction.traffic.sent
                self._received += junction.traffic.received
