"""Parameters of locality-sensitive hashing: Indyk and Motwani, "Approximate nearest neighbors" (STOC
1998)."""

from __future__ import annotations

import math

from rdc.records import dataclass

__all__ = ["Plan", "plan"]


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
