"""From one other host to another: what arrives, what it costs beside a sync from here, and what is said."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.relay.two_hosts import between, hosts_shell, summary
from tests.support.running.killed_sync import HELD, WANTED
from tests.support.trees.real_trees import copy_library, next_version
from tests.support.trees.trees import describe, read_tree, tree, write_tree


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    top = tmp_path_factory.mktemp("versions")
    old = copy_library(top / "old")
    return old, next_version(old, top / "new")


def test_versions_cost_what_they_cost_from_here(versions: tuple[Path, Path], tmp_path: Path) -> None:
    """Each hop carries the bytes of a sync from here, and the whole takes one round trip more."""
    relayed, pushed = tmp_path / "relayed", tmp_path / "pushed"
    for version in (*versions, versions[1]):
        direct = summary(between("--json", "--delete", "--fewest-bytes", f"{version}/", f"b:{pushed}"))
        got = summary(between("--json", "--delete", "--fewest-bytes", f"a:{version}/", f"b:{relayed}"))
        subprocess.run(["diff", "-r", "--no-dereference", version, relayed], check=True)
        assert describe(read_tree(version), read_tree(relayed)) == []
        for field in ("files", "changed", "deleted", "moved"):
            assert got[field] == direct[field], field
        # The session's secret decides which fingerprints collide: syncs of one pair differ by some percent,
        # and by a round trip.
        assert abs(got["literal_bytes"] - direct["literal_bytes"]) <= 0.2 * direct["literal_bytes"]
        assert got["round_trips"] <= direct["round_trips"] + 2
        one_hop = direct["bytes_sent"] + direct["bytes_received"]
        both_hops = got["bytes_sent"] + got["bytes_received"]
        # Each of the four directions has a Hello and two have an Open.
        assert both_hops <= 2.4 * one_hop + 1000
        # What came from one host went to the other, but for openings and reports.
        assert abs(got["bytes_sent"] - got["bytes_received"]) <= 0.02 * both_hops + 1000


def test_nothing_to_do_costs_little(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", tree({f"{n % 40}/{n}": b"content" for n in range(500)}))
    ends = (f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    summary(between("--json", *ends))
    got = summary(between("--json", *ends))
    assert (got["changed"], got["deleted"], got["literal_bytes"], got["round_trips"]) == (0, 0, 0, 2)
    assert got["bytes_sent"] + got["bytes_received"] <= 1200


def test_every_kind_of_change(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", WANTED)
    write_tree(tmp_path / "two", HELD)
    planned = between("-n", "-i", "--delete", f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    assert describe(HELD, read_tree(tmp_path / "two")) == []
    done = between("-i", "--delete", f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    assert (planned.code, done.code) == (ExitCode.OK, ExitCode.OK)
    # A dry run compares no content: whether a file of which the time differs is fetched shows in the run.
    lines = [[line.replace("<f..t", ".f..t") for line in run.out.splitlines()] for run in (planned, done)]
    assert sorted(lines[0]) == sorted(lines[1])
    assert "*deleting   extra-link" in done.out.splitlines()
    assert describe(WANTED, read_tree(tmp_path / "two")) == []
    assert describe(WANTED, read_tree(tmp_path / "one")) == []


def test_one_host_twice(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", WANTED)
    ended = between("-v", f"a:{tmp_path}/one", f"a:{tmp_path}/two/")
    assert ended.code == ExitCode.OK
    assert describe(WANTED, read_tree(tmp_path / "two/one")) == []
    ended = between(f"a:{tmp_path}/none/", f"a:{tmp_path}/two/")
    assert ended.complaints[0].startswith("rdc: a, source: "), ended


def test_one_file(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", tree({"f": b"f" * 5000, "g": b"g"}))
    assert between(f"a:{tmp_path}/one/f", f"b:{tmp_path}/h").code == ExitCode.OK
    assert (tmp_path / "h").read_bytes() == b"f" * 5000


def test_progress_and_items_come_from_the_destination(tmp_path: Path) -> None:
    write_tree(tmp_path / "one", tree({"f": b"f", "d/g": b"g"}))
    ended = between("--json", f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    events = [json.loads(line) for line in ended.out.splitlines()]
    assert events[0]["event"] == "start"
    assert {"plan", "item", "summary"} <= {event["event"] for event in events}
    assert {event["path"] for event in events if event["event"] == "item"} >= {"f", "d/", "d/g"}


def test_what_stays_unread_is_named_with_its_host(tmp_path: Path) -> None:
    """And nothing is deleted after it."""
    write_tree(tmp_path / "one", tree({"d/f": b"f", "e": b"e"}))
    write_tree(tmp_path / "two", tree({"old": b"old"}))
    shell = tmp_path / "shell"
    # A user namespace without any right over files: only there does a closed directory stop root.
    unprivileged = "" if os.geteuid() else "setpriv --bounding-set=-all --inh-caps=-all"
    shell.write_text(f'#!/bin/sh\nhost=$1; shift\ntest $host = a && exec {unprivileged} "$@"\nexec "$@"\n')
    shell.chmod(0o755)
    os.chmod(tmp_path / "one/d", 0)
    try:
        ended = between("--delete", f"a:{tmp_path}/one/", f"b:{tmp_path}/two", shell=shell)
    finally:
        os.chmod(tmp_path / "one/d", 0o700)
    assert ended.code == ExitCode.PARTIAL
    assert "one/d" in ended.complaints[0] and ended.complaints[0].endswith("(on a)"), ended
    assert (tmp_path / "two/old").exists() and (tmp_path / "two/e").exists()


@pytest.mark.parametrize("missing", ["a", "b"])
def test_a_host_without_the_path(missing: str, tmp_path: Path) -> None:
    write_tree(tmp_path / "one", tree({"f": b"f"}))
    source = tmp_path / ("none" if missing == "a" else "one")
    target = tmp_path / ("none/two" if missing == "b" else "two")
    ended = between(f"a:{source}/", f"b:{target}")
    assert ended.code == (ExitCode.PARTIAL if missing == "a" else ExitCode.FILE_IO)
    assert len(ended.complaints) == 1 and ended.complaints[0].startswith(f"rdc: {missing}: ")
    assert not target.exists()


@pytest.mark.parametrize("missing", ["a", "b"])
def test_a_host_without_rdc(missing: str, tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text(f'#!/bin/sh\nhost=$1; shift\ntest $host = {missing} && exit 127\nexec "$@"\n')
    shell.chmod(0o755)
    write_tree(tmp_path / "one", tree({"f": b"f"}))
    ended = between(f"a:{tmp_path}/one/", f"b:{tmp_path}/two", shell=shell)
    assert ended.code == ExitCode.COMMAND_MISSING
    assert f" on {missing}: install it there" in ended.complaints[-1]
    assert not (tmp_path / "two").exists()


def test_the_limits_of_rate_and_silence(tmp_path: Path) -> None:
    """Both hosts obey them; a host that falls silent is named."""
    write_tree(tmp_path / "one", tree({"f": b"f" * 1000}))
    ended = between("--json", "--timeout=20", "--bwlimit=10m", f"a:{tmp_path}/one/", f"b:{tmp_path}/two")
    summary(ended)
    mute = tmp_path / "mute"
    mute.write_text('#!/bin/sh\nhost=$1; shift\ntest $host = a && exec sleep 2\nexec "$@"\n')
    mute.chmod(0o755)
    ended = between("--timeout=1", f"a:{tmp_path}/one/", f"b:{tmp_path}/three", shell=mute)
    assert (ended.code, len(ended.complaints)) == (ExitCode.TIMEOUT, 1)
    assert ended.complaints[0].startswith("rdc: a: the remote side was silent")


@pytest.mark.parametrize("host", ["a", "b"])
@pytest.mark.parametrize("how", ["--cut-down", "--cut-up", "--junk-down"])
def test_a_lost_host_is_named(host: str, how: str, tmp_path: Path) -> None:
    write_tree(tmp_path / "one", WANTED)
    write_tree(tmp_path / "two", HELD)
    shell = hosts_shell(tmp_path, **{host: f"{how} 600"})
    ended = between("--fewest-bytes", f"a:{tmp_path}/one/", f"b:{tmp_path}/two", shell=shell)
    assert ended.code == ExitCode.STREAM
    assert len(ended.complaints) == 1 and ended.complaints[0].startswith(f"rdc: {host}: "), ended
