"""Peers that are trusted and hostile: each ends with one line, within bounds, and no neighbour notices."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import zstandard

import rdc.session.source.range_answers
from rdc.chunking.params import SYNC_PARAMS
from rdc.errors import ExitCode, RdcError
from rdc.limits.wire import FRAME_BYTES, RAW_BLOCK_BYTES
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol.messages.registry import Data, Describe, FileRequest, ListingEnd, Open, Role, Start
from rdc.protocol.rules.connection import Connection
from rdc.protocol.wire.varint import encode_varint
from rdc.session.serve import greeting
from rdc.transport.keys import KeyRing
from rdc.transport.tls_trust import dialling_context
from tests.support.daemon.daemons import WAIT_SECONDS, Daemon, wait_until
from tests.support.trees.trees import describe, read_tree, tree, write_tree
from tests.support.wire.hostile_peer import (
    SESSION_KB,
    Client,
    answer_of,
    dial,
    framed,
    greeted,
    neighbour,
    opened,
    opening,
    private_kb,
    raw_block,
    send_all,
    serving,
)

MANY = 140
"""Files of 30 KB: two bundles, of which the first lands before the second is there."""
HALF = 3_000_000
"""Bytes of them with which the second one is on its way."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "data", tree({"file": os.urandom(50_000)}))


def bytes_below(place: Path) -> int:
    return sum(path.lstat().st_size for path in place.rglob("*"))


def the_end(daemon: Daemon) -> dict[str, str]:
    """How alice's only session ended: told of in one line, and small to the last."""
    wait_until(lambda: daemon.logged("end", peer="alice"))
    closed = [*daemon.logged("close", peer="alice"), *daemon.logged("refused", peer="alice")]
    (end,) = daemon.logged("end", peer="alice")
    assert len(closed) == 1, closed
    assert "signal" not in end and int(end["rss_kb"]) < SESSION_KB, end
    assert daemon.logged("internal") == []
    return closed[0]


# What expands


def test_a_block_that_expands_without_end(data: Path, tmp_path: Path) -> None:
    """Some KB on the wire, 256 MB once decompressed."""
    bomb = zstandard.ZstdCompressor(level=3).compressobj()
    body = b"".join(bomb.compress(bytes(16 << 20)) for _ in range(16)) + bomb.flush()
    with serving(data) as daemon, neighbour(daemon, tmp_path):
        transport = opened(daemon)
        send_all(transport, encode_varint(len(body) << 1) + body)
        assert b"decompresses to more than" in answer_of(transport)
        transport.close()
        closed = the_end(daemon)
        assert (closed["code"], "decompresses to more" in closed["message"]) == ("12", True)
        assert float(daemon.logged("end", peer="alice")[0]["cpu"]) < 2


@pytest.mark.parametrize("limit", ["daemon's", "module's"])
def test_files_that_expand_past_what_a_session_may_bring(limit: str, data: Path, tmp_path: Path) -> None:
    """Nothing about the blocks is wrong: 100 MB of zeros in a few KB. The next run goes on from there."""
    source = tmp_path / "source"
    source.mkdir()
    for number in range(10):
        # Each another one: equal ones would come once.
        (source / f"{number}").write_bytes(b"%d" % number)
        os.truncate(source / f"{number}", 10 << 20)
    line = 'decompressed = "25M"\n'
    top, module = (f"[limits]\n{line}", "") if limit == "daemon's" else ("", f"limits.{line}")
    with serving(data, top=top, module=module) as daemon, neighbour(daemon, tmp_path):
        ended = daemon.sync("-z", f"{source}/", daemon.url("data/new"))
        assert ended.code == ExitCode.BUSY
        assert len(ended.complaints) == 1
        assert "more than 26214400 bytes, decompressed, came in one session" in ended.complaints[0]
        closed = the_end(daemon)
        assert closed["code"] == "40" and int(closed["received"]) < 500_000
        assert bytes_below(data) < 40 << 20
        for name in os.listdir(data / "new"):
            if not name.startswith(".rdc-"):
                assert (data / "new" / name).stat().st_size == 10 << 20


def _touched(path: Path) -> Path:
    path.touch()
    return path


