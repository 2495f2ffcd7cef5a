"""A watch of which both trees are on other hosts: a relay, dialled again whenever it is lost."""

from __future__ import annotations

import os

from rdc.protocol.dialect import DIALECT
from rdc.protocol.messages import Follow, Role
from rdc.session.asking import send_open
from rdc.session.far.far_host import far_host
from rdc.session.far.opening import Terms, opened_hops
from rdc.session.far.relay import Relay
from rdc.session.runtime.commands import Send
from rdc.session.serve import greeting
from rdc.session.trees.announced_entries import entry_of
from rdc.watching.watch_junction import WatchJunction
from rdc.watching.watch_loop import WatchLoop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.model.location import Location, RemoteShell
    from rdc.model.watch import WatchOptions
    from rdc.progress import StopSignal
    from rdc.session.runtime.commands import Conversation
    from rdc.watching.reporter import WatchReporter

__all__ = ["Between"]

SECRET_BYTES = 16


class Between(WatchLoop):
    """The source's host follows its tree, and the destination's serves the turns."""

    _mark = b""
    """The origin of the last session's Watch."""
    _had_files = False
    """Whether that session brought the destination in step, and not empty."""

    def __init__(
        self,
        source: Location,
        destination: Location,
        options: WatchOptions,
        reporter: WatchReporter,
        signer: FileSigner,
        stop: StopSignal | None,
        *,
        shell: RemoteShell,
        keys: str | os.PathLike[str] | None,
    ) -> None:
        super().__init__(source, destination, options, reporter, signer, stop)
        self._shell = shell
        self._keys = keys

    def _session(self) -> None:
        own, sync = greeting(self._signer.params), self._options.sync
        secret = os.urandom(SECRET_BYTES)

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
        # Keys are read for each session: they may have changed meanwhile.
        source, destination = (
            far_host(location, self._shell, self._keys, self._take)
            for location in (self._source, self._destination)
        )
        with opened_hops(source, destination, terms) as hops:
            junction = WatchJunction(*hops, self._user, asked=entry_of(self._source.inner), mark=self._mark)
            try:
                Relay(*hops, junction, timeout=sync.timeout, stop=self._stop).run()
            finally:
                self._mark = junction.mark
                if junction.in_step:
                    self._had_files = junction.files > 0
                self._sent += junction.meter.sent
                self._received += junction.meter.received
