"""A daemon that began as root: what is left of its rights, in it and in its sessions."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.daemon.daemons import Daemon, running_daemon
from tests.support.trees.descriptors import open_files
from tests.support.trees.trees import tree, write_tree
from tests.support.trees.unprivileged import NOBODY, place_of_nobody
from tests.support.wire.hostile_peer import opened

OTHER_GROUP = 54_321


def status(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


@contextmanager
def as_root_with_groups(groups: list[int]) -> Iterator[None]:
    """What whoever started the daemon was a member of."""
    if os.geteuid() != 0:
        pytest.fail("these tests give up root, which only root can")
    before, mask = os.getgroups(), os.umask(0)
    os.setgroups(groups)
    try:
        yield
    finally:
        os.setgroups(before)
        os.umask(mask)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with place_of_nobody() as nobodys, as_root_with_groups([0, OTHER_GROUP]):
        for name, owner in (("data", NOBODY), ("roots", 0)):
            place = nobodys / name
            place.mkdir(mode=0o755)
            write_tree(place, tree({"open": b"open", "closed": b"closed"}))
            (place / "closed").chmod(0o600)
            os.chown(place, owner, owner)
        modules = "".join(
            f'[modules.{name}]\npath = "{nobodys / name}"\nallow = ["alice"]\nread-only = false\n'
            for name in ("data", "roots")
        )
        with running_daemon(nobodys / "daemon", modules, top='user = "nobody"') as running:
            yield running


def test_nothing_of_root_is_left(daemon: Daemon) -> None:
    transport = opened(daemon)
    daemon.await_log("open")
    (session,) = daemon.children()
    for pid in (daemon.process.pid, session):
        found = status(pid)
        assert found["Uid"] == found["Gid"] == [str(NOBODY)] * 4
        # Neither root's groups nor those of whoever started it.
        assert found["Groups"] == [str(NOBODY)]
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(found[name][0], 16) == 0, name
        assert found["NoNewPrivs"] == ["1"]
        assert found["Umask"] == ["0022"]
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        # Descriptors that root opened are the ports and what was inherited, no file of root's.
        links = open_files(pid)
        assert not [link for link in links if "identity.pem" in link or "daemon.toml" in link]
    transport.close()
    daemon.await_idle()


def test_files_belong_to_whom_it_became(daemon: Daemon, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", tree({"d/f": b"f"}))
    os.chown(source / "d/f", 12_345, 12_345)
    assert daemon.sync(f"{source}/", daemon.url("data/new")).code == 0
    made = daemon.place.parent / "data/new"
    for path in (made, made / "d", made / "d/f"):
        found = path.stat()
        assert (found.st_uid, found.st_gid) == (NOBODY, NOBODY)
        assert not found.st_mode & 0o022


def test_what_is_closed_to_it_stays_closed(daemon: Daemon, tmp_path: Path) -> None:
    """Root's files are neither read nor written, and are named."""
    fetched = daemon.sync(daemon.url("roots/"), tmp_path / "fetched")
    assert fetched.code == ExitCode.PARTIAL
    assert (tmp_path / "fetched/open").read_bytes() == b"open"
    assert not (tmp_path / "fetched/closed").exists()
    assert len([line for line in fetched.complaints if "closed" in line]) == 1
    source = write_tree(tmp_path / "source", tree({"open": b"changed!", "new": b"new"}))
    brought = daemon.sync(f"{source}/", daemon.url("roots/"))
    assert brought.code == ExitCode.PARTIAL and all(
        "Permission denied" in line for line in brought.complaints
    )
    assert (daemon.place.parent / "roots/open").read_bytes() == b"open"
    assert sorted(os.listdir(daemon.place.parent / "roots")) == ["closed", "open"]


def test_reload_reads_the_same_files(daemon: Daemon) -> None:
    """Those it was started with: not those of whom it became, nor of another working directory."""
    daemon.signal(signal.SIGHUP)
    line = daemon.await_log("reload_failed")
    assert str(daemon.place / "keys/identity.pem") in line["message"]
    keys = daemon.place / "keys"
    for path in (keys, *keys.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    daemon.signal(signal.SIGHUP)
    daemon.await_log("reloaded", modules="2")
