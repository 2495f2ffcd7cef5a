"""Pairs of sets by equal keys and their clusters, beside plain definitions."""

from __future__ import annotations

import doctest
import importlib
from array import array
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.similarity import Clusters, KeyPair, acceptance, agreeing_pairs, clusters, minhash, supershingles
from tests.similarity.trials import pairs_of

KEYS = st.integers(0, 3)
PAIRS = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=25)


@given(st.integers(1, 6), st.data())
def test_all_pairs_that_agree_often_enough_come_once(groups: int, data: st.DataObject) -> None:
    needed = data.draw(st.integers(1, groups))
    rows = data.draw(st.lists(st.lists(KEYS, min_size=groups, max_size=groups), max_size=12))
    keys = array("Q", [key for row in rows for key in row])
    wanted = [
        KeyPair(one, other)
        for one, other in combinations(range(len(rows)), 2)
        if sum(a == b for a, b in zip(rows[one], rows[other], strict=True)) >= needed
    ]
    assert sorted(agreeing_pairs(keys, groups, needed)) == wanted
    some = agreeing_pairs(keys, groups, needed, spanning=True)
    assert clusters(some) == clusters(wanted)


def test_two_of_six_supershingles_find_as_many_as_accepted() -> None:
    trials = 400
    samples = minhash(*pairs_of(Random(19), trials, 180, 200), 24)
    keys = supershingles(samples, 6, 4)
    found = {tuple(pair) for pair in agreeing_pairs(keys, 6, 2)}
    near = {(row, row + 1) for row in range(0, 2 * trials, 2)}
    wanted = acceptance(0.9, 6, 4, 2)
    assert found <= near, "sets that share nothing agree in 64-bit keys"
    assert abs(len(found) / trials - wanted) <= 3 * (wanted * (1 - wanted) / trials) ** 0.5


@given(PAIRS, st.randoms())
def test_clusters_are_what_pairs_connect_in_any_order(pairs: list[tuple[int, int]], random: Random) -> None:
    plain = [{number} for number in range(16)]
    for first, second in pairs:
        one, other = (next(group for group in plain if number in group) for number in (first, second))
        if one is not other:
            plain.remove(other)
            one |= other
    found = clusters(pairs)
    named = {number for pair in pairs for number in pair}
    assert list(found.members) == sorted(named)
    for number in range(16):
        assert found.label(number) == min(next(group for group in plain if number in group))
    groups = sorted(sorted(group) for group in plain if group & named)
    assert [list(group) for group in found] == groups
    assert len(found) == len(groups)
    turned = [pair if random.random() < 0.5 else pair[::-1] for pair in pairs] + pairs[:3]
    random.shuffle(turned)
    assert clusters(turned) == found


def test_clusters_of_parts_join_to_those_of_the_whole() -> None:
    random = Random(5)
    pairs = [(random.randrange(1 << 64), random.randrange(1 << 64)) for _ in range(20)]
    pairs = [(random.choice(pairs)[0], random.choice(pairs)[1]) for _ in range(200)]
    whole = clusters(pairs)
    parts = [clusters(pairs[at::7]) for at in range(7)]
    joined = clusters(pair for part in parts for pair in zip(part.members, part.labels, strict=True))
    assert joined == whole
    assert clusters([]) == Clusters(array("Q"), array("Q"))


@pytest.mark.parametrize("pair", [(-1, 2), (0, 1 << 64), ("a", "b")])
def test_numbers_that_name_nothing_are_refused(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="numbers from 0"):
        clusters([pair])


@pytest.mark.parametrize(("groups", "needed"), [(2, 0), (2, 3), (4, 2)])
def test_keys_of_no_whole_sets_are_refused(groups: int, needed: int) -> None:
    with pytest.raises(ValueError, match=r"expected (a number from 1 to 2|4 keys for each set), found"):
        agreeing_pairs(array("Q", range(6)), groups, needed)


@pytest.mark.parametrize("name", ["banding", "bbit"])
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"rdc.similarity.{name}"))
    assert found.attempted and not found.failed
