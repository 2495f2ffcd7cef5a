"""A source that is followed in one thread: both sides in turns, and a clock that jumps."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.model.sync import SyncOptions
from rdc.progress import Event, Problem
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Open, Opened, Role
from rdc.session.far.far_host import Traffic
from rdc.session.runtime.commands import Conversation, Receive, Send
from rdc.session.runtime.driver import Runner
from rdc.session.serve import answer, greeting
from rdc.tree import filter_list
from rdc.watching.announced_tree import InodeStamps
from rdc.watching.events import TreeEvents
from rdc.watching.follower import Follower, Origin
from rdc.watching.listeners import NearUser
from rdc.watching.records import WatchEvent, WatchOptions
from tests.support.running.run_pair import End

__all__ = ["Followed"]

SECRET = b"sixteen bytes of"

MOST_QUESTIONS = 20_000
"""How often the time may be asked for in one session: who has nothing to do and asks on is stuck."""


class Followed:
    """One session. Nothing is told by inotify, whose events come when they come: tests say what changed."""

    def __init__(
        self,
        source: Path,
        destination: Path,
        sync: SyncOptions | None = None,
        *,
        rescan: int = 0,
        origin: Origin | None = None,
        stamps: Mapping[bytes, InodeStamps] | None = None,
        ends: tuple[Connection, End] | None = None,
    ) -> None:
        """ends: the connection of the source's side, and the whole other side."""
        self.options = sync or SyncOptions(fsync=False, delete=True)
        self.now = 1_000.0
        self._asked = 0
        self.told: list[WatchEvent] = []
        self.events: list[Event] = []
        self.tree_events: TreeEvents | None = None
        self.limit: str | None = None
        """Why not all directories can be watched."""
        self.origin = origin or Origin(os.fsencode(source) + b"/", self.options)
        self._destination = os.fsencode(destination) + b"/"
        self._signers = [FileSigner(catalog=NoCatalog()) for _ in range(2)]
        hello = greeting(self._signers[0].params)
        near = ends[0] if ends else Connection(True, hello)
        self.follower = Follower(
            self.origin,
            WatchOptions(self.options, rescan),
            filter_list(self.options.rules),
            SECRET,
            self._signers[0],
            NearUser(self.events.append, self.told.append),
            lambda: Traffic(near.bytes_sent, near.bytes_received),
            again=stamps is not None,
            stamps=stamps,
            clock=self._clock,
            make_events=self._make_events,
        )
        self._near = Runner(self.follower.run(self._opening()), near)
        self._far: End = ends[1] if ends else Runner(answer(self._signers[1]), Connection(False, hello))

    def _clock(self) -> float:
        self._asked += 1
        assert self._asked < MOST_QUESTIONS, "it never rests"
        return self.now

    def _make_events(self, start: bytes) -> TreeEvents:
        self.tree_events = TreeEvents(start, clock=self._clock, running=False)
        self.tree_events.limit = self.limit
        return self.tree_events

    def _opening(self) -> Conversation[None]:
        yield Send(Open(Role.DESTINATION, self._destination, SECRET, self.options), 0)
        while True:
            received = yield Receive()
            assert received is not None
            if isinstance(received.message, Opened):
                return

    def __enter__(self) -> Followed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.follower.close()
        self.origin.close()
        for signer in self._signers:
            signer.close()

    @property
    def problems(self) -> list[Problem]:
        return [event for event in self.events if isinstance(event, Problem)]

    @property
    def waits(self) -> float | None:
        """Seconds until the source's side would go on by itself; None: only an event lets it."""
        assert self._near.idle is not None
        return self._near.idle.seconds

    def rest(self) -> None:
        """Advance both sides until both wait, and only time or an event lets them go on."""
        quiet = 0
        while quiet < 2:
            moved = False
            for runner, other in ((self._near, self._far), (self._far, self._near)):
                runner.advance(polled=True)
                runner.connection.flush()
                data = runner.connection.data_to_send()
                other.connection.receive_data(data)
                moved = moved or bool(data)
            quiet = 0 if moved else quiet + 1

    def pass_by(self, seconds: float) -> None:
        """Time passes, and the source's side wakes as often as it wanted to."""
        end = self.now + seconds
        while True:
            self.rest()
            wait = self.waits
            if wait is None or self.now + wait > end:
                break
            self.now += wait
            self._near.rested = True
        self.now = end
        self._near.rested = True
        self.rest()

    def change(self, *paths: bytes) -> list[WatchEvent]:
        """Report a change in these directories; return what the user was told of it."""
        before = len(self.told)
        assert self.tree_events is not None
        for path in paths:
            self.tree_events.touch(path)
        self._near.rested = True
        self.rest()
        self.pass_by(1.0)
        return self.told[before:]
