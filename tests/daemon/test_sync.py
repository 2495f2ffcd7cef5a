"""Syncs with a real daemon over loopback TLS: both ways, as through a remote shell, every byte counted."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.daemon.daemons import Daemon, key_directory, running_daemon
from tests.support.project_paths import PSEUDO_SSH
from tests.support.running.syncing import FAR, Ended, command
from tests.support.trees.trees import Directory, File, Link, Tree, describe, read_tree, tree, write_tree

OLD = tree(
    {
        "kept": b"kept",
        "changed": File(b"a" * 100_000 + b"old" + bytes(range(256)) * 400),
        "gone/deep/file": b"gone",
        "link": Link(b"kept"),
        "dir/\xff\xfe".encode("latin-1").decode("utf-8", "surrogateescape"): b"name",
        "empty": Directory(0o700),
    }
)
NEW = tree(
    {
        "kept": b"kept",
        "changed": File(b"a" * 100_000 + b"new!" + bytes(range(256)) * 400, 0o755, 1_234_567_890_000_000_001),
        "link": Link(b"changed"),
        "dir/\xff\xfe".encode("latin-1").decode("utf-8", "surrogateescape"): b"name",
        "dir/new": bytes(range(256)) * 2000,
        "empty": Directory(0o711),
    }
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("daemon")


@pytest.fixture(scope="module")
def daemon(place: Path) -> Iterator[Daemon]:
    data = place / "data"
    data.mkdir()
    modules = f'[modules.data]\npath = "{data}"\nallow = ["alice"]\nread-only = false\n'
    with running_daemon(place / "daemon", modules) as running:
        yield running


@pytest.fixture
def module(daemon: Daemon, place: Path, request: pytest.FixtureRequest) -> tuple[str, Path]:
    """A directory of its own in the module: its location and what it is here."""
    name = request.node.name.replace("[", "-").replace("]", "")
    return daemon.url(f"data/{name}"), place / "data" / name


def summary(ended: Ended) -> dict[str, int]:
    assert (ended.code, ended.err) == (ExitCode.OK, "")
    last: dict[str, int] = json.loads(ended.out.splitlines()[-1])
    return last


def by_shell(*words: str | Path) -> dict[str, int]:
    return summary(command("sync", "--json", "-e", PSEUDO_SSH, "--remote-path", FAR, *words))


@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
def test_all_that_a_remote_shell_does(
    pull: bool, daemon: Daemon, module: tuple[str, Path], tmp_path: Path
) -> None:
    """First copy, update with deletions, and nothing to do: the same conversation, in as many round trips."""
    url, far = module
    here = tmp_path / "here"
    shell_far, shell_here = tmp_path / "shell-far", tmp_path / "shell-here"
    source, shell_source = (far, shell_far) if pull else (here, shell_here)
    target = here if pull else far
    for wanted in (OLD, NEW, NEW):
        for top in (source, shell_source):
            if top.exists() and read_tree(top) != wanted:
                shutil.rmtree(top)
            if not top.exists():
                write_tree(top, wanted)
        ends = (f"{url}/", here) if pull else (f"{here}/", url)
        # What a file costs decides how it comes, unless bytes alone count: the times of two runs differ.
        got = summary(daemon.sync("--json", "--delete", "--fewest-bytes", *ends))
        shell_ends = (f"far:{shell_far}/", shell_here) if pull else (f"{shell_here}/", f"far:{shell_far}")
        same = by_shell("--delete", "--fewest-bytes", *shell_ends)
        assert describe(wanted, read_tree(target)) == []
        for field in ("files", "changed", "deleted", "literal_bytes", "reused_bytes", "round_trips"):
            assert got[field] == same[field], field
        # TLS: about 900 bytes of handshake a side, 22 a record and the record's end.
        for field in ("bytes_sent", "bytes_received"):
            assert 700 < got[field] - same[field] < 1800, field
    assert got["round_trips"] <= 2


@pytest.mark.parametrize("owners", [False, True], ids=["", "owners"])
def test_what_only_root_sets_comes_with_owners(owners: bool, tmp_path: Path) -> None:
    here, data = write_tree(tmp_path / "here", tree({"a": b"1", "d/b": b"2"})), tmp_path / "data"
    data.mkdir()
    for name in ("a", "d", "d/b"):
        os.setxattr(here / name, "user.a", b"1")
        os.setxattr(here / name, "trusted.a", b"2")
    capability = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
    os.setxattr(here / "a", "security.capability", capability)
    modules = f'[modules.data]\npath = "{data}"\nallow = ["alice"]\nread-only = false\n'
    with running_daemon(tmp_path / "daemon", modules + f"owners = {str(owners).lower()}\n") as daemon:
        pushed = daemon.sync("-aAX", f"{here}/", daemon.url("data/x"))
        pulled = daemon.sync("-aAX", daemon.url("data/x/"), tmp_path / "back")
    assert (pushed.code, pulled.code) == (ExitCode.OK, ExitCode.OK)
    for place in (data / "x", tmp_path / "back"):
        assert sorted(os.listxattr(place / "d/b")) == ["trusted.a", "user.a"][not owners :]
        assert ("security.capability" in os.listxattr(place / "a")) is owners


class Counter:
    """Passes one connection on and counts what it carries."""

    def __init__(self, port: int) -> None:
        self.there = self.back = 0
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        near, _ = self._listener.accept()
        self._listener.close()
        far = socket.create_connection(("127.0.0.1", self._target))

        def pump(one: socket.socket, other: socket.socket, name: str) -> None:
            # Whoever has said all may close before the other's goodbye arrives.
            with contextlib.suppress(OSError):
                while data := one.recv(1 << 16):
                    setattr(self, name, getattr(self, name) + len(data))
                    other.sendall(data)
                other.shutdown(socket.SHUT_WR)

        back = threading.Thread(target=pump, args=(far, near, "back"))
        back.start()
        pump(near, far, "there")
        back.join()
        near.close()
        far.close()

    def finish(self) -> None:
        self._thread.join()


def test_every_byte_of_the_connection_is_counted(
    daemon: Daemon, module: tuple[str, Path], tmp_path: Path
) -> None:
    url, _ = module
    here = write_tree(tmp_path / "here", NEW)
    relay = Counter(daemon.port)
    keys = key_directory(tmp_path / "keys", "alice", {f"127.0.0.1:{relay.port}": "server"})
    url = url.replace(str(daemon.port), str(relay.port))
    got = summary(command("sync", "--json", "--keys", keys, f"{here}/", url))
    relay.finish()
    assert got["bytes_sent"] == relay.there
    # The daemon's own goodbye, 24 bytes, comes after the end of the session.
    assert relay.back - got["bytes_received"] in (0, 24)


def test_a_module_is_its_content_and_a_directory_in_it_itself(
    daemon: Daemon, module: tuple[str, Path], tmp_path: Path
) -> None:
    """rsync's rule, and a path with needless slashes and dots."""
    url, far = module
    write_tree(far, tree({"a/b": b"b", "c": b"c"}))
    assert daemon.sync(f"{url}/a", tmp_path / "one").code == 0
    assert (tmp_path / "one/a/b").read_bytes() == b"b"
    assert daemon.sync(f"{url}/./a//", tmp_path / "two").code == 0
    assert (tmp_path / "two/b").read_bytes() == b"b"
    assert daemon.sync(f"{url}/c", tmp_path / "three").code == 0
    assert (tmp_path / "three").read_bytes() == b"c"
    assert daemon.sync(daemon.url("data"), tmp_path / "four").code == 0
    assert (tmp_path / "four" / far.name / "c").read_bytes() == b"c"


