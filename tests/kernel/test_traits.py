"""Traits: P(equal) = (63 J + 1)/64, and the features that the definition names."""

from __future__ import annotations

import random

import pytest

from rdc.kernel import _kernel
from rdc.kernel.constants import mix
from rdc.kernel.cut import reference as pure
from tests.support.kernel.kernel_streams import run


def unpacked(traits: bytes) -> list[int]:
    value = int.from_bytes(traits, "little")
    assert value >> 72 == 0
    return [value >> 6 * t & 63 for t in range(12)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("size", "shared"), [(40, 20), (300, 150), (300, 270), (300, 30), (12, 9)])
def test_traits_agree_as_often_as_the_sets_do(size: int, shared: int) -> None:
    """Sets of `size` features each, `shared` in common: J = shared / (2 size - shared)."""
    rng = random.Random(f"{size} {shared}")
    trials, equal = 600, 0
    for _ in range(trials):
        union = [mix(rng.getrandbits(64)) for _ in range(2 * size - shared)]
        a, b = pure._Samples(), pure._Samples()
        for feature in union[:size]:
            a.add(feature)
        for feature in union[size - shared :]:
            b.add(feature)
        equal += sum(x == y for x, y in zip(unpacked(a.traits()), unpacked(b.traits()), strict=True))
    j = shared / (2 * size - shared)
    expected = (63 * j + 1) / 64
    # Four standard deviations of 12 x 600 draws; within one pair of sets the draws are all but independent.
    tolerance = 4 * (expected * (1 - expected) / (12 * trials)) ** 0.5
    assert equal / (12 * trials) == pytest.approx(expected, abs=1.3 * tolerance)


def test_each_trait_and_each_pair_of_traits_behaves_alone() -> None:
    """Traits are independent: at J = 1/3, matches at t and at u coincide as often as chance has it."""
    rng = random.Random(11)
    trials = 1500
    hits = [[0] * 12 for _ in range(12)]
    for _ in range(trials):
        union = [mix(rng.getrandbits(64)) for _ in range(120)]
        a, b = pure._Samples(), pure._Samples()
        for i, feature in enumerate(union):
            if i < 80:
                a.add(feature)
            if i >= 40:
                b.add(feature)
        same = [x == y for x, y in zip(unpacked(a.traits()), unpacked(b.traits()), strict=True)]
        for t in range(12):
            for u in range(12):
                hits[t][u] += same[t] and same[u]
    p = (63 / 3 + 1) / 64
    for t in range(12):
        assert hits[t][t] / trials == pytest.approx(p, abs=0.05)
        for u in range(t):
            assert hits[t][u] / trials == pytest.approx(p * p, abs=0.05)


@pytest.mark.parametrize("length", [500, 65_535, 65_536, 200_000])
def test_features_are_all_windows_below_the_threshold(length: int) -> None:
    data = random.Random(length).randbytes(length)
    bound = 4 if length < 65_536 else 1
    features = set()
    spy = pure.Cutter(64, 512)

    class Spy(pure._Minima):
        def push(self, position: int, rank: int) -> None:
            if rank >> 64 < bound:
                features.add(rank & (1 << 64) - 1)
            super().push(position, rank)

    spy._minima = Spy()
    run(spy, data)
    samples = pure._Samples()
    for feature in features:
        samples.add(feature)
    assert len(features) == pytest.approx(length * bound / 256, rel=0.6)
    # Traits do not depend on the cuts: any sizes, any kernel.
    for sizes in ((64, 65), (8000, 32_000)):
        for variant in _kernel.usable():
            assert run(_kernel.Cutter(*sizes, variant=variant), data)[1] == samples.traits()


def test_traits_of_edited_files_match_and_of_others_do_not() -> None:
    rng = random.Random(6)
    base = rng.randbytes(8000)
    edited = base[:3000] + b"an insertion" + base[3100:]
    other = rng.randbytes(8000)

    def matches(a: bytes, b: bytes) -> int:
        x, y = (unpacked(run(_kernel.Cutter(64, 256), data)[1]) for data in (a, b))
        return sum(p == q for p, q in zip(x, y, strict=True))

    assert matches(base, edited) >= 8
    assert matches(base, other) <= 2
