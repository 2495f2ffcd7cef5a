"""Families of locality-sensitive functions beside their formulas, and the recall that a plan promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest

from rdc.similarity import lsh

DIMENSION = 8
MANY = lsh.Plan(functions=1, tables=2500)


def moved(random: Random, distance: float) -> tuple[list[float], list[float]]:
    """Two points of this Euclidean distance."""
    one = [random.gauss(0, 3) for _ in range(DIMENSION)]
    way = [random.gauss(0, 1) for _ in range(DIMENSION)]
    length = math.hypot(*way)
    return one, [x + distance * y / length for x, y in zip(one, way, strict=True)]


def turned(random: Random, angle: float) -> tuple[list[float], list[float]]:
    """Two points at this angle."""
    one, way = moved(random, 1)
    size = math.hypot(*one)
    one = [x / size for x in one]
    inner = sum(x * y for x, y in zip(one, way, strict=True))
    side = [y - inner * x for x, y in zip(one, way, strict=True)]
    length = math.hypot(*side)
    return one, [
        5 * (math.cos(angle) * x + math.sin(angle) * y / length) for x, y in zip(one, side, strict=True)
    ]


def differing(random: Random, distance: float) -> tuple[list[float], list[float]]:
    one = [float(random.randrange(2)) for _ in range(DIMENSION)]
    coordinates = set(random.sample(range(DIMENSION), round(distance)))
    return one, [1 - x if i in coordinates else x for i, x in enumerate(one)]


def apart(random: Random, distance: float) -> tuple[list[float], list[float]]:
    """Two points between 0 and 10 whose absolute differences sum to `distance`."""
    one = [random.uniform(4, 6) for _ in range(DIMENSION)]
    parts = [random.random() for _ in one]
    signs = [random.choice((-1, 1)) for _ in one]
    scale = distance / sum(parts)
    return one, [x + sign * part * scale for x, sign, part in zip(one, signs, parts, strict=True)]


Make = Callable[[lsh.Plan, int], lsh.Family]
Pair = Callable[[Random, float], tuple[list[float], list[float]]]
FAMILIES: dict[str, tuple[Make, Pair, float, float]] = {
    "hamming": (lambda plan, seed: lsh.hamming(DIMENSION, plan, seed), differing, 1, 3),
    "cosine": (lambda plan, seed: lsh.cosine(DIMENSION, plan, seed), turned, 0.2, 1.2),
    "l1": (lambda plan, seed: lsh.l1(DIMENSION, 10, plan, seed), apart, 4, 25),
    "l2": (lambda plan, seed: lsh.l2(DIMENSION, 4, plan, seed), moved, 1, 5),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_functions_agree_as_often_as_the_formula_says(name: str) -> None:
    make, pair, near, far = FAMILIES[name]
    family = make(MANY, 3)
    for distance in (near, far):
        one, other = pair(Random(41), distance)
        agreed = sum(a == b for a, b in zip(family.keys(one), family.keys(other), strict=True)) / MANY.tables
        wanted = family.agreement(distance)
        assert abs(agreed - wanted) <= 3.5 * math.sqrt(wanted * (1 - wanted) / MANY.tables)
    assert family.agreement(0) == 1
    assert family.keys(one) == make(MANY, 3).keys(list(one)) != make(MANY, 4).keys(one)


@pytest.mark.parametrize("name", FAMILIES)
def test_tables_find_near_points_as_often_as_promised(name: str) -> None:
    """At k = log n / log(1 / p2) and L = n^rho: recall 1 - 1/e or more, and few far points."""
    make, pair, near, far = FAMILIES[name]
    one_function = make(lsh.Plan(1, 1), 1)
    n, trials, random = 300, 120, Random(43)
    plan = lsh.plan(n, one_function.agreement(near), one_function.agreement(far))
    found = wrong = 0
    for seed in range(trials):
        family = make(plan, seed)
        one, other = pair(random, near)
        found += any(a == b for a, b in zip(family.keys(one), family.keys(other), strict=True))
        one, other = pair(random, far)
        wrong += sum(a == b for a, b in zip(family.keys(one), family.keys(other), strict=True))
    promised = 1 - 1 / math.e
    assert found / trials >= promised - 3 * math.sqrt(promised * (1 - promised) / trials)
    expected = trials * plan.tables / n
    assert wrong <= expected + 3 * math.sqrt(expected) + 1


def test_keys_are_what_they_were() -> None:
    """No machine, C library or version of Python may change them."""
    point = [0.25, -3.0, 1e-3]
    plan = lsh.Plan(2, 1)
    made = (lsh.hamming(3, plan), lsh.cosine(3, plan), lsh.l1(3, 5, plan), lsh.l2(3, 2, plan))
    assert [family.keys(point)[0] for family in made] == [
        12232505572037698551,
        1935379680456868001,
        824163284354560741,
        15847523589671723460,
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: lsh.hamming(0, MANY),
        lambda: lsh.cosine(3, lsh.Plan(0, 1)),
        lambda: lsh.l1(3, 0, lsh.Plan(1, 1)),
        lambda: lsh.l2(3, math.inf, lsh.Plan(1, 1)),
        lambda: lsh.l2(3, 1, lsh.Plan(1, 1)).keys([1, 2]),
        lambda: lsh.cosine(3, lsh.Plan(1, 1)).keys([1, math.nan, 2]),
        lambda: lsh.l2(3, 1, lsh.Plan(4, 4)).keys([1.7e308] * 3),
    ],
)
def test_points_and_parameters_without_a_meaning_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        wrong()
