"""Scenarios that other two-way tools test or were reported for, as states: what the plan makes of each.

`scenarios.jsonl` has one a line: the ancestor, both sides, what each side moved, and what both have
afterwards. Without `right` in `then`, both sides are the same. A scenario that takes more than states is
`in` a test of its own, or it `differs`: then the line says what rdc does instead, and why.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.uniting.scenario_runs import outcome

HERE = Path(__file__).parent
TABLE = [json.loads(line) for line in (HERE / "scenarios.jsonl").read_text().splitlines()]
SCENARIOS = [scenario for scenario in TABLE if "then" in scenario]


def test_each_has_a_name_of_its_own() -> None:
    assert len({scenario["id"] for scenario in TABLE}) == len(TABLE) == 298


def test_the_tests_that_the_table_names_exist() -> None:
    named = {scenario["in"] for scenario in TABLE if "in" in scenario}
    for each in named:
        file, _, name = each.partition("::")
        assert f"def {name}(" in (HERE / file).read_text(), each
    assert all({"then", "in", "differs"} & scenario.keys() for scenario in TABLE)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_the_plan_does_what_the_scenario_says(scenario: dict[str, dict[str, str]]) -> None:
    moves = scenario.get("moved left", {}), scenario.get("moved right", {})
    found = outcome(scenario["base"], scenario["left"], scenario["right"], moves)
    then: dict[str, object] = dict(scenario["then"])
    then.setdefault("right", then["left"])
    assert found == then


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_the_sides_exchanged_give_the_same(scenario: dict[str, dict[str, str]]) -> None:
    moves = scenario.get("moved right", {}), scenario.get("moved left", {})
    found = outcome(scenario["base"], scenario["right"], scenario["left"], moves)
    then: dict[str, object] = dict(scenario["then"])
    left, right = then["left"], then.get("right", then["left"])
    assert (found["left"], found["right"]) == (right, left)
    assert found.get("conflicts") == then.get("conflicts")