def test_literals_that_expand(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of some KB that were asked for come 128 MB, packed: dropped where they are too long."""
    old = os.urandom(300_000)
    (data / "file").write_bytes(old)
    source = write_tree(tmp_path / "source", tree({"file": old[:150_000] + b"new" * 2000 + old[150_000:]}))
    used = []

    def bomb(literals: bytes, context: bytes) -> bytes:
        used.append(len(literals))
        parameters = zstandard.ZstdCompressionParameters.from_level(
            1, format=zstandard.FORMAT_ZSTD1_MAGICLESS, write_content_size=1, window_log=17
        )
        stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj(size=128 << 20)
        return b"".join(stream.compress(bytes(1 << 20)) for _ in range(128)) + stream.flush()

    monkeypatch.setattr(rdc.session.source.range_answers, "pack", bomb)
    with serving(data) as daemon, neighbour(daemon, tmp_path):
        ended = daemon.sync("-z", f"{source}/", daemon.url("data/"))
        assert used, "no literals were packed"
        # What did not come as asked is asked for again, in another form.
        assert (ended.code, ended.complaints) == (0, [])
        assert describe(read_tree(source), read_tree(data)) == []
        the_end(daemon)


# What is written


@pytest.mark.parametrize("what", ["one file", "small files", "empty files", "directories", "links"])
def test_writing_past_a_module_s_limit(what: str, data: Path, tmp_path: Path) -> None:
    """What fits is there and whole; what does not is refused before the disk has it."""
    source = tmp_path / "source"
    source.mkdir()
    for number in range(1 if what == "one file" else 600):
        path = source / f"{number:03}"
        if what == "directories":
            path.mkdir()
        elif what == "links":
            path.symlink_to("nowhere")
        else:
            path.write_bytes(os.urandom({"one file": 5 << 20, "small files": 9000}.get(what, 0)))
    with serving(data, module='limits.written = "1M"\n') as daemon, neighbour(daemon, tmp_path):
        ended = daemon.sync(f"{source}/", daemon.url("data/new"))
        assert ended.code == ExitCode.FILE_IO, ended
        assert len(ended.complaints) == 1
        assert "this session may write 1048576 bytes in all" in ended.complaints[0]
        assert str(data) not in ended.err
        landed = [path for path in (data / "new").iterdir() if not path.name.startswith(".rdc-")]
        assert bytes_below(data / "new") < 1 << 20
        if what != "one file":
            assert 0 < len(landed) <= 256
        for path in landed:
            if path.is_file() and not path.is_symlink():
                assert path.read_bytes() == (source / path.name).read_bytes()
        assert the_end(daemon)["code"] == "11"


def test_one_chunk_repeated_is_written_no_further(data: Path, tmp_path: Path) -> None:
    """A gigabyte of zeros, where some are held already: nothing of it travels, all of it would be written."""
    (data / "file").write_bytes(bytes(4 << 20) + b"end")
    source = tmp_path / "source"
    source.mkdir()
    os.truncate(_touched(source / "file"), 1 << 30)
    with serving(data, module='limits.written = "16M"\n') as daemon, neighbour(daemon, tmp_path):
        ended = daemon.sync(f"{source}/", daemon.url("data/"))
        assert (ended.code, len(ended.complaints)) == (ExitCode.FILE_IO, 1), ended
        assert (data / "file").read_bytes() == bytes(4 << 20) + b"end"
        assert bytes_below(data) < 40 << 20
        assert int(the_end(daemon)["received"]) < 100_000


def test_a_full_disk(tmp_path: Path) -> None:
    """A module on a file system of 2 MB: one line, old files as they were, and the neighbour has room."""
    small = tmp_path / "data"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], check=False)
    assert mounted.returncode == 0, "this test mounts a small file system, for which it needs root"
    try:
        (small / "old").write_bytes(b"old")
        source = write_tree(tmp_path / "source", tree({f"f{n}": os.urandom(900_000) for n in range(5)}))
        (source / "old").write_bytes(b"new" * 1000)
        with serving(small) as daemon, neighbour(daemon, tmp_path):
            ended = daemon.sync(f"{source}/", daemon.url("data/"))
            assert ended.code == ExitCode.FILE_IO
            assert len(ended.complaints) == 1 and "No space left on device" in ended.complaints[0]
            for name in os.listdir(small):
                if not name.startswith(".rdc-"):
                    assert (small / name).read_bytes() in (b"old", (source / name).read_bytes())
            assert the_end(daemon)["code"] == "11"
            shutil.rmtree(source)
            write_tree(source, tree({"old": b"newer"}))
            for path in small.glob("[.f]*"):
                path.unlink()
            assert daemon.sync(f"{source}/", daemon.url("data/")).code == 0
    finally:
        subprocess.run(["umount", "-l", small], check=True)


# What is said


ARRAY = b"\xdd\xff\xff\xff\xff"
"""msgpack: an array of 2^32 - 1 items."""

SAID: dict[str, bytes] = {
    "a block of 2^70 bytes": b"\xff" * 10 + b"\x01",
    "a raw block past its bound": encode_varint((RAW_BLOCK_BYTES + 1) << 1 | 1),
    "an empty compressed block": b"\x00",
    "a block that is no zstd": encode_varint(100 << 1) + bytes(100),
    "a frame past its bound": raw_block(encode_varint(FRAME_BYTES + 1) + b"\x01\x00"),
    "a frame of 2^63 bytes": raw_block(encode_varint(1 << 63) + b"\x01\x00"),
    "a round of 2^40": raw_block(b"\x01\x05" + encode_varint(1 << 40) + b"x"),
    "a message of unknown type": framed(250, b"x"),
    "an array of 2^32 items": framed(Start.kind, ARRAY),
    "2^32 bytes in a field": framed(Start.kind, b"\x94\x01\xc6\xff\xff\xff\xff"),
    "arrays in arrays": framed(Start.kind, b"\x91" * 5000),
    "a message that is not its turn": framed(Data.kind, b"\x02\x92\x00\x00xxxx"),
    "a second opening": opening()[len(greeted()) :],
    "a second greeting": greeted()[4:],
}


@pytest.mark.parametrize("what", SAID)
def test_what_no_peer_may_say(what: str, loaded: tuple[Daemon, Path]) -> None:
    """Huge lengths and garbage after the opening: refused when the length is read, before what follows."""
    daemon, _ = loaded
    transport = opened(daemon, role=Role.DESTINATION)
    (session,) = _new_sessions(daemon)
    send_all(transport, SAID[what])
    answer_of(transport)
    transport.close()
    closed = daemon.await_log("close", session=session)
    assert closed["code"] == "12" and closed["message"], closed
    end = daemon.await_log("end", session=session)
    assert "signal" not in end and int(end["rss_kb"]) < SESSION_KB
    assert daemon.logged("internal") == []


def _new_sessions(daemon: Daemon) -> list[str]:
    """Those that were opened and have not ended."""
    wait_until(lambda: len(daemon.logged("open")) > len(daemon.logged("end")))
    ended = {line["session"] for line in daemon.logged("end")}
    return [line["session"] for line in daemon.logged("open") if line["session"] not in ended]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> object:
    place = tmp_path_factory.mktemp("said")
    data = write_tree(place / "data", tree({"f": b"f"}))
    with serving(data) as daemon:
        yield daemon, place


def test_the_neighbours_of_those_who_say_it(loaded: tuple[Daemon, Path]) -> None:
    daemon, place = loaded
    with neighbour(daemon, place):
        transports = [opened(daemon, role=Role.DESTINATION) for _ in range(10)]
        for transport, said in zip(transports, SAID.values(), strict=False):
            send_all(transport, said)
        for transport in transports:
            answer_of(transport)
            transport.close()


# Slowly


def trickle(send: Callable[[bytes], object], data: bytes, stopped: threading.Event) -> bool:
    """Whether all of it was sent."""
    with suppress(OSError, RdcError):
        for value in data:
            if stopped.wait(0.1):
                return False
            send(bytes((value,)))
        return True
    return False


def test_a_handshake_byte_by_byte(data: Path, tmp_path: Path) -> None:
    """Ten of them at once: each byte that comes wins no time, so that none gets to its end."""
    with serving(data, top="[limits]\nhandshake-seconds = 1\n") as daemon:
        ring = KeyRing.read(daemon.keys_of("alice"))
        outgoing = ssl.MemoryBIO()
        tls = dialling_context(ring, ring.certificates).wrap_bio(ssl.MemoryBIO(), outgoing)
        with suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        hello, stopped = outgoing.read(), threading.Event()
        with neighbour(daemon, tmp_path), ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(10))
            stack.callback(stopped.set)
            socks = [
                stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port))) for _ in range(10)
            ]
            sent = [pool.submit(trickle, sock.sendall, hello, stopped) for sock in socks]
            wait_until(lambda: len(daemon.logged("timeout", phase="handshake")) == 10)
            stopped.set()
            assert not any(all_of_it.result() for all_of_it in sent)


def test_an_opening_byte_by_byte(data: Path, tmp_path: Path) -> None:
    with serving(data, top="[limits]\nopen-seconds = 1\n") as daemon, neighbour(daemon, tmp_path):
        transport, stopped = dial(daemon), threading.Event()
        thread = threading.Thread(target=trickle, args=(lambda b: send_all(transport, b), opening(), stopped))
        thread.start()
        closed = daemon.await_log("refused", peer="alice")
        stopped.set()
        thread.join()
        assert "did not say in time what it wants" in closed["message"] and closed["code"] == "40"
        transport.close()


def test_a_frame_byte_by_byte(data: Path, tmp_path: Path) -> None:
    """Never silent for long, so only the length of the session ends it; meanwhile it holds its slot alone."""
    limits = "[limits]\nidle-seconds = 3\n"
    module = "limits.session-seconds = 4\n"
    with serving(data, top=limits, module=module) as daemon:
        transport, stopped = opened(daemon, role=Role.DESTINATION), threading.Event()
        frame = framed(Start.kind, bytes(2000))
        thread = threading.Thread(target=trickle, args=(lambda b: send_all(transport, b), frame, stopped))
        thread.start()
        assert daemon.sync("--timeout=3", daemon.url("calm/"), tmp_path / "x", who="bob").code == 0
        closed = daemon.await_log("close", peer="alice")
        stopped.set()
        thread.join()
        assert "took longer than the daemon allows" in closed["message"] and closed["code"] == "40"
        assert float(closed["seconds"]) >= 4
        transport.close()
        the_end(daemon)


# Much


def test_signs_of_life_without_end(data: Path, tmp_path: Path) -> None:
    """Work without a message: processor time bounds it."""
    with serving(data, module="limits.cpu-seconds = 1\n") as daemon, neighbour(daemon, tmp_path):
        transport = opened(daemon)
        beats = raw_block(b"") * 200_000
        with suppress(RdcError):
            while not daemon.logged("close", peer="alice"):
                send_all(transport, beats)
        transport.close()
        closed = the_end(daemon)
        assert "more processor time than the daemon allows" in closed["message"] and closed["code"] == "40"


def test_a_peer_that_asks_and_has_no_ear(data: Path, tmp_path: Path) -> None:
    """What it goes on to say is not taken while it does not hear the answer: 200 MB stay where they are."""
    os.truncate(data / "file", 1 << 30)
    with serving(data) as daemon, neighbour(daemon, tmp_path):
        transport = dial(daemon)
        connection = Connection(True, greeting(SYNC_PARAMS), compress=False)
        options = SyncOptions(compress=False)
        connection.send(Open(Role.SOURCE, b"data/", b"s" * 16, options), 0)
        connection.send(Describe(True, Preserved(False)), 0)
        connection.flush()
        send_all(transport, connection.data_to_send())
        while True:
            received = connection.next()
            if received is None:
                connection.receive_data(transport.exchange(memoryview(b""), True, WAIT_SECONDS).received)
            elif isinstance(received.message, ListingEnd):
                break
        connection.send(FileRequest((0,)), received.round + 1)
        connection.flush()
        send_all(transport, connection.data_to_send())
        (pid,) = [int(line["pid"]) for line in daemon.logged("connect", peer="alice")]
        sent, beats = 0, raw_block(b"") * (1 << 20)
        with suppress(RdcError):
            while sent < 200 << 20:
                sent += transport.exchange(memoryview(beats), False, 0.5).written
        assert sent < 32 << 20, sent
        assert private_kb(pid) < SESSION_KB
        transport.close()


def test_many_handshakes_that_are_begun(data: Path, tmp_path: Path) -> None:
    """Each costs a key exchange and what OpenSSL holds for it, and none is pushed out before it had its time:
    past 64 the others wait in the kernel, and so does who comes to work, a few seconds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with serving(data) as daemon, ExitStack() as stack:
            before = private_kb(daemon.process.pid)
            ring = KeyRing.read(daemon.keys_of("alice"))
            context = dialling_context(ring, ring.certificates)
            with neighbour(daemon, tmp_path):
                for _ in range(400):
                    outgoing = ssl.MemoryBIO()
                    with suppress(ssl.SSLWantReadError):
                        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
                    sock = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))
                    with suppress(OSError):
                        sock.sendall(outgoing.read())
                assert daemon.sync(daemon.url("data/"), tmp_path / "x").code == 0
            assert len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 64 + 30
            assert private_kb(daemon.process.pid) - before < 64 * 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_session_can_be_resumed(data: Path) -> None:
    """No ticket is given, so each connection shows its certificate; nor is a second handshake spoken."""
    with serving(data) as daemon:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.load_cert_chain(daemon.keys_of("alice") / "identity.pem")
        with context.wrap_socket(socket.create_connection(("127.0.0.1", daemon.port))) as sock:
            sock.sendall(opening())
            assert sock.recv(10)
            assert sock.version() == "TLSv1.3"
            assert sock.session is None or not sock.session.has_ticket
            # A ClientHello in the clear, where encrypted records are due.
            os.write(sock.fileno(), b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
            with suppress(OSError):
                while sock.recv(1 << 16):
                    pass
        closed = daemon.await_log("close", peer="alice")
        assert (closed["code"], "the TLS connection is damaged" in closed["message"]) == ("12", True)


# A module that is not what it was


@pytest.mark.parametrize("swapped", ["for a link", "for another directory", "for nothing"])
def test_a_module_that_is_swapped_while_a_session_writes(swapped: str, data: Path, tmp_path: Path) -> None:
    """The session holds the directory it was let into: what took its place is neither read nor written."""
    source = write_tree(tmp_path / "source", tree({f"f{n:03}": os.urandom(30_000) for n in range(MANY)}))
    outside = write_tree(tmp_path / "outside", tree({"f139": b"secret", "other": b"o"}))
    before = read_tree(outside)
    with serving(data) as daemon, neighbour(daemon, tmp_path):
        words = ("--bwlimit=5000", "--no-compress", "--delete")
        with Client(daemon, *words, f"{source}/", daemon.url("data/"), halt_after=HALF) as client:
            client.await_halt()
            wait_until(lambda: any(name.startswith((".rdc-", "f0")) for name in os.listdir(data)))
            data.rename(tmp_path / "away")
            if swapped == "for a link":
                data.symlink_to(outside)
            elif swapped == "for another directory":
                shutil.copytree(outside, data)
            client.signal(signal.SIGCONT)
            ended = client.wait()
        assert (ended.code, ended.complaints) == (0, [])
        assert describe(before, read_tree(outside)) == []
        if swapped == "for another directory":
            assert describe(before, read_tree(data)) == []
        assert describe(read_tree(source), read_tree(tmp_path / "away")) == []


def test_a_module_that_is_removed_while_a_session_writes(data: Path, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({f"d/f{n:03}": os.urandom(30_000) for n in range(MANY)}))
    with serving(data) as daemon, neighbour(daemon, tmp_path):
        words = ("--bwlimit=5000", "--no-compress", f"{source}/", daemon.url("data/"))
        with Client(daemon, *words, halt_after=HALF) as client:
            client.await_halt()
            wait_until((data / "d").exists)
            while data.exists():  # as often as something is put in beside it
                shutil.rmtree(data, ignore_errors=True)
            client.signal(signal.SIGCONT)
            ended = client.wait()
        assert ended.code in (ExitCode.PARTIAL, ExitCode.FILE_IO), ended
        assert ended.complaints and all("data/" in line for line in ended.complaints)
        assert not data.exists()
        the_end(daemon)
