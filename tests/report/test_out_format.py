"""--out-format and --log-file: what lines say, beside rsync, and what they refuse."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.progress import ItemChanged, Problem
from rdc.report.sync_terminal import Copy, LogFile, grouped, parse_format
from tests.support.running.syncing import PSEUDO_SSH, RDC, Way, command
from tests.support.trees.loop_images import memory_mounted
from tests.support.trees.trees import File, Link, describe, read_tree, tree, write_tree

NEW = ItemChanged(">f+++++++++", b"a\x1b[2Jb")
COPY = Copy("send", b"/nowhere/at/all")
EVERY = "%i|%n|%L|%l|%o|%M|%U|%G|%B|%f|%%|%'l|%''l|%'''l|%10n|%-10n|"

WANTED = tree(
    {
        "a": File(b"1" * 1_234_567, 0o4755, 10**18 + 5),
        "d/c": b"2",
        "l": Link(b"a"),
        "mode": File(b"3", 0o600),
        "same": b"4",
        "within": Link(b"same"),
        "without": Link(b"../d"),
    }
)
HELD = tree(
    {
        "mode": File(b"3", 0o644),
        "same": b"4",
        "gone": b"5",
        "within": Link(b"same"),
        "without": Link(b"../d"),
    }
)


def beside(tmp_path: Path, *words: str) -> tuple[list[str], list[str]]:
    """The sorted lines of rsync and of rdc for the same run."""
    source = write_tree(tmp_path / "s", WANTED)
    outs = []
    for number, argv in enumerate((["rsync", "-a", "--modify-window=-1"], [*RDC, "sync", "--no-catalog"])):
        top = write_tree(tmp_path / f"d{number}", HELD)
        done = subprocess.run(
            [*argv, *words, f"{source}/", f"{top}/"], capture_output=True, text=True, check=True, timeout=60
        )
        outs.append(sorted(done.stdout.splitlines()))
    return outs[0], outs[1]


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("form", [EVERY, "%n", "X %n", "%o %n%L", "%i %5l", "no escape"])
def test_lines_are_rsync_s(form: str, tmp_path: Path) -> None:
    theirs, ours = beside(tmp_path, "--delete", f"--out-format={form}")
    assert ours == theirs


@pytest.mark.needs("rsync")
@pytest.mark.parametrize(
    "words", [["-ii"], ["-i", "-v", "-i"], ["-ii", "--max-size=1"], ["-ii", "-n"], ["-ii", "--safe-links"]]
)
def test_twice_itemized_lists_unchanged_entries_as_rsync_does(words: list[str], tmp_path: Path) -> None:
    theirs, ours = beside(tmp_path, *words)
    coded = re.compile(r"[.<>ch*][fdLDS]")
    assert ours == [line for line in theirs if coded.match(line)]
    assert any(line.endswith(" same") for line in ours)


@pytest.mark.needs("rsync")
def test_twice_verbose_names_unchanged_files(tmp_path: Path) -> None:
    theirs, ours = beside(tmp_path, "-vv")
    assert "same is uptodate" in ours and "mode" in ours
    assert set(ours) <= set(theirs)


@pytest.mark.parametrize(
    ("form", "named"),
    [
        *((one, one) for one in ("%b", "%c", "%C", "%h", "%", "%5", "%''%")),
        ("x%\x1b", r"%\x1b"),
    ],
)
def test_an_unknown_escape_is_named(form: str, named: str) -> None:
    with pytest.raises(ValueError, match="rdc does not know the escape ") as caught:
        parse_format(form)
    assert f"escape {named};" in str(caught.value)
    ended = command("sync", f"--out-format={form}", "s/", "d")
    assert (ended.code, len(ended.err.splitlines())) == (ExitCode.USAGE, 1)


@given(st.text("%'-0123456789inLlofMBUGpt \n\x1b\\é", max_size=24))
def test_any_format_gives_one_printable_line_or_is_refused(form: str) -> None:
    try:
        parsed = parse_format(form)
    except ValueError:
        return
    for event in (NEW, ItemChanged("*deleting  ", b"x\n"), ItemChanged("cL+++++++++", b"l", b"\x07")):
        line = parsed.line(event, COPY)
        assert "\n" not in line and "\x1b" not in line and "\x07" not in line


def test_a_format_has_a_bound() -> None:
    with pytest.raises(ValueError, match="5000 characters"):
        parse_format("x" * 5000)


@pytest.mark.parametrize(
    ("count", "texts"),
    [
        (0, ("0", "0", "0", "0")),
        (1234567, ("1234567", "1,234,567", "1.23M", "1.18M")),
        (10**18, (str(10**18), f"{10**18:,}", "1000.00P", "888.18P")),
    ],
)
def test_numbers_have_four_levels(count: int, texts: tuple[str, ...]) -> None:
    assert tuple(grouped(count, level) for level in range(4)) == texts


@pytest.mark.parametrize("way", list(Way))
def test_sizes_come_from_the_entries_here(way: Way, tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree({"f": b"12345"})), tmp_path / "d"
    places = {Way.HERE: "", Way.PUSH: "far:", Way.PULL: "far:"}
    from_, to = (
        f"{places[way] if way is Way.PULL else ''}{source}/",
        f"{places[way] if way is Way.PUSH else ''}{top}",
    )
    words = ("-e", PSEUDO_SSH, "--remote-path", " ".join(RDC))
    ended = command("sync", *words, "--out-format=%o %l %n", from_, to)
    assert ended.out.splitlines()[-1] == f"{'recv' if way is Way.PULL else 'send'} 5 f"
    ended = command("sync", *words, "-n", "--out-format=%l", from_, to)
    assert (ended.code == ExitCode.USAGE) is (way is Way.PULL)


# --- The log ------------------------------------------------------------------------------------------------


def lines(log: Path) -> list[str]:
    stamped = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\d+\] (.*)")
    found = [stamped.fullmatch(line) for line in log.read_text().splitlines()]
    return [match[1] if match else "" for match in found]


def test_a_log_grows_line_by_line(tmp_path: Path) -> None:
    source, log = write_tree(tmp_path / "s", tree({"a\nb": b"1"})), tmp_path / "log"
    command("sync", f"--log-file={log}", f"{source}/", tmp_path / "d")
    first = lines(log)
    assert first[0] == "comparing the two sides"
    assert first[1:3] == ["cd+++++++++ ./", r">f+++++++++ a\x0ab"]
    assert re.fullmatch(r"sent \d+ bytes  received \d+ bytes  total size 1", first[3])
    assert log.stat().st_mode & 0o777 == 0o600
    command("sync", "--delete", f"--log-file={log}", "--log-file-format=", f"{source}/", tmp_path / "d")
    assert len(lines(log)) == len(first) + 2
    ended = command("sync", f"--log-file={log}", tmp_path / "missing/", tmp_path / "d")
    assert ended.code != ExitCode.OK
    assert lines(log)[-1].startswith("rdc: ") and lines(log)[-1].endswith("(exit code 23)")


def test_problems_are_logged_and_passed_on(tmp_path: Path) -> None:
    seen: list[object] = []
    log = LogFile(str(tmp_path / "log"), None, COPY, report=seen.append)
    log(Problem(ExitCode.PARTIAL, b"x", "x: broken"))
    log(NEW)
    log.close()
    assert lines(tmp_path / "log") == ["rdc: x: broken"]
    assert len(seen) == 2


@pytest.mark.parametrize("place", ["d/log", "d/deep/log", "d/../d/log", "link/log"])
def test_a_log_is_never_inside_the_destination(place: str, tmp_path: Path) -> None:
    top = write_tree(tmp_path / "d", tree({"deep/x": b""}))
    (tmp_path / "link").symlink_to(top / "deep")
    ended = command("sync", f"--log-file={tmp_path / place}", tmp_path, top)
    assert ended.code == UsageError.code and "is inside DST" in ended.err
    assert sorted(path.name for path in top.rglob("*")) == ["deep", "x"]


def test_a_log_is_a_regular_file_and_no_symlink(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for path in ("/dev/null", tmp_path / "fifo", tmp_path / "link", tmp_path, tmp_path / "no/log"):
        with pytest.raises(RdcError):
            LogFile(str(path), None, COPY, report=lambda event: None)
    assert not (tmp_path / "target").exists()


def test_a_full_disk_costs_lines_of_the_log_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told once, and the log says how many lines it lacks. No line begins within another."""
    seen: list[object] = []
    log = LogFile(str(tmp_path / "log"), None, COPY, report=seen.append)
    write, room = os.write, [1000, 20, -1, -1, 1000, 1000, 1000]

    def limited(fd: int, data: bytes) -> int:
        left = room.pop(0)
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data[:left])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", limited)
        for text in ("first", "torn", "lost", "lost as well", "here again"):
            log.write(text)
        log(Problem(ExitCode.PARTIAL, b"x", "x: broken"))
    log.close()
    found = (tmp_path / "log").read_text().splitlines()
    assert len(found) == 5
    assert [
        line.rpartition("] ")[2] for line in found if line.endswith(("first", "lost", "again", "broken"))
    ] == [
        "first",
        "3 lines before this one are lost",
        "here again",
        "rdc: x: broken",
    ]
    assert [event for event in seen if isinstance(event, Problem) and event.code is ExitCode.OK] == seen[:1]
    assert "cannot log: no space for a whole line; some lines are lost" in getattr(seen[0], "message", "")


@pytest.mark.needs("mount")
def test_a_run_with_a_log_on_a_full_disk(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "s", tree({"a": b"1", "b": b"2"}))
    with memory_mounted(tmp_path / "m") as full:
        log = full / "log"
        log.touch()
        with suppress(OSError), (full / "rest").open("wb") as rest:
            while True:
                rest.write(bytes(1 << 20))
        ended = command("sync", f"--log-file={log}", f"{source}/", tmp_path / "d")
    assert (ended.code, len(ended.complaints)) == (0, 1)
    assert "cannot log: No space left on device; some lines are lost" in ended.complaints[0]
    assert describe(read_tree(source), read_tree(tmp_path / "d")) == []
