"""Histories on real trees, a sample of those that scripts/soak unite runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.share import examples
from tests.uniting.real_histories import history_beside_memory, history_with_kills

SEEDS = range(examples(60))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_real_run_does_what_the_plan_in_memory_does(seed: int, tmp_path: Path) -> None:
    history_beside_memory(seed, tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
def test_attributes_go_as_the_plan_in_memory_says(seed: int, tmp_path: Path) -> None:
    acls = seed % 4 >= 2
    history_beside_memory(seed, tmp_path, remote=seed % 2 == 1, has_attributes=True, has_acls=acls)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_set_of_attributes_is_lost(seed: int, tmp_path: Path) -> None:
    remote, acls = seed % 3 == 0, seed % 4 >= 2
    history_with_kills(seed, seed % 2 == 0, tmp_path, remote=remote, has_attributes=True, has_acls=acls)


@pytest.mark.parametrize("seed", SEEDS)
def test_hard_links_go_as_the_plan_in_memory_says(seed: int, tmp_path: Path) -> None:
    remote, sets = seed % 2 == 1, seed % 4 == 3
    history_beside_memory(seed, tmp_path, remote=remote, has_attributes=sets, has_links=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_unseen_is_lost_with_hard_links(seed: int, tmp_path: Path) -> None:
    history_with_kills(seed, seed % 2 == 0, tmp_path, remote=seed % 3 == 0, has_links=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("loses", [False, True], ids=["kills", "kills and lost state"])
def test_nothing_unseen_is_lost(seed: int, loses: bool, tmp_path: Path) -> None:
    history_with_kills(seed, loses, tmp_path)
