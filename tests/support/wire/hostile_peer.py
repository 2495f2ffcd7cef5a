"""A daemon's peer that sends forbidden messages, and a well-behaved one beside it."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import rdc.session.runtime.driver
import rdc.session.source.range_answers
from rdc.chunking import SYNC_PARAMS
from rdc.errors import RdcError
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Open, Role
from rdc.protocol.wire.fields import encode_varint
from rdc.protocol.wire.stream import frame_head
from rdc.session.runtime.driver import TokenBucket
from rdc.session.serve import greeting
from rdc.transport.keys import KeyRing
from rdc.transport.tls import TlsTransport, connect
from tests.support.daemon.daemons import WAIT_SECONDS, Daemon, running_daemon, wait_until
from tests.support.running.syncing import Ended

__all__ = [
    "SESSION_KB",
    "Client",
    "answer_of",
    "dial",
    "framed",
    "greeted",
    "neighbour",
    "opened",
    "opening",
    "private_kb",
    "raw_block",
    "send_all",
    "serving",
]

SESSION_KB = 120_000
"""The memory that a session with a hostile peer may take, with all that it shares with the daemon: 50 MB of
program, windows and queues."""


@contextmanager
def serving(data: Path, top: str = "", module: str = "") -> Iterator[Daemon]:
    """A daemon with the module `data`, which alice and bob may write, and `calm` beside it."""
    (data.parent / "calm").mkdir(exist_ok=True)
    modules = "".join(
        f'[modules.{name}]\npath = "{path}"\nallow = ["alice", "bob"]\nread-only = false\n{more}'
        for name, path, more in (("calm", data.parent / "calm", ""), ("data", data, module))
    )
    with running_daemon(data.parent / "daemon", modules, top=top) as running:
        yield running


def dial(daemon: Daemon, who: str = "alice") -> TlsTransport:
    """A connection whose handshake is done, and on which nothing was said."""
    ring = KeyRing.read(daemon.keys_of(who))
    return connect("127.0.0.1", daemon.port, ring, ring.peers("127.0.0.1", daemon.port, default_port=0))


def opening(role: Role = Role.SOURCE, path: bytes = b"data", options: SyncOptions | None = None) -> bytes:
    """Hello and Open, as they travel; `role` is the daemon's."""
    connection = Connection(True, greeting(SYNC_PARAMS), compress=False)
    connection.send(Open(role, path, b"s" * 16, options or SyncOptions()), 0)
    connection.flush()
    return connection.data_to_send()


def greeted() -> bytes:
    """Hello alone."""
    connection = Connection(True, greeting(SYNC_PARAMS), compress=False)
    return connection.data_to_send()


def send_all(transport: TlsTransport, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[transport.exchange(rest, False, WAIT_SECONDS).written :]


def opened(
    daemon: Daemon, options: SyncOptions | None = None, *, role: Role = Role.SOURCE, who: str = "alice"
) -> TlsTransport:
    """A session that has been opened, and then says nothing more; the answer to it is a tree to come."""
    transport = dial(daemon, who)
    send_all(transport, opening(role, options=options))
    return transport


def answer_of(transport: TlsTransport) -> bytes:
    """All that comes until the daemon ends the connection."""
    data = b""
    try:
        while not (step := transport.exchange(memoryview(b""), True, WAIT_SECONDS)).eof:
            data += step.received
    except RdcError:
        pass  # it was reset: as good an end
    return data


def raw_block(data: bytes) -> bytes:
    """A block that is not compressed."""
    return encode_varint(len(data) << 1 | 1) + data


def framed(kind: int, payload: bytes, round_number: int = 0) -> bytes:
    return raw_block(frame_head(kind, round_number, len(payload)) + payload)


def private_kb(pid: int) -> int:
    """Memory that is not shared with other processes; 0 for one that has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))


class _HaltingBucket(TokenBucket):
    """Stops its process, once, when so many bytes have been sent."""

    halt_after = 0

    def take(self, size: int) -> None:
        super().take(size)
        before = _HaltingBucket.halt_after
        _HaltingBucket.halt_after -= size
        if before > 0 >= _HaltingBucket.halt_after:
            os.kill(os.getpid(), signal.SIGSTOP)


class Client:
    """A client that runs `rdc sync` as `who` in a forked process: it starts at once, and can be stopped on
    its way.

    `halt_after`: bytes after which it stops by itself, as by SIGSTOP, so that whoever is slow to look still
    finds it half done. It needs a --bwlimit, of which a tenth may be sent beyond that."""

    def __init__(
        self, daemon: Daemon, *words: str | Path, who: str = "alice", halt_after: int | None = None
    ) -> None:
        daemon.keys_of(who)
        self._reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                if halt_after is not None:
                    _HaltingBucket.halt_after = halt_after
                    setattr(rdc.session.runtime.driver, "TokenBucket", _HaltingBucket)  # noqa: B010 - a class
                ended = daemon.sync(*words, who=who)
                os.write(writer, pickle.dumps(ended))
            finally:
                os._exit(0)
        os.close(writer)
        self._over = False

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        """Killed, unless it was waited for."""
        if not self._over:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self._reader)

    def await_halt(self) -> None:
        found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert found is not None and found.si_code == os.CLD_STOPPED, "all is done"

    @property
    def runs(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self) -> Ended:
        with open(self._reader, "rb") as pipe:
            told = pipe.read()
        os.waitpid(self.pid, 0)
        self._over = True
        ended = pickle.loads(told)  # noqa: S301 - our own child's
        assert isinstance(ended, Ended)
        return ended


@contextmanager
def neighbour(daemon: Daemon, place: Path) -> Iterator[None]:
    """Bob brings a tree to the module `calm`, and is half done when the body runs; when it has run he goes on
    and nothing has changed for him. Nothing that was done to the daemon has made it grow."""
    source = place / "neighbour"
    source.mkdir(exist_ok=True)
    for number in range(20):
        (source / f"{number:02}").write_bytes(os.urandom(30_000))
    target = f"calm/{os.urandom(4).hex()}"
    landed = daemon.place.parent / target
    words = ("--bwlimit=2000", "--no-compress", "--no-fsync", f"{source}/", daemon.url(target))
    with Client(daemon, *words, who="bob", halt_after=250_000) as client:
        client.await_halt()
        wait_until(landed.exists)
        assert len(list(landed.iterdir())) < 20, "all is done"
        yield
        client.signal(signal.SIGCONT)
        ended = client.wait()
    assert (ended.code, ended.complaints) == (0, [])
    for file in source.iterdir():
        assert (landed / file.name).read_bytes() == file.read_bytes()
    assert private_kb(daemon.process.pid) < 40_000


def the_end(daemon: Daemon) -> dict[str, str]:
    """Return how alice's only session ended: it must be logged in one line, and small to the last."""
    wait_until(lambda: daemon.logged("end", peer="alice"))
    closed = [*daemon.logged("close", peer="alice"), *daemon.logged("refused", peer="alice")]
    (end,) = daemon.logged("end", peer="alice")
    assert len(closed) == 1, closed
    assert "signal" not in end and int(end["rss_kb"]) < SESSION_KB, end
    assert daemon.logged("internal") == []
    return closed[0]
