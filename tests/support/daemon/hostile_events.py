"""Strangers who do everything a connection can do, in random orders, and reloads of rubbish: for a real
daemon that serves trusted clients meanwhile."""

from __future__ import annotations

import random
import re
import signal
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rdc.transport.tls import dialling_context
from tests.support.daemon.daemons import Daemon, certificate, wait_until
from tests.support.daemon.fuzzed_daemon import mutated
from tests.support.daemon.tls_pair import ring
from tests.support.trees.trees import describe, read_tree
from tests.support.wire.hostile_peer import private_kb

__all__ = ["HostileEvents", "Told"]

HELD = 150
"""Connections that strangers hold at most: more than the daemon's `handshakes`."""

HOSTS = 4
"""Addresses of strangers, from 127.0.0.2 on. The trusted client has 127.0.0.1: who floods pushes out only
those from the same address."""

GROWN_KB = 30_000
"""Private memory of the daemon, more than before, at most. The first settings of 100 KB take 12 MB, which
Python keeps for the next ones; it grows by nothing that counts events."""


@dataclass(frozen=True, slots=True)
class Told:
    """The counts of what was done to the daemon, which must survive it."""

    events: int
    failed_reloads: int
    reloads: int
    served: int
    """Syncs of trusted clients, every one of which ended well."""
    grown_kb: int


