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
from rdc.records import dataclass
from rdc.similarity.draws import Draws

__all__ = ["Family", "Plan", "cosine", "hamming", "l1", "l2", "plan"]


@dataclass(frozen=True, slots=True)
class Plan:
    """`tables` hash tables, each keyed by `functions` functions of the family."""

    functions: int
    """k = log n / log(1 / p2): a far point shares a key with probability 1/n at most."""
    tables: int
    """L = n^rho, rho = log(1 / p1) / log(1 / p2): a near point is found with probability 1 - 1/e or more."""


def plan(n: int, p1: float, p2: float) -> Plan:
    """Returns k and L for `n` points.

    A function of the family agrees on near points with probability `p1` or more, on far ones with `p2` or
    less. Raises ValueError unless n > 1 and 0 < p2 < p1 < 1.

    >>> from rdc.similarity import lsh
    >>> lsh.plan(1_000_000, 0.9, 0.5)
    Plan(functions=20, tables=9)
    """
    if n < 2 or not 0 < p2 < p1 < 1:
        raise ValueError(f"n = {n}, p1 = {p1}, p2 = {p2}: n > 1 and 0 < p2 < p1 < 1 are expected")
    functions = max(1, math.ceil(math.log(n) / math.log(1 / p2)))
    # With k rounded up, L = p1^-k keeps the bound 1 - 1/e; n^rho would fall short of it.
    return Plan(functions, math.ceil(p1**-functions))


@dataclass(frozen=True, slots=True)
class Family:
    """The functions of one plan, drawn from a family."""

    dimension: int
    plan: Plan
    agreement: Callable[[float], float]
    """The probability that a function agrees on two points of this distance."""
    _values: Callable[[Sequence[float]], list[float]]

    def keys(self, point: Sequence[float]) -> array[int]:
        """A key of 64 bits for each table, typecode 'Q'.

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
    draws = _draws(dimension, plan, seed)
    coordinates = [draws.below(dimension) for _ in range(plan.functions * plan.tables)]
    return Family(
        dimension,
        plan,
        lambda distance: 1 - distance / dimension,
        lambda point: [point[i] + 0.0 for i in coordinates],
    )


def cosine(dimension: int, plan: Plan, seed: int = 1) -> Family:
    """Sides of random hyperplanes, for the angle of points in radians: they agree with probability
    1 - angle / pi (Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002)."""
    draws = _draws(dimension, plan, seed)
    planes = [draws.normals(dimension) for _ in range(plan.functions * plan.tables)]
    return Family(
        dimension,
        plan,
        lambda angle: 1 - angle / math.pi,
        lambda point: [_product(plane, point) >= 0 for plane in planes],
    )


def l1(dimension: int, limit: float, plan: Plan, seed: int = 1) -> Family:
    """Random thresholds of random coordinates, for the sum of absolute differences of points whose numbers
    lie between 0 and `limit`.

    That is the Hamming distance of the numbers in unary (Gionis, Indyk, Motwani, "Similarity search in high
    dimensions via hashing", VLDB 1999). Functions agree with probability 1 - d / (dimension * limit).
    """
    draws = _draws(dimension, plan, seed)
    if not 0 < limit < math.inf:
        raise ValueError(f"limit {limit}: a positive number is expected")
    functions = [
        (draws.below(dimension), draws.uniform() * limit) for _ in range(plan.functions * plan.tables)
    ]
    return Family(
        dimension,
        plan,
        lambda distance: 1 - distance / (dimension * limit),
        lambda point: [point[i] >= threshold for i, threshold in functions],
    )


def l2(dimension: int, width: float, plan: Plan, seed: int = 1) -> Family:
    """Intervals of `width` on random lines, for the Euclidean distance (Datar, Immorlica, Indyk, Mirrokni,
    "Locality-sensitive hashing scheme based on p-stable distributions", SoCG 2004).

    With c = width / d functions agree with probability
    1 - 2 Phi(-c) - 2 (1 - exp(-c^2 / 2)) / (c sqrt(2 pi)).
    """
    draws = _draws(dimension, plan, seed)
    if not 0 < width < math.inf:
        raise ValueError(f"width {width}: a positive number is expected")
    count = plan.functions * plan.tables
    lines = [(draws.normals(dimension), draws.uniform() * width) for _ in range(count)]

    def agreement(distance: float) -> float:
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


def _draws(dimension: int, plan: Plan, seed: int) -> Draws:
    if min(dimension, plan.functions, plan.tables) < 1:
        raise ValueError(f"{dimension} dimensions, {plan}: 1 or more are expected")
    return Draws(seed)


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    """The inner product. fsum() rounds once, so order and Python's version do not count."""
    return math.fsum([a * b for a, b in zip(one, other, strict=True)])
