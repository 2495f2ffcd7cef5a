"""`--status` and `--forget` find a pair, whatever its two directories are called by now."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import rdc
from rdc.model.location import RemoteShell
from tests.support.running.syncing import FAR, command
from tests.uniting.pairs import QUICK, Machines, Pair

SHELL = RemoteShell(("sh", "-c", 'shift; exec "$@"', "sh"), FAR)


def in_conflict(pair: Pair) -> Pair:
    pair.both("f", "f")
    pair.unite()
    (pair.left / "f").write_text("l")
    (pair.right / "f").write_text("right")
    pair.unite()
    return pair


def sizes(found: rdc.UnitePair | None) -> list[tuple[int, int]] | None:
    return None if found is None else [(each.left_size, each.right_size) for each in found.conflicts]


def test_two_directories_are_known_after_both_were_moved(pair: Pair, tmp_path: Path) -> None:
    in_conflict(pair)
    left, right = tmp_path / "one", tmp_path / "other"
    pair.left.rename(left)
    pair.right.rename(right)
    assert sizes(rdc.unite_status(left, right)) == [(1, 5)]
    assert sizes(rdc.unite_status(right, left)) == [(5, 1)]


def test_two_directories_are_known_that_another_machine_united(tmp_path: Path) -> None:
    pair = in_conflict(Machines(tmp_path))
    assert sizes(rdc.unite_status(pair.left, pair.right)) == [(1, 5)]
    assert sizes(rdc.unite_status(pair.right, pair.left)) == [(5, 1)]


def test_a_directory_that_is_not_there_is_known_by_its_place(pair: Pair, tmp_path: Path) -> None:
    in_conflict(pair)
    pair.right.rename(tmp_path / "unmounted")
    assert sizes(rdc.unite_status(pair.left, pair.right)) == [(1, 5)]
    pair.right.mkdir()
    assert sizes(rdc.unite_status(pair.left, pair.right)) == [(1, 5)]
    assert rdc.unite_status(pair.left, tmp_path) is None


@pytest.mark.parametrize("end", ["", "/", "//"])
def test_a_place_is_the_same_with_a_slash_at_its_end(pair: Pair, end: str) -> None:
    pair.both("f", "f")
    rdc.unite(pair.left, f"far:{pair.right}/", QUICK, shell=SHELL)
    place = f"far:{pair.right}{end}"
    assert rdc.unite_status(pair.left, place) is not None
    assert rdc.forget_united(pair.left, place) == 1
    assert rdc.unite_status(pair.left, place) is None


def test_each_version_is_on_the_side_that_was_typed(pair: Pair) -> None:
    pair.both("f", "f")
    place = f"far:{pair.right}"
    rdc.unite(pair.left, place, QUICK, shell=SHELL)
    (pair.left / "f").write_text("l")
    (pair.right / "f").write_text("right")
    rdc.unite(pair.left, place, QUICK, shell=SHELL)
    assert sizes(rdc.unite_status(pair.left, place)) == [(1, 5)]
    assert sizes(rdc.unite_status(place, pair.left)) == [(5, 1)]


@pytest.mark.parametrize("mode", ["--status", "--forget"])
def test_the_names_that_a_directory_knows_are_told(pair: Pair, mode: str) -> None:
    pair.both("f", "f")
    rdc.unite(pair.left, f"far:{pair.right}", QUICK, shell=SHELL)
    ended = command("unite", mode, pair.left, f"alias:{pair.right}")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.endswith(f"; {pair.left} was united with far:{pair.right}\n")
    known = command("unite", mode, pair.left, f"far:{pair.right}")
    assert "united with" not in known.err


def test_the_other_machine_names_the_place_by_which_it_knows_a_directory(pair: Pair) -> None:
    pair.both("f", "f")
    rdc.unite(pair.left, f"far:{pair.right}", QUICK, shell=SHELL)
    host = os.uname().nodename
    assert rdc.unite_status(pair.right, f"{host}:{pair.left}") is not None
    assert rdc.unite_status(pair.left, f"{host}:{pair.right}/") is not None


@pytest.mark.parametrize("gone", ["left", "right"])
def test_a_directory_that_is_gone_for_good_is_forgotten(pair: Pair, tmp_path: Path, gone: str) -> None:
    """Its pair would be a part of a ring for ever."""
    in_conflict(pair)
    stays = pair.right if gone == "left" else pair.left
    shutil.rmtree(tmp_path / gone)
    ended = command("unite", "--forget", pair.left, pair.right)
    assert (ended.code, ended.err) == (0, "forgotten; the next run is a first one\n")
    assert [path.name for path in (stays / ".rdc-unite").iterdir() if path.is_dir()] == []
    again = command("unite", "--forget", pair.left, pair.right)
    assert (again.code, "expected a directory, found nothing" in again.err) == (11, True)
