"""A watch of which both trees are on other hosts: a relay, dialled again whenever it is lost."""

from __future__ import annotations

from rdc.protocol.connection import DIALECT
from rdc.protocol.messages import Follow, Role
from rdc.session.asking import send_open
from rdc.session.far.opening import Terms, opened_hops
from rdc.session.far.relay import Relay
from rdc.session.runtime.commands import Send
from rdc.session.serve import greeting
from rdc.session.sync_run import new_secret
from rdc.session.trees.announced_entries import entry_of
from rdc.watching.watch_junction import WatchJunction
from rdc.watching.watch_loop import WatchLoop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.runtime.commands import Conversation


class Between(WatchLoop):
    """The source's host follows its tree, and the destination's serves the turns."""

    _mark = b""
    """The origin of the last session's Watch."""
    _had_files = False
    """Whether that session brought the destination in step, and not empty."""

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
