"""The list of a user's pairs: the last line of each counts, and nothing depends on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.cli.main import run as run_command_line
from rdc.errors import ExitCode
from rdc.lean.records import replace
from rdc.limits import UNITE_LOG_BYTES
from rdc.uniting.registry import NAME, LastRun, last_runs, note
from tests.support.running.fake_environment import FakeProcess

RUN = LastRun(b"/home/a", b"/mnt/a\nb", 1_700_000_000, 41, 3)


def test_the_last_run_of_a_pair_is_listed(tmp_path: Path) -> None:
    state = str(tmp_path / "deep/state")
    note(state, RUN, changed=False)
    other = replace(RUN, left=b"/another")
    note(state, other, changed=False)
    note(state, replace(RUN, seconds=RUN.seconds + 9, code=0, conflicts=0), changed=True)
    assert last_runs(state) == [other, replace(RUN, seconds=RUN.seconds + 9, code=0, conflicts=0)]
    note(state, replace(other, forgotten=True), changed=False)
    assert [run.left for run in last_runs(state)] == [RUN.left]


def test_a_run_that_changes_nothing_is_not_noted_again(tmp_path: Path) -> None:
    note(str(tmp_path), RUN, changed=True)
    before = (tmp_path / NAME).read_bytes()
    note(str(tmp_path), replace(RUN, seconds=RUN.seconds + 1), changed=False)
    assert (tmp_path / NAME).read_bytes() == before
    note(str(tmp_path), replace(RUN, code=0), changed=False)
    assert last_runs(str(tmp_path)) == [replace(RUN, code=0)]


def test_the_list_stays_short_and_loses_no_pair(tmp_path: Path) -> None:
    long = b"/" + b"x" * 3_000
    for number in range(300):
        pair = replace(RUN, left=long + b"%d" % (number % 7), seconds=number)
        note(str(tmp_path), pair, changed=True)
    assert (tmp_path / NAME).stat().st_size < UNITE_LOG_BYTES
    assert [run.left[-1:] for run in last_runs(str(tmp_path))] == [b"%d" % number for number in range(7)]
    assert max(run.seconds for run in last_runs(str(tmp_path))) == 299


@given(st.binary(max_size=200))
def test_garbage_is_no_pair_and_no_traceback(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    top = tmp_path_factory.mktemp("state")
    (top / NAME).write_bytes(data + b"\n")
    assert last_runs(str(top)) == []
    note(str(top), RUN, changed=True)
    assert last_runs(str(top)) == [RUN]


@pytest.mark.parametrize("what", ["link", "pipe", "directory", "huge"])
def test_whatever_is_in_its_place_is_left_alone(tmp_path: Path, what: str) -> None:
    place = tmp_path / NAME
    if what == "link":
        place.symlink_to("elsewhere")
    elif what == "pipe":
        os.mkfifo(place)
    elif what == "directory":
        place.mkdir()
    else:
        with open(place, "wb") as file:
            file.truncate(UNITE_LOG_BYTES + 1)
    assert last_runs(str(tmp_path)) == []
    note(str(tmp_path), RUN, changed=True)
    assert not (tmp_path / "elsewhere").exists()


def rdc(home: Path, *words: object) -> FakeProcess:
    process = FakeProcess(environ={"HOME": str(home)})
    run_command_line(["unite", *map(str, words)], process.environment)
    return process


def test_the_pairs_of_a_user_are_listed_with_their_last_results(tmp_path: Path) -> None:
    assert "no pairs were united here" in rdc(tmp_path).err
    left, right = tmp_path / "left", tmp_path / "right"
    left.mkdir()
    right.mkdir()
    (left / "a").write_text("a")
    assert rdc(tmp_path, "-n", left, right).out
    assert rdc(tmp_path).out == ""
    rdc(tmp_path, left, right)
    assert rdc(tmp_path).out[18:] == f"{left}  {right}: the same at both sides\n"
    (left / "a").write_text("left")
    (right / "a").write_text("right!")
    rdc(tmp_path, left, right)
    assert rdc(tmp_path).out.endswith("/right: 1 conflict\n")
    right.rename(tmp_path / "away")
    rdc(tmp_path, left, right)
    assert rdc(tmp_path).out.endswith(f"/right: failed with exit code {int(ExitCode.FILE_IO)}\n")
    (tmp_path / "away").rename(right)
    rdc(tmp_path, "--forget", left, right)
    assert rdc(tmp_path).out == ""
