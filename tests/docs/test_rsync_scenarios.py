"""The table of rsync's scenarios: each once, and each test that it names exists."""

from __future__ import annotations

from scripts.manual.notes import notes
from scripts.manual.rsync_scenarios import Outcome, all_names, counts, groups, scenario_table
from tests.support.project_paths import TOP

SCENARIOS = 345
"""Test scenarios of rsync 3.5.0."""


def test_each_scenario_stands_once() -> None:
    names = all_names()
    assert len(names) == len(set(names)) == SCENARIOS


def test_each_test_that_is_named_exists() -> None:
    for group in notes("rsync-scenarios")["command-line"]:
        if "test" in group:
            path = TOP / group["test"]
            assert path.is_file() and path.name.startswith("test_"), path


def test_what_rdc_has_is_tested_or_named_as_untested() -> None:
    assert all(group.note for group in groups())
    assert counts()[Outcome.SAME] >= counts()[Outcome.DIFFERS]


def test_the_table_has_a_line_for_each_group() -> None:
    lines = [line for line in scenario_table().splitlines() if line.startswith("| `")]
    assert len(lines) == len(list(groups()))
