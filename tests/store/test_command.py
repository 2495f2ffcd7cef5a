"""The command line of `rdc store`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rdc
from rdc.cli.environment import process_environment
from rdc.cli.main import run as run_command
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.store.command import parse_store, read_share


def run(*words: str) -> int:
    return run_command(["store", *words], process_environment())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "data"
    top.mkdir()
    (top / "file").write_bytes(b"content")
    (top / "file.tmp").write_bytes(b"x")
    return top


def test_put_list_and_verify(source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "st")
    assert run("put", "--exclude=*.tmp", str(source), store) == 0
    assert "snapshot 1 of data: 1 file, 7 B; read 1 file, stored" in capfd.readouterr().err
    assert run("put", "--name=other", "--level=6", "--no-delta", "-q", str(source), store) == 0
    assert capfd.readouterr() == ("", "")
    assert run("list", store) == 0
    first, second = capfd.readouterr().out.splitlines()
    assert first.split()[0] == "1"
    assert "data  1 file  7 B  added" in first
    assert "other  2 files  8 B" in second
    assert run("verify", "--read=100%", store) == 0
    assert "2 snapshots, 2 packs" in capfd.readouterr().err


def test_json_has_an_event_a_line(source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "st")
    assert run("put", "--json", str(source), store) == 0
    events = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert events[-1]["event"] == "summary"
    assert (events[-1]["number"], events[-1]["series"], events[-1]["files"]) == (1, "data", 2)
    assert run("list", "--json", store) == 0
    listed = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert listed[1]["alone"] > 0 and "problems" not in listed[1]
    assert run("put", "--json", str(source), store) == 0
    assert run("list", "--json", store) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["alone"] == 0
    (snapshot,) = [event for event in listed if event["event"] == "snapshot"]
    assert (snapshot["number"], snapshot["series"], snapshot["bytes"]) == (1, "data", 8)
    assert run("verify", "--json", store) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["damaged"] == 0


def test_damage_is_exit_code_23(source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "st"
    assert run("put", str(source), str(store)) == 0
    for pack in store.rglob("*.pack"):
        pack.unlink()
    assert run("verify", str(store)) == 23
    assert "snapshot 1: its tree cannot be read" in capfd.readouterr().err


def test_a_list_says_that_a_tree_cannot_be_read(
    source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "st")
    assert run("put", str(source), store) == 0
    assert run("list", store) == 0
    assert "alone" in capfd.readouterr().out
    max((tmp_path / "st").rglob("*.pack"), key=lambda path: path.stat().st_size).unlink()
    assert run("list", store) == ExitCode.PARTIAL
    out, err = capfd.readouterr()
    assert out.startswith("   1  ") and "alone" not in out
    assert "the tree of snapshot 1 cannot be read" in err and "rdc store verify" in err
    assert len(rdc.snapshots(store)) == 1
    with pytest.raises(RdcError, match="cannot be read"):
        rdc.snapshots(store, alone=True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "rdc store is followed by put, list, forget, gc, verify"),
        (("guess", "st"), "rdc store is followed by put, list, forget, gc, verify"),
        (("restore", "st", "out"), "to restore the newest snapshot, write: rdc sync STORE/@latest/ DST/"),
        (("snapshots",), "has no snapshots: rdc store list STORE lists the snapshots"),
        (("ls", "st"), "has no ls: to list a snapshot, write: rdc sync STORE/@17/"),
        (("unlock", "st"), "has no unlock: a lock ends with the run that holds it"),
        (("prune", "st"), "has no prune: rdc store gc STORE frees the space"),
        (("list", "--apply", "st"), "--apply does not apply to rdc store list"),
        (("put", "a"), "rdc store put takes SRC and STORE; 1 given (see rdc store put --help)"),
        (("list",), "rdc store list takes STORE; 0 given (see rdc store list --help)"),
        (("list", "a", "b"), "rdc store list takes STORE; 2 given (see rdc store list --help)"),
        (("list", "--name=x", "st"), "--name does not apply to rdc store list"),
        (("put", "--read=1%", "a", "st"), "--read does not apply to rdc store put"),
        (("verify", "--exclude=x", "st"), "--exclude does not apply to rdc store verify"),
        (("put", "", "st"), "SRC is empty"),
        (("put", "host:a", "st"), "directories of this machine; sync from host to a directory here, and put"),
        (
            ("put", "a", "host:st"),
            "directories of this machine; put into a store here, and copy it: rdc sync st/ host:st/",
        ),
        (("list", "rdc://host/st"), "directories of this machine; run rdc store list on host"),
        (("put", "--nonsense", "a", "st"), "unknown option --nonsense"),
    ],
)
def test_other_words_are_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_store(words)
    assert why in str(raised.value)


@pytest.mark.parametrize("verb", ["list", "gc", "verify"])
def test_a_place_that_is_no_store_is_named(
    verb: str, source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rdc.store_put(source, tmp_path / "st", catalog=None)
    (tmp_path / "file").touch()
    for name, why in (
        ("none", "found nothing; rdc store put makes one"),
        ("file", "found something else; rdc store put makes one"),
        ("st/@1/", f"found nothing; the store is {tmp_path}/st"),
    ):
        assert run(verb, f"{tmp_path}/{name}") == 23
        assert f"{tmp_path}/{name}: expected a store, {why}\n" in capfd.readouterr().err


@pytest.mark.parametrize("level", ["0", "20", "x", ""])
def test_levels_that_are_none_are_refused(
    source: Path, tmp_path: Path, level: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("put", f"--level={level}", str(source), str(tmp_path / "st")) == 1
    assert "expected a number from 1 to 19" in capfd.readouterr().err
    assert not (tmp_path / "st").exists()


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("100", 1.0), ("0.5%", 0.005)])
def test_a_share_is_read(text: str, share: float) -> None:
    assert read_share(parse_store(("verify", f"--read={text}", "st"))) == share


@pytest.mark.parametrize("text", ["0", "101%", "-1%", "x", "nan", ""])
def test_other_shares_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="more than 0%"):
        read_share(parse_store(("verify", f"--read={text}", "st")))