class HostileEvents:
    """Sends hostile events to `daemon`, which has a module `data`. `place`: a directory for what is fetched
    from it."""

    def __init__(self, daemon: Daemon, place: Path, seed: int) -> None:
        self._daemon = daemon
        self._place = place
        self._rng = random.Random(seed)
        self._held: list[socket.socket] = []
        self._good = daemon.config.read_bytes()
        self._read = 0
        self._reloads = {b"reloaded": 0, b"reload_failed": 0}
        self._asked = 0
        self._hello = _client_hello("carol")
        self.events = 0

    def run(self, events: int, reloads: int) -> Told:
        """Raise AssertionError if the daemon ended, grew, logged an internal error, or failed a trusted
        client; end by itself."""
        assert self._daemon.sync(self._daemon.url("data/"), self._place / "first").code == 0
        self._daemon.await_idle()
        before = private_kb(self._daemon.process.pid)
        over = threading.Event()
        ends: list[object] = []
        trusted = threading.Thread(target=self._sync, args=(over, ends))
        trusted.start()
        try:
            while self.events < events or self._asked < reloads:
                assert self._daemon.process.poll() is None, "the daemon ended"
                if self._asked < reloads * min(self.events, events) // events:
                    if self._read_log() < self._asked:
                        time.sleep(0.001)
                        continue
                    self._reload()
                self._event()
        finally:
            over.set()
            trusted.join()
            for sock in self._held:
                sock.close()
            self._held.clear()
        wait_until(lambda: self._read_log() == self._asked)
        failed = [end for end in ends if end is not None]
        assert not failed, failed
        assert ends, "nobody was served"
        assert self._daemon.logged("internal") == []
        self._daemon.await_idle()
        grown = private_kb(self._daemon.process.pid) - before
        assert grown < GROWN_KB, f"the daemon grew by {grown} KiB"
        assert self._daemon.sync(self._daemon.url("data/"), self._place / "last").code == 0
        return Told(
            self.events, self._reloads[b"reload_failed"], self._reloads[b"reloaded"], len(ends), grown
        )

    def _sync(self, over: threading.Event, ends: list[object]) -> None:
        """Adds None for each sync that ended well."""
        data = self._daemon.place.parent / "data"
        number = 0
        while not (over.is_set() and number):
            number += 1
            fetched = self._place / f"fetched{number % 8}"
            for who, words in (
                ("alice", (self._daemon.url("data/"), fetched)),
                ("bob", (f"{data}/", self._daemon.url(f"calm/{number % 8}"))),
            ):
                ended = self._daemon.sync(*words, who=who)
                ends.append(None if ended.code == 0 else ended)
            ends += [wrong for wrong in (describe(read_tree(data), read_tree(fetched)),) if wrong]

    # Connections

    def _event(self) -> None:
        chosen = self._rng.random()
        if chosen < 0.02:
            self._crowd()
        elif chosen < 0.35 or not self._held:
            self._knock()
        else:
            self._act(self._rng.randrange(len(self._held)))

    def _crowd(self) -> None:
        """Silent strangers for all slots; then each speaks while another one knocks."""
        silent = [sock for sock in (self._knock() for _ in range(64)) if sock is not None]
        for sock in silent:
            self._knock()
            self.events += 1
            with suppress(OSError):
                sock.send(b"\x16")

    def _knock(self) -> socket.socket | None:
        self.events += 1
        sock = socket.socket()
        try:
            sock.bind((f"127.0.0.{self._rng.randint(2, 1 + HOSTS)}", 0))
            sock.setblocking(False)
            with suppress(BlockingIOError):
                sock.connect(("127.0.0.1", self._daemon.port))
        except OSError:
            sock.close()
            return None
        self._held.append(sock)
        while len(self._held) > HELD:
            self._act(self._rng.randrange(len(self._held)), leave=True)
        return sock

    def _act(self, place: int, *, leave: bool = False) -> None:
        self.events += 1
        rng, sock = self._rng, self._held[place]
        says: list[Callable[[], bytes]] = [
            lambda: b"\x16",
            lambda: rng.randbytes(rng.choice((1, 5, 100, 20_000))),
            lambda: self._hello,
            lambda: self._hello[: rng.randrange(len(self._hello))],
            lambda: mutated(rng, self._hello),
        ]
        ending = 6 if leave else rng.randrange(9)
        with suppress(OSError):
            if ending < 5:
                sock.send(rng.choice(says)())
            elif ending == 5:
                sock.shutdown(socket.SHUT_WR)
            elif ending == 6 and rng.random() < 0.5:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif ending == 7:
                sock.recv(1 << 16)
        if ending in (6, 8):
            sock.close()
            self._held[place] = self._held[-1]
            self._held.pop()

    # Reloads

    def _reload(self) -> None:
        self._asked += 1
        self._daemon.config.write_bytes(self._good if self._asked % 10 == 0 else self._rubbish())
        self._daemon.signal(signal.SIGHUP)

    def _rubbish(self) -> bytes:
        """No settings, whatever it is."""
        rng = self._rng
        many = rng.choice((10, 5_000, 100_000))
        nested: list[Callable[[], bytes]] = [
            lambda: b"x = " + b"[" * many,
            lambda: b"x = " + b"{a=" * many,
            lambda: b"x = " + b"[" * many + b"]" * many,
            lambda: b"x" + b".x" * many + b" = 1",
            lambda: b"x = " + b"9" * many,
            lambda: b"[limits]\nmemory = 0x" + b"f" * many,
            lambda: self._good[: rng.randrange(len(self._good) // 2)],
            lambda: b"\xff" + self._good,
            lambda: self._good.replace(b"path", b"path\0"),
            lambda: rng.randbytes(many),
        ]
        return rng.randbytes(rng.randrange(3_000)) if rng.random() < 0.7 else rng.choice(nested)()

    def _read_log(self) -> int:
        """Reloads that the daemon has told of."""
        with (self._daemon.place / "log").open("rb") as log:
            log.seek(self._read)
            new = log.read()
        new = new[: new.rfind(b"\n") + 1]
        self._read += len(new)
        for event in re.findall(rb" event=(reloaded|reload_failed) ", new):
            self._reloads[event] += 1
        return sum(self._reloads.values())


def _client_hello(who: str) -> bytes:
    outgoing = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        dialling_context(ring(who), [certificate("server")]).wrap_bio(
            ssl.MemoryBIO(), outgoing
        ).do_handshake()
    return outgoing.read()
