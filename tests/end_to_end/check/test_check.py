"""`rdc check` as a user types it: exit codes, lines, events, a real ssh and a daemon."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.daemon.daemons import Daemon, running_daemon
from tests.support.running.checking import snapshot
from tests.support.running.ssh_server import SshServer, ssh_server
from tests.support.running.syncing import FAR, PSEUDO_SSH, RDC, Ended, command
from tests.support.trees.trees import File, tree, write_tree


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    entries = {"same": b"1", "changed": b"22", "d/gone": b"3", "strange\x1b[2J\n": b"4"}
    one = write_tree(tmp_path / "one", tree(entries))
    del entries["d/gone"]
    other = write_tree(tmp_path / "other", tree({**entries, "d/new": b"3", "changed": File(b"23", 0o600)}))
    return one, other


LINES = [
    "content,mode  changed",
    "extra         d/new",
    "missing       d/gone",
]


def lines(ended: Ended) -> list[str]:
    return sorted(ended.out.splitlines())


def test_lines_codes_and_summary(places: tuple[Path, Path]) -> None:
    one, other = places
    before = snapshot(one, other)
    ended = command("check", f"{one}/", other)
    assert (ended.code, lines(ended)) == (ExitCode.DIFFERENT, LINES)
    assert ended.err.startswith(
        "3 differences in 6 entries (1 missing, 1 extra); compared the content of 3 files"
    )
    quiet = command("check", "-q", f"{one}/", other)
    assert (quiet.code, quiet.out, quiet.err) == (1, "", "")
    equal = command("check", f"{one}/", one)
    assert (equal.code, equal.out) == (0, "")
    assert equal.err.startswith("no difference in 5 entries; compared the content of 4 files, 5 B")
    assert snapshot(one, other) == before


def test_permissions_and_times_need_not_be_compared(places: tuple[Path, Path]) -> None:
    one, other = places
    ended = command("check", "--no-perms", "--no-times", f"{one}/", other)
    assert (ended.code, lines(ended)) == (ExitCode.DIFFERENT, ["content       changed", *LINES[1:]])


def test_events(places: tuple[Path, Path]) -> None:
    one, other = places
    ended = command("check", "--json", f"{one}/", other)
    events = [json.loads(line) for line in ended.out.splitlines()]
    found = {event["path"]: event["aspects"] for event in events if event["event"] == "difference"}
    assert found == {"changed": "content mode", "d/new": "extra", "d/gone": "missing"}
    summary = events[-1]
    assert (summary["event"], summary["exit"], summary["different"]) == ("summary", 1, 3)
    wrong = command("check", "--json", one)
    assert (wrong.code, json.loads(wrong.out)["code"]) == (64, 64)


@pytest.mark.parametrize(
    "words",
    [
        ["one"],
        ["one", "two", "three"],
        ["--delete", "one", "other"],
        ["--sample=0", "one", "other"],
        ["--sample=101%", "one", "other"],
        ["--sample=x", "one", "other"],
        ["--seed=1", "one", "other"],
        ["--sample=1%", "--seed=-1", "one", "other"],
        ["a:one", "b:other"],
        ["--inplace", "one", "other"],
    ],
)
def test_wrong_words_are_not_taken_for_a_difference(words: list[str], tmp_path: Path) -> None:
    ended = command("check", *words)
    assert (ended.code, ended.out, ended.err.count("\n")) == (ExitCode.CHECK_USAGE, "", 1)


def test_a_directory_that_is_not_below_the_other_gets_the_command(places: tuple[Path, Path]) -> None:
    """`rdc check a b` means what `rdc sync a b` means: b/a. Most who write it mean both directories."""
    source, destination = places
    ended = command("check", source, destination)
    advice = f"for the contents of both, end SRC with a slash: rdc check {source.name}/ {destination}/"
    assert (ended.code, ended.out) == (ExitCode.PARTIAL, "")
    assert ended.err == f"rdc: {destination}/{source.name}: nothing there to compare; {advice}\n"


def test_a_far_directory_that_lacks_the_name_gets_the_command(places: tuple[Path, Path]) -> None:
    source, destination = places
    ended = command("check", "-e", PSEUDO_SSH, "--remote-path", FAR, source, f"far:{destination}")
    assert (ended.code, ended.out) == (ExitCode.PARTIAL, "")
    advice = f"for the contents of both, end SRC with a slash: rdc check {source}/ far:{destination}/"
    assert (
        ended.err
        == f"rdc: the remote side: {destination}/{source.name}: no such file or directory; {advice}\n"
    )


def test_a_missing_place_is_an_error(places: tuple[Path, Path], tmp_path: Path) -> None:
    for pair in (
        (tmp_path / "no", places[0]),
        (places[0], tmp_path / "no"),
        (f"{places[0]}/", tmp_path / "no"),
    ):
        ended = command("check", *pair)
        assert (ended.code, ended.out, ended.err.count("\n")) == (ExitCode.PARTIAL, "", 1)
    assert not (tmp_path / "no").exists()


def test_one_file_beside_a_far_directory(places: tuple[Path, Path]) -> None:
    """Only the remote side knows that DST is a directory."""
    one, other = places
    far = ("-e", PSEUDO_SSH, "--remote-path", FAR)
    for destination in (other, f"{other}/", other / "changed"):
        ended = command("check", *far, one / "changed", f"far:{destination}")
        assert (ended.code, ended.out) == (1, "content,mode  changed\n"), destination
    assert command("check", *far, one / "changed", f"far:{other}/none").code == ExitCode.PARTIAL


@pytest.fixture(scope="module")
def server() -> Iterator[SshServer]:
    with ssh_server() as running:
        yield running


@pytest.mark.needs("sshd")
@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
def test_through_a_real_ssh(pull: bool, server: SshServer, places: tuple[Path, Path], tmp_path: Path) -> None:
    one, other = places
    program = tmp_path / "far-rdc"
    program.write_text(f'#!/bin/sh\ncd {Path.cwd()}\nexec {" ".join(RDC)} "$@"\n')
    program.chmod(0o755)
    ends = (f"{server.host}:{one}/", other) if pull else (f"{one}/", f"{server.host}:{other}")
    before = snapshot(one, other)
    words = ("check", "-e", server.remote_shell, "--remote-path", program)
    ended = command(*words, *ends, process=True)
    assert (ended.code, lines(ended)) == (1, LINES), ended
    assert snapshot(one, other) == before


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    place = tmp_path_factory.mktemp("daemon")
    modules = ""
    for name, setting in (("reads", ""), ("writes", "write-only = true"), ("appends", "append-only = true")):
        write_tree(place / name, tree({"file": b"1"}))
        modules += f'[modules.{name}]\npath = "{place / name}"\nallow = ["alice"]\n{setting}\n'
    with running_daemon(place / "daemon", modules) as running:
        yield running


@pytest.mark.parametrize("pull", [False, True], ids=["push", "pull"])
def test_a_module_that_can_be_read_can_be_checked(pull: bool, daemon: Daemon, tmp_path: Path) -> None:
    here = write_tree(tmp_path / "here", tree({"file": b"2"}))
    far = daemon.place.parent
    before = snapshot(far / "reads", far / "writes")

    def checked(module: str) -> Ended:
        ends = (f"{daemon.url(module)}/", here) if pull else (f"{here}/", daemon.url(module))
        return command("check", "--keys", daemon.keys_of("alice"), "--no-owner", *ends)

    for module in ("reads", "appends"):
        ended = checked(module)
        assert (ended.code, ended.out) == (1, "content       file\n"), ended
    refused = checked("writes")
    assert (refused.code, refused.out, refused.err.count("\n")) == (ExitCode.REFUSED, "", 1)
    assert "'writes' is write-only" in refused.err
    assert snapshot(far / "reads", far / "writes") == before


def test_the_user_s_catalog_is_left_alone(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = tmp_path / "catalog"
    monkeypatch.setenv("RDC_CATALOG", os.fspath(catalog))
    one, other = places
    assert command("check", f"{one}/", other, process=True).code == 1
    assert not catalog.exists()
    for _ in range(2):
        assert lines(command("check", "--trust-catalog", f"{one}/", other, process=True)) == LINES


def test_failures_of_the_program_are_not_taken_for_a_difference(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr("rdc.library.trees.check", failing)
    ended = command("check", *places)
    assert (ended.code, ended.out) == (ExitCode.CHECK_USAGE, "")
    monkeypatch.undo()
    monkeypatch.setenv("RDC_TIMEOUT", "soon")
    assert command("check", *places, process=True).code == ExitCode.CHECK_USAGE
