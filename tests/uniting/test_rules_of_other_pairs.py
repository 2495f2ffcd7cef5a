"""The rules of a pair are no business of another pair, whoever dials and whatever a side guesses."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import rdc
from rdc.lean.records import replace
from rdc.model.selection import FilterRule, RuleAction
from rdc.uniting.rows import LEFT, RIGHT
from tests.uniting.pairs import QUICK
from tests.uniting.remote_runs import unite_in_turns

RULES = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "a/text").write_text("text")
    (tmp_path / "a/x.o").write_text("made")
    return tmp_path


def unite(one: Path, other: Path, near: int | None, rules: tuple[FilterRule, ...] | None = None) -> None:
    options = replace(QUICK, rules=rules)
    if near is None:
        rdc.unite(one, other, options)
    else:
        unite_in_turns(one, other, options, lambda _: None, near=near)


def names(path: Path) -> list[str]:
    return sorted(name for name in os.listdir(path) if not name.startswith("."))


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
@pytest.mark.parametrize("before", [None, LEFT, RIGHT])
def test_a_first_meeting_has_no_rules_of_another_pair(
    top: Path, before: int | None, near: int | None
) -> None:
    unite(top / "a", top / "b", before, RULES)
    unite(top / "a", top / "c", near)
    assert names(top / "c") == ["text", "x.o"]
    unite(top / "a", top / "c", near)
    (top / "a/y.o").write_text("made later")
    unite(top / "a", top / "c", near)
    assert names(top / "c") == ["text", "x.o", "y.o"]
    unite(top / "a", top / "b", before)
    assert names(top / "b") == ["text"]


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
def test_another_directory_at_the_place_has_no_rules_of_the_old_one(top: Path, near: int | None) -> None:
    unite(top / "a", top / "b", near, RULES)
    shutil.rmtree(top / "b")
    (top / "b").mkdir()
    (top / "b/own").write_text("own")
    for _ in range(2):
        unite(top / "a", top / "b", near)
        assert names(top / "b") == ["own", "text", "x.o"]


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
@pytest.mark.parametrize("lost", ["", "a", "b"])
def test_a_moved_directory_keeps_the_rules_of_its_pair(top: Path, near: int | None, lost: str) -> None:
    unite(top / "a", top / "b", near, RULES)
    for rules in (top / lost).glob(".rdc-unite/*/rules") if lost else ():
        rules.unlink()
    (top / "b").rename(top / "moved")
    (top / "a/y.o").write_text("made later")
    (top / "a/later").write_text("later")
    for _ in range(2):
        unite(top / "a", top / "moved", near)
        assert names(top / "moved") == ["later", "text"]


@pytest.mark.parametrize("near", [LEFT, RIGHT])
def test_the_later_rules_of_the_pair_count_and_not_those_of_the_guess(top: Path, near: int) -> None:
    unite(top / "a", top / "c", near, (FilterRule(RuleAction.EXCLUDE, b"*.c"),))
    (top / "c").rename(top / "moved")
    unite(top / "a", top / "b", near, RULES)  # the latest pair
    (top / "a/y.c").write_text("source")
    (top / "a/y.o").write_text("made")
    for _ in range(2):
        unite(top / "a", top / "moved", near)
        assert names(top / "moved") == ["text", "x.o", "y.o"]
