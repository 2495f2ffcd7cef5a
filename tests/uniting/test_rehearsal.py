"""A dry run tells what the run does, also of directories that excluded entries keep."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

import rdc
from rdc import ExitCode
from rdc.lean.records import replace
from rdc.model.selection import FilterRule, RuleAction
from rdc.uniting.rows import LEFT, RIGHT
from tests.uniting.pairs import QUICK, Pair
from tests.uniting.remote_runs import unite_in_turns


def _a_directory_with_an_excluded_entry_goes(pair: Pair) -> None:
    for name in ("d/e/f", "d/e/g", "d/h", "k/l", "top"):
        pair.both(name, name)
    pair.unite(rules=(FilterRule(RuleAction.EXCLUDE, b"*.o"),))
    (pair.right / "d").rename(pair.right / "renamed")
    pair.unite()
    (pair.right / "renamed/e/x.o").write_text("made")
    (pair.right / "k/y.o").mkdir()
    shutil.rmtree(pair.left / "renamed")


def _becomes_a_file(pair: Pair) -> None:
    _a_directory_with_an_excluded_entry_goes(pair)
    (pair.left / "renamed").write_text("a file now")


def _is_renamed_and_emptied(pair: Pair) -> None:
    for name in ("d/e/f", "d/a", "d/b", "d/c", "top"):
        pair.both(name, name)
    pair.unite(rules=(FilterRule(RuleAction.EXCLUDE, b"*.o"),))
    (pair.right / "d/e/x.o").write_text("made")
    (pair.left / "d").rename(pair.left / "moved")
    shutil.rmtree(pair.left / "moved/e")


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
@pytest.mark.parametrize(
    "prepare", [_a_directory_with_an_excluded_entry_goes, _becomes_a_file, _is_renamed_and_emptied]
)
def test_a_dry_run_names_the_directories_that_excluded_entries_keep(
    pair: Pair, prepare: Callable[[Pair], None], near: int | None
) -> None:
    prepare(pair)

    def unite(*, dry_run: bool) -> tuple[object, ...]:
        pair.events = []
        options = replace(QUICK, dry_run=dry_run)
        if near is None:
            report = rdc.unite(pair.left, pair.right, options, reporter=pair.events.append)
        else:
            report = unite_in_turns(pair.left, pair.right, options, pair.events.append, near=near).report
        return (
            report.exit,
            report.left,
            report.right,
            report.held,
            sorted(pair.items()),
            sorted(pair.problems()),
        )

    dry = unite(dry_run=True)
    real = unite(dry_run=False)
    assert real[0] is ExitCode.PARTIAL
    if near != LEFT:  # which cannot look at the right side
        assert dry == real
