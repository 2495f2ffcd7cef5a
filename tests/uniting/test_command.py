"""`rdc unite` on the command line: what it prints, its exit codes, and what it refuses by name."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.uniting.command import REFUSED
from tests.support.running.syncing import Ended, command


def unite(top: Path, *words: str) -> Ended:
    return command("unite", "--no-fsync", *words, top / "left", top / "right")


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "left").mkdir()
    (tmp_path / "right").mkdir()
    (tmp_path / "left/a").write_text("a")
    (tmp_path / "right/b").write_text("bb")
    return tmp_path


def test_the_table_of_a_dry_run_is_that_of_the_run(top: Path) -> None:
    dry = unite(top, "-n")
    assert dry.out == (
        "left                right\n"
        "           ← new         b  2 B\n"
        "new        →             a  1 B\n"
    )  # fmt: skip
    assert dry.err.splitlines()[-1] == (
        "would change: left ← 1 entry, 2 B   right → 1 entry, 1 B   0 conflicts; nothing was written"
    )
    assert not (top / "left/.rdc-unite").exists()
    real = unite(top, "-v")
    assert (real.code, real.out) == (ExitCode.OK, dry.out)
    assert real.err.splitlines() == [
        "rdc: note: first time: nothing is deleted; what differs is a conflict",
        "left ← 1 entry, 2 B   right → 1 entry, 1 B   0 conflicts",
    ]


def test_rules_are_typed_once(top: Path) -> None:
    (top / "left/x.o").write_text("made")
    unite(top, "--exclude=*.o", "--unit=kept")
    assert unite(top, "--status").out.splitlines()[1:] == ["  exclude *.o", "  unit kept"]
    unite(top)
    assert not (top / "right/x.o").exists()
    both = unite(top, "--no-rules", "--exclude=*.o")
    assert (both.code, "--no-rules excludes" in both.err) == (1, True)
    assert unite(top, "--no-rules").code == 0
    assert (top / "right/x.o").exists()
    assert unite(top, "--status").out.count("\n") == 1


def test_a_directory_in_a_conflict_is_shown_without_size_and_time(top: Path) -> None:
    (top / "left/d").mkdir()
    unite(top)
    (top / "left/a").unlink()
    (top / "left/a").mkdir()
    (top / "right/a").write_text("right!")
    (top / "left/d").chmod(0o700)
    (top / "right/d").chmod(0o711)
    torn = unite(top)
    assert torn.code == ExitCode.CONFLICTS
    kind, mode = torn.out.splitlines()
    assert "--resolve=a=left     both: =both\n" in torn.err
    assert kind.startswith("conflict   ≠             a  left directory, right 6 B 20")
    assert kind.endswith(": file, directory or symlink at the other side")
    assert mode.endswith("d  left directory, right directory: both sides changed its permissions")
    assert [line.strip() for line in unite(top, "--status").out.splitlines()[1:]] == [kind, mode]


def test_a_conflict_says_how_to_solve_it(top: Path) -> None:
    unite(top)
    (top / "left/a").write_text("left")
    (top / "right/a").write_text("right!")
    torn = unite(top)
    assert torn.code == ExitCode.CONFLICTS
    assert torn.out.startswith("conflict   ≠             a  left 4 B 20")
    assert f"rdc unite {top}/left {top}/right --resolve=a=left     both: =both\n" in torn.err
    status = unite(top, "--status")
    assert (status.code, status.out.splitlines()[1].strip()) == (41, torn.out.strip())
    assert unite(top, "--resolve=a=right").code == 0
    assert (top / "left/a").read_text() == "right!"
    assert unite(top, "--status").out.endswith("2 entries in common\n")
    for path in (".", "/", "./a", "x/../a"):
        (top / "left/a").write_text(f"left {path}")
        (top / "right/a").write_text("right")
        solved = unite(top, f"--resolve={path}=left")
        assert (solved.code, "no conflict" in solved.err) == (0, False)
        assert (top / "right/a").read_text() == f"left {path}"


@pytest.mark.parametrize(
    ("prefer", "texts", "times", "why"),
    [
        ("newer", ("left", "right!"), (7, 7), "both have the same modification time"),
        ("older", ("left", "right!"), (7, 7), "both have the same modification time"),
        ("larger", ("left", "same"), (7, 8), "both have the same size"),
        ("smaller", ("left", "same"), (7, 8), "both have the same size"),
        ("larger", ("left", None), (7, 8), "it compares two files"),
    ],
)
def test_a_preference_that_does_not_decide_says_why(
    top: Path, prefer: str, texts: tuple[str, str | None], times: tuple[int, int], why: str
) -> None:
    unite(top)
    for side, text, time in zip(("left", "right"), texts, times, strict=True):
        path = top / side / "a"
        if text is None:
            path.unlink()
            path.mkdir()
        else:
            path.write_text(text)
        os.utime(path, (time, time))
    left = unite(top, f"--prefer={prefer}")
    assert left.code == ExitCode.CONFLICTS
    (line,) = left.out.splitlines()
    assert line.endswith(f"; --prefer={prefer} does not decide: {why}")
    assert "--prefer" not in unite(top, "--status").out + unite(top).out
    assert unite(top, "--prefer=left").code == ExitCode.OK


def test_the_command_that_solves_a_conflict_has_the_options_of_the_connection(top: Path) -> None:
    for side in ("left", "right"):
        (top / side / "two words").write_text(side)
    found = unite(top, "-e", "ssh -p 2222", "--remote-path=/opt/rdc")
    assert "rdc unite '--rsh=ssh -p 2222' --remote-path=/opt/rdc " in found.err
    assert "right '--resolve=two words=left'     both: =both" in found.err


@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    "name", [b"caf\xc3\xa9", b"in\xff\xfev'alid", b"new\nline", b"back\\slash", b"$(id)"]
)
def test_the_command_that_solves_a_conflict_can_be_pasted(top: Path, name: bytes) -> None:
    for side in ("left", "right"):
        (top / side / os.fsdecode(name)).write_text(side)
    (line,) = (each for each in unite(top).err.splitlines() if each.startswith("keep one version: "))
    pasted = line.removeprefix("keep one version: rdc unite ").partition("     both:")[0]
    bash = ("bash", "-c", "printf '%s\\0' " + pasted)
    words = subprocess.run(bash, capture_output=True, check=True).stdout.split(b"\0")
    assert words[2:] == [b"--resolve=" + name + b"=left", b""]


@pytest.mark.parametrize("word", ["--keep-both", "--resolve=a=both", "--resolve=.=both"])
def test_both_versions_that_cannot_be_kept_are_told(top: Path, word: str) -> None:
    (top / "left/a").unlink()
    (top / "left/a").mkdir()
    (top / "right/a").symlink_to("b")
    left = unite(top, word, "--prefer=larger")
    (line,) = left.out.splitlines()
    assert (left.code, "not both are kept: only a file gets another name" in line) == (41, True)
    assert "=both" not in left.err
    other = unite(top, "--resolve=b=both").out
    assert "not both" not in other


def test_of_many_conflicts_twenty_are_listed(top: Path) -> None:
    for number in range(25):
        (top / f"left/f{number}").write_text("left")
        (top / f"right/f{number}").write_text("right")
    ended = unite(top)
    assert ended.out.count("conflict") == 20
    assert "5 more conflicts" in ended.err
    assert "25 conflicts" in ended.err.splitlines()[-1]


def test_events(top: Path) -> None:
    lines = [json.loads(line) for line in unite(top, "--json").out.splitlines()]
    told = [line["event"] for line in lines if line["event"] != "progress"]
    assert told == ["start", "error", "plan", "item", "item", "summary"]
    assert {line["side"] for line in lines if line["event"] == "item"} == {"left", "right"}
    assert (lines[-1]["left_bytes"], lines[-1]["first"], lines[-1]["exit"]) == (2, True, 0)


def test_forget(top: Path) -> None:
    assert unite(top, "--forget").err == "nothing to forget\n"
    unite(top)
    assert unite(top, "--forget").err == "forgotten; the next run is a first one\n"
    assert unite(top, "--status").err == "these two were not united yet, or the state is lost\n"


@pytest.mark.parametrize("option", REFUSED)
def test_what_it_lacks_is_refused_by_name(top: Path, option: str) -> None:
    ended = unite(top, option)
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert ended.err.startswith(f"rdc: rdc unite has no {option}: ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-v",), "LEFT and RIGHT are needed"),
        (("a",), "1 given"),
        (("one:a", "host:b"), "run rdc unite at one of the two hosts"),
        (("rdc://h/m", "other:b"), "run rdc unite at one of the two hosts"),
        (("a", ""), "a directory is empty"),
        (("a", "b", "--prefer=best"), "left, right, newer, older, larger, smaller"),
        (("a", "b", "-n", "--forget"), "--forget and --dry-run exclude each other"),
        (("a", "b", "--status", "--resolve=a=left"), "--status and --resolve exclude each other"),
        (("a", "b", "--resolve=x"), "a path below both directories, = and one of these"),
        (("a", "b", "--resolve==left"), "a path below both directories, = and one of these"),
        (("a", "b", "--resolve=../x=left"), "a path below both directories, = and one of these"),
        (("a", "b", "--resolve=d/../../x=left"), "a path below both directories, = and one of these"),
        (("a", "b", "--guard=101"), "a number of 0 to 100 is expected"),
        (("a", "b", "--keep-undo=x"), "--keep-undo=x"),
        (("a", "b", "--keep-undo=7d", "--no-undo"), "exclude each other"),
        (("a", "b", "--status", "--forget"), "exclude each other"),
        (("a", "b", "--exclude-from=x"), "unknown option --exclude-from"),
    ],
)
def test_a_wrong_command_line_is_one_line(words: tuple[str, ...], said: str) -> None:
    ended = command("unite", *words)
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("name", ["bisync", "twoway"])
def test_other_names_lead_to_it(name: str) -> None:
    assert "to sync both ways, write: rdc unite LEFT RIGHT" in command(name, "a", "b").err


def test_a_colon_in_a_local_name_is_no_host(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    (tmp_path / "right").mkdir()
    assert command("unite", "--no-fsync", "./a:b", "right", cwd=tmp_path).code == 0
