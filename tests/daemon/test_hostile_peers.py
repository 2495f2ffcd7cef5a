"""Peers that are trusted and hostile: each ends with one line, within bounds, and no neighbour notices."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

import rdc.session.source.range_answers
from rdc.errors import ExitCode
from rdc.limits import FRAME_BYTES, RAW_BLOCK_BYTES
from rdc.protocol.messages import Data, Role, Start
from rdc.protocol.wire.fields import encode_varint
from tests.support.daemon.daemons import Daemon, wait_until
from tests.support.trees.trees import describe, read_tree, tree, write_tree
from tests.support.wire.hostile_peer import (
    SESSION_KB,
    Client,
    answer_of,
    framed,
    greeted,
    neighbour,
    opened,
    opening,
    raw_block,
    send_all,
    serving,
    the_end,
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
    """Nothing about the blocks is wrong: 100 MB of one byte in a few KB. The next run goes on from there."""
    source = tmp_path / "source"
    source.mkdir()
    for number in range(10):
        # Each another one: equal ones would come once.
        (source / f"{number}").write_bytes((b"%d" % number).ljust(10 << 20, b"x"))
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

    monkeypatch.setattr(rdc.session.source.range_answers, "pack_literals", bomb)
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
        assert "this session may write 1048576 bytes in total" in ended.complaints[0]
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
    """96 MiB of one byte, where some are held already: nothing of it travels, all of it would be written."""
    old = b"x" * (4 << 20) + b"end"
    (data / "file").write_bytes(old)
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_bytes(b"x" * (96 << 20))
    with serving(data, module='limits.written = "16M"\n') as daemon, neighbour(daemon, tmp_path):
        ended = daemon.sync(f"{source}/", daemon.url("data/"))
        assert (ended.code, len(ended.complaints)) == (ExitCode.FILE_IO, 1), ended
        assert (data / "file").read_bytes() == old
        assert bytes_below(data) < 40 << 20
        assert int(the_end(daemon)["received"]) < 100_000


@pytest.mark.needs("mount")
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


# Much


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
        assert ended.complaints
        for line in ended.complaints:
            # Of many equal ones the first are told with their paths.
            assert "data/" in line or " more like this: " in line, line
        assert not data.exists()
        the_end(daemon)


# What runs


@pytest.mark.parametrize("depth", ["0", "64"])
def test_threads_of_a_session_are_bounded_at_any_depth(depth: str, data: Path, tmp_path: Path) -> None:
    write_tree(data, tree({f"d/f{n:04}": b"%04d" % n * 750 for n in range(4_000)}))
    most = 0
    with serving(data, top="[limits]\nthreads = 2\n") as daemon:
        words = ("-q", f"--depth={depth}", "--bwlimit=4000", "--no-compress", "--no-fsync")
        with Client(daemon, *words, daemon.url("data/"), f"{tmp_path}/copy/") as client:
            process = daemon.process.pid
            while client.runs:
                for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
                    with suppress(FileNotFoundError, ProcessLookupError):
                        most = max(most, len(os.listdir(f"/proc/{child}/task")))
            ended = client.wait()
        assert ended.code == 0, ended
    # One that runs the session, two that read and hash, three that wait for storage with it, the one that
    # writes and the heartbeat.
    assert 1 < most <= 8
