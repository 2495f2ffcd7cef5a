"""Sampling tricks that save random bits: they sample as they should, and cost what their source says."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

import pytest

from rdc.kernel.samples.cheap_reference import CheapSamples, biased_bit, lead_byte, two_bits

Trick = Callable[[Sequence[int], int], CheapSamples]
TRICKS = (lead_byte, two_bits, biased_bit)


def features(seed: int, count: int) -> list[int]:
    random = Random(seed)
    return [random.getrandbits(64) for _ in range(count)]


@pytest.mark.parametrize("trick", TRICKS)
@pytest.mark.parametrize("union", [6, 60])
def test_sets_agree_as_often_as_they_resemble(trick: Trick, union: int) -> None:
    both, count = features(union, union), 1500
    one, other = both[: 5 * union // 6], both[union // 6 :]
    mine, theirs = trick(one, count).features, trick(other[::-1], count).features
    share = sum(a == b for a, b in zip(mine, theirs, strict=True)) / count
    wanted = 2 / 3
    assert abs(share - wanted) <= 3.5 * math.sqrt(wanted * (1 - wanted) / count)


@pytest.mark.parametrize("trick", TRICKS)
def test_any_order_and_repetition_give_the_same_winners(trick: Trick) -> None:
    some = features(3, 20)
    wanted = trick(some, 50).features
    assert trick(some[::-1] + some[:5], 50).features == wanted
    assert set(wanted) <= set(some)
    assert trick(some[:1], 3).features == (some[0],) * 3
    assert trick([], 3) == CheapSamples((None,) * 3, 0)


def test_each_costs_what_its_source_says() -> None:
    some, count = features(9, 512), 64
    events = lead_byte(some, count).evaluations / count
    assert 6 <= events <= 11, "7.12 + n / 256 events a sample"
    bits = two_bits(some, count).evaluations / count / (len(some) - 1)
    assert bits == pytest.approx(2, rel=0.05)
    zeros = biased_bit(some, count).evaluations / count / len(some)
    assert zeros == pytest.approx(1 / 16, rel=0.1)
    entropy = -sum(p * math.log2(p) for p in (1 / 16, 15 / 16))
    assert entropy == pytest.approx(1 / 3, abs=0.01)