def test_one_file_to_a_name_and_into_a_directory(
    daemon: Daemon, module: tuple[str, Path], tmp_path: Path
) -> None:
    url, far = module
    file = tmp_path / "f"
    file.write_bytes(b"content")
    write_tree(far, tree({"dir": Directory()}))
    assert daemon.sync(file, f"{url}/new-name").code == 0
    assert daemon.sync(file, f"{url}/dir").code == 0
    assert daemon.sync(file, f"{url}/made/").code == 0
    assert [(far / name).read_bytes() for name in ("new-name", "dir/f", "made/f")] == [b"content"] * 3


def test_a_dry_run_changes_nothing(daemon: Daemon, module: tuple[str, Path], tmp_path: Path) -> None:
    url, far = module
    here = write_tree(tmp_path / "here", NEW)
    ended = daemon.sync("-n", "-i", f"{here}/", url)
    assert ended.code == 0
    assert "<f+++++++++ changed" in ended.out
    assert not far.exists()
    write_tree(far, OLD)
    assert "*deleting   gone/deep/file" in daemon.sync("-n", "-i", "--delete", f"{here}/", url).out
    assert describe(OLD, read_tree(far)) == []


def test_links_in_a_module_are_copied_not_followed(
    daemon: Daemon, module: tuple[str, Path], tmp_path: Path
) -> None:
    url, far = module
    outside = write_tree(tmp_path / "outside", tree({"secret": b"secret"}))
    wanted: Tree = tree({"in": Link(str(outside).encode()), "f": b"f"})
    write_tree(far, wanted)
    assert daemon.sync(f"{url}/", tmp_path / "here").code == 0
    assert describe(wanted, read_tree(tmp_path / "here")) == []


def test_the_log_tells_of_each_session(daemon: Daemon, module: tuple[str, Path], tmp_path: Path) -> None:
    url, _ = module
    here = write_tree(tmp_path / "here", tree({"f": b"f"}))
    assert daemon.sync(f"{here}/", url).code == 0
    name = url.rsplit("/", 1)[1]
    opened = daemon.await_log("open", path=name)
    assert (opened["peer"], opened["module"], opened["role"]) == ("alice", "data", "receive")
    ended = daemon.await_log("end", session=opened["session"])
    assert int(ended["rss_kb"]) < 100_000
    assert daemon.await_log("close", session=opened["session"])["code"] == "0"
    assert daemon.await_log("connect", session=opened["session"])["pin"].startswith("SHA256:")


def test_a_name_cannot_forge_a_log_line(daemon: Daemon, tmp_path: Path) -> None:
    forged = 'data/x\nts=2000 level=info event="forged" \x1b[2J'
    assert daemon.sync(daemon.url(forged), tmp_path / "here").code == ExitCode.PARTIAL
    line = daemon.await_log("open", path="forged")
    assert "\\\\x0a" in line["path"] and "\\\\x1b" in line["path"]
    assert daemon.logged("forged") == []
