"""Damaged beginnings of sessions for a real daemon: of the TLS handshake, and of what is said inside."""

from __future__ import annotations

import random
import socket
import ssl
from collections import Counter
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from rdc.errors import ExitCode, RdcError
from rdc.transport.base import Exchange
from rdc.transport.keys import KeyRing
from rdc.transport.tls import TlsTransport, dialling_context
from tests.support.daemon.daemons import Daemon, wait_until
from tests.support.trees.trees import describe, read_tree, tree, write_tree
from tests.support.wire.hostile_peer import SESSION_KB, dial

__all__ = ["Fuzz", "mutated"]

BEGINNING = 4000
"""Bytes in which the messages of a small session begin; what follows is content."""

ENDS = {
    ExitCode.OK, ExitCode.USAGE, ExitCode.INCOMPATIBLE, ExitCode.REFUSED, ExitCode.FILE_IO, ExitCode.STREAM,
    ExitCode.PARTIAL, ExitCode.VANISHED, ExitCode.MAX_DELETE, ExitCode.TIMEOUT,
}  # fmt: skip
"""How a session may end that had a line of its own for it."""


def mutated(rng: random.Random, data: bytes) -> bytes:
    """One to three things that go wrong: bits, bytes, lengths, order, and what is missing."""
    damaged = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(min(len(damaged), BEGINNING) or 1)
        count = rng.choice((1, 1, 2, 4, 16, 300))
        match rng.randrange(7):
            case 0:
                damaged[at : at + 1] = bytes((damaged[at] ^ 1 << rng.randrange(8),)) if damaged else b""
            case 1:
                damaged[at : at + count] = rng.randbytes(count)
            case 2:
                del damaged[at : at + count]
            case 3:
                damaged[at:at] = rng.randbytes(count)
            case 4:
                damaged[at:at] = damaged[at : at + count]
            case 5:
                damaged[at : at + count] = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80")) * count
            case 6:
                damaged = damaged[: at + 1]
    return bytes(damaged)


class Fuzz:
    """Fuzzes `daemon`, which has a module `data` that may be written, in a place of its own."""

    def __init__(self, daemon: Daemon, place: Path, seed: int) -> None:
        self._daemon = daemon
        self._rng = random.Random(seed)
        self._outside = write_tree(place / "outside", tree({"secret": b"secret"}))
        here = write_tree(place / "here", tree({"a/f": b"f" * 3000, "g": bytes(range(256)) * 40, "h": b""}))
        self._beginnings = [
            self._recorded(f"{here}/", daemon.url("data/new")),
            self._recorded(f"{here}/", daemon.url("data/new"), "--checksum", "--delete"),
            self._recorded(daemon.url("data/new/"), place / "fetched"),
            self._recorded("-c", daemon.url("data/new/"), here),
        ]
        ring = KeyRing.read(daemon.keys_of("alice"))
        self._context = dialling_context(ring, ring.certificates)

    def attempt(self) -> None:
        """One connection, to its end."""
        if self._rng.random() < 0.25:
            self._handshake()
        else:
            self._session()

    def check(self) -> Counter[str]:
        """Raise AssertionError unless all ended as they may; return how many ended with which exit code."""
        daemon = self._daemon
        daemon.await_idle()
        assert daemon.process.poll() is None
        assert daemon.logged("internal") == []
        for end in daemon.logged("end"):
            assert "signal" not in end and int(end["rss_kb"]) < SESSION_KB, end
        codes = Counter(line["code"] for event in ("close", "refused") for line in daemon.logged(event))
        assert {int(code) for code in codes} <= set(map(int, ENDS)), codes
        assert codes.total() == len(daemon.logged("end"))
        assert describe(tree({"secret": b"secret"}), read_tree(self._outside)) == []
        return codes

    def _recorded(self, *words: str | Path) -> bytes:
        """Return the bytes that this side sends in a sync."""
        said, exchange = bytearray(), TlsTransport.exchange

        def listening(
            self: TlsTransport, outgoing: memoryview, want_input: bool, timeout: float | None
        ) -> Exchange:
            moved = exchange(self, outgoing, want_input, timeout)
            said.extend(outgoing[: moved.written])
            return moved

        with patch.object(TlsTransport, "exchange", listening):
            ended = self._daemon.sync("--no-compress", *words)
        assert ended.code == 0, (ended, self._daemon.log)
        return bytes(said)

    def _session(self) -> None:
        rest = memoryview(mutated(self._rng, self._rng.choice(self._beginnings)))
        transport = dial(self._daemon)
        with suppress(RdcError):
            while rest:
                rest = rest[transport.exchange(rest, True, 5).written :]
            transport.close_write()
            while not transport.exchange(memoryview(b""), True, 5).eof:
                pass
        transport.close()

    def _handshake(self) -> None:
        outgoing = ssl.MemoryBIO()
        with suppress(ssl.SSLWantReadError):
            self._context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
        with socket.create_connection(("127.0.0.1", self._daemon.port), 10) as sock, suppress(OSError):
            sock.sendall(mutated(self._rng, outgoing.read()))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(1 << 16):
                pass
        wait_until(lambda: self._daemon.process.poll() is None)
