"""Locality-sensitive hashing: Indyk and Motwani, "Approximate nearest neighbors" (STOC 1998).

A family is a distribution of functions that agree on near points more often than on far ones. A key joins the
values of several functions, and a table for each key finds what agrees in all of them. Points are sequences
of numbers. Keys of equal points and parameters are the same on all machines.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence

from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.checks import check_count, checked_count, checked_number, checked_seed, checked_share
from rdc.lean.records import Record
from rdc.similarity.samples import Draws

FUNCTIONS_MOST = 1 << 24
"""Functions of all tables of a family, and tables of a plan."""

DIMENSIONS_MOST = (1 << 32) - 1

NUMBERS_MOST = 1 << 28
"""Random numbers of a family: 2 GiB of them."""


class Plan(Record):
    """`tables` hash tables, each keyed by `functions` functions of the family."""

    functions: int
    """k = log n / log(1 / p2): a far point shares a key with probability 1/n at most."""
    tables: int
    """L = n^rho, rho = log(1 / p1) / log(1 / p2): a near point is found with probability 1 - 1/e or more."""

    def __post_init__(self) -> None:
        check_count("Plan", "functions", self.functions, 1)
        check_count("Plan", "tables", self.tables, 1)


def plan(n: int, p1: float, p2: float) -> Plan:
    """Return k and L for `n` points.

    A function of the family agrees on near points with probability `p1` or more, on far ones with `p2` or
    less. Raises ValueError unless n > 1 and 0 < p2 < p1 < 1.

    >>> from rdc.similarity import lsh
    >>> lsh.plan(1_000_000, 0.9, 0.5)
    Plan(functions=20, tables=9)
    """
    n = checked_count("plan", "n", n, 2)
    p1, p2 = checked_share("plan", "p1", p1), checked_share("plan", "p2", p2)
    if not 0 < p2 < p1 < 1:
        raise ValueError(f"plan.p1, p2: expected 0 < p2 < p1 < 1, found p1 = {p1} and p2 = {p2}")
    functions = max(1, math.ceil(math.log(n) / math.log(1 / p2)))
    # With k rounded up, L = p1^-k keeps the bound 1 - 1/e; n^rho would fall short of it.
    tables = math.ceil(p1**-functions)
    if tables > FUNCTIONS_MOST:
        raise ValueError(
            f"plan.p1, p2: expected probabilities for at most {FUNCTIONS_MOST} tables, found {tables}; p1 ="
            f" {p1} and p2 = {p2} are too near"
        )
    return Plan(functions, tables)


class Family(Record):
    """The functions of one plan, drawn from a family."""

    dimension: int
    plan: Plan
    agreement: Callable[[float], float]
    """The probability that a function agrees on two points of this distance."""
    _values: Callable[[Sequence[float]], list[float]]

    def keys(self, point: Sequence[float]) -> array[int]:
        """Return a key of 64 bits for each table, typecode 'Q'.

        Raises ValueError for a point of another dimension, and for numbers that are infinite, none, or so
        large that products overflow.
        """
        if len(point) != self.dimension or not all(map(math.isfinite, point)):
            raise ValueError(f"a point of {len(point)} numbers: {self.dimension} finite ones are expected")
        try:
            values = array("d", self._values(point))
        except OverflowError:
            raise ValueError(f"a point up to {max(map(abs, point))}: its products overflow") from None
        parts = array("Q", [8 * self.plan.functions]) * self.plan.tables
        digests = name_parts(values.tobytes(), parts)
        starts = range(0, len(digests), NAME_BYTES)
        return array("Q", [int.from_bytes(digests[at : at + 8], "little") for at in starts])


def hamming(dimension: int, plan: Plan, seed: int = 1) -> Family:
    """Random coordinates, for the number d of coordinates in which points differ: they agree with probability
    1 - d / dimension (Indyk, Motwani 1998).

    >>> from rdc.similarity import lsh
    >>> family = lsh.hamming(8, lsh.Plan(functions=2, tables=5))
    >>> family.keys([0, 1] * 4) == family.keys([0, 1] * 4), family.agreement(2)
    (True, 0.75)
    """
    dimension = checked_count("hamming", "dimension", dimension, 1, DIMENSIONS_MOST)
    draws = _draws("hamming", plan, seed)
    coordinates = [draws.below(dimension) for _ in range(plan.functions * plan.tables)]
    return Family(
        dimension,
        plan,
        lambda distance: 1 - checked_number("agreement", "distance", distance, 0, dimension) / dimension,
        lambda point: [point[i] + 0.0 for i in coordinates],
    )


def cosine(dimension: int, plan: Plan, seed: int = 1) -> Family:
    """Sides of random hyperplanes, for the angle of points in radians: they agree with probability
    1 - angle / pi (Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002)."""
    dimension = checked_count("cosine", "dimension", dimension, 1, DIMENSIONS_MOST)
    draws = _draws("cosine", plan, seed, numbers=dimension)
    planes = [draws.normals(dimension) for _ in range(plan.functions * plan.tables)]
    return Family(
        dimension,
        plan,
        lambda angle: 1 - checked_number("agreement", "angle", angle, 0, math.pi) / math.pi,
        lambda point: [_product(plane, point) >= 0 for plane in planes],
    )


def l1(dimension: int, limit: float, plan: Plan, seed: int = 1) -> Family:
    """Random thresholds of random coordinates, for the sum of absolute differences of points whose numbers
    lie between 0 and `limit`.

    That is the Hamming distance of the numbers in unary (Gionis, Indyk, Motwani, "Similarity search in high
    dimensions via hashing", VLDB 1999). Functions agree with probability 1 - d / (dimension * limit).
    """
    dimension = checked_count("l1", "dimension", dimension, 1, DIMENSIONS_MOST)
    draws = _draws("l1", plan, seed)
    limit = _positive("l1", "limit", limit)
    functions = [
        (draws.below(dimension), draws.uniform() * limit) for _ in range(plan.functions * plan.tables)
    ]
    return Family(
        dimension,
        plan,
        lambda distance: (
            1 - checked_number("agreement", "distance", distance, 0, dimension * limit) / (dimension * limit)
        ),
        lambda point: [point[i] >= threshold for i, threshold in functions],
    )


def l2(dimension: int, width: float, plan: Plan, seed: int = 1) -> Family:
    """Intervals of `width` on random lines, for the Euclidean distance (Datar, Immorlica, Indyk, Mirrokni,
    "Locality-sensitive hashing scheme based on p-stable distributions", SoCG 2004).

    With c = width / d functions agree with probability
    1 - 2 Phi(-c) - 2 (1 - exp(-c^2 / 2)) / (c sqrt(2 pi)).
    """
    dimension = checked_count("l2", "dimension", dimension, 1, DIMENSIONS_MOST)
    draws = _draws("l2", plan, seed, numbers=dimension)
    width = _positive("l2", "width", width)
    count = plan.functions * plan.tables
    lines = [(draws.normals(dimension), draws.uniform() * width) for _ in range(count)]

    def agreement(distance: float) -> float:
        distance = checked_number("agreement", "distance", distance, 0, _FINITE)
        if not distance:
            return 1.0
        c = width / distance
        inside = math.erf(c / math.sqrt(2))
        return inside - 2 * -math.expm1(-c * c / 2) / (c * math.sqrt(2 * math.pi))

    return Family(
        dimension,
        plan,
        agreement,
        lambda point: [math.floor((_product(line, point) + shift) / width) for line, shift in lines],
    )


_FINITE = math.ldexp(1 - 2.0**-53, 1024)
"""The largest number."""


def _draws(function: str, plan: Plan, seed: object, *, numbers: int = 1) -> Draws:
    """Check what all families take. `numbers`: that a function draws. Raises TypeError and ValueError."""
    functions = checked_count(function, "plan", plan.functions * plan.tables, 1, FUNCTIONS_MOST)
    if functions * numbers > NUMBERS_MOST:
        raise ValueError(
            f"{function}.plan: expected at most {NUMBERS_MOST} random numbers, found {functions} functions of"
            f" {numbers}"
        )
    return Draws(checked_seed(function, seed))


def _positive(function: str, name: str, value: object) -> float:
    found = checked_number(function, name, value, 0, _FINITE)
    if not found:
        raise ValueError(f"{function}.{name}: expected a number above 0, found {value}")
    return found


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the inner product. fsum() rounds once, so order and Python's version do not count."""
    return math.fsum([a * b for a, b in zip(one, other, strict=True)])
