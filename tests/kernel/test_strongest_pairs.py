"""The strongest pairs of files: against all pairs, bounds, floods, and sketches that differ."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.kernel.trait_rows import ROW, drained, every_kernel, packed, random_rows, samples
from tests.reference import kernel as pure
from tests.support.share import examples


@settings(deadline=None)
@given(
    st.dictionaries(st.integers(0, (1 << 30) - 1), samples, max_size=40),
    st.integers(2, 12),
    st.integers(1, 60),
    st.integers(0, 3),
)
def test_the_strongest_pairs(
    files: dict[int, list[int]], min_matches: int, most: int, steps_before: int
) -> None:
    held = b"".join(ROW.pack(key, 0, packed(numbers)) for key, numbers in files.items())
    for module in (_kernel, pure):
        index = module.TraitIndex()
        index.put(held)
        wanted = sorted(
            drained(module.TraitPairs(index, min_matches, 1000)), key=lambda p: (-p[2], p[0], p[1])
        )
        search = module.TraitPairs(index, min_matches, 1000)
        strongest, left_out = search.strongest(most, b"", 0)
        assert array("Q", strongest).tolist() == [
            (12 - alike) << 60 | first << 30 | second for first, second, alike in wanted[:most]
        ]
        assert left_out == max(0, len(wanted) - most)
        assert search.step() is None
        assert search.strongest(most, b"", 0) == (b"", 0)


def test_the_strongest_of_a_flood() -> None:
    """More than twice as many as are kept, in several rounds."""

    def near(rng: random.Random) -> bytes:
        return packed([7, 9, 3, *(rng.randrange(2) for _ in range(9))])

    index = _kernel.TraitIndex()
    index.put(random_rows(400, 3, near))
    every = drained(_kernel.TraitPairs(index, 4, 1 << 16))
    assert len(every) > 50_000
    for most in (1, 100, 7_000, len(every) - 1, len(every), 1 << 20):
        strongest, left_out = _kernel.TraitPairs(index, 4, 1 << 16).strongest(most, b"", 0)
        wanted = sorted((12 - alike) << 60 | first << 30 | second for first, second, alike in every)
        assert array("Q", strongest).tolist() == wanted[:most]
        assert left_out == max(0, len(wanted) - most)


@every_kernel
def test_the_strongest_pairs_have_bounds(module: Any) -> None:
    index = module.TraitIndex()
    index.put(ROW.pack(1, 0, bytes(9)) + ROW.pack(1 << 30, 0, bytes(9)))
    with pytest.raises(ValueError, match="keys"):
        module.TraitPairs(index, 4, 10).strongest(5, b"", 0)
    for most in (0, -1):
        with pytest.raises(ValueError, match="need 1 or more"):
            module.TraitPairs(index, 4, 10).strongest(most, b"", 0)


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.tuples(samples, st.binary(min_size=1, max_size=3)), max_size=20),
    st.integers(1, 60),
    st.sampled_from([0, 1, 11, 22, 32, 33]),
)
def test_pairs_whose_sketches_differ_take_no_part(
    files: list[tuple[list[int], bytes]], most: int, least: int
) -> None:
    """Sketches of repeated bytes: those of three bytes agree in all, or in about a third or two."""
    sketches = [(32 * drawn)[:32] for _, drawn in files]
    rows = b"".join(ROW.pack(key, 0, packed(numbers)) for key, (numbers, _) in enumerate(files))
    for module in (_kernel, pure):
        index = module.TraitIndex()
        index.put(rows)
        wanted = [
            (12 - alike) << 60 | first << 30 | second
            for first, second, alike in drained(module.TraitPairs(index, 4, 1000))
            if not (any(sketches[first]) and any(sketches[second]))
            or sum(a == b for a, b in zip(sketches[first], sketches[second], strict=True)) >= least
        ]
        strongest, left_out = module.TraitPairs(index, 4, 1000).strongest(most, b"".join(sketches), least)
        assert array("Q", strongest).tolist() == sorted(wanted)[:most]
        assert left_out == max(0, len(wanted) - most)


@every_kernel
def test_sketches_are_whole_and_there_for_each_key(module: Any) -> None:
    index = module.TraitIndex()
    index.put(ROW.pack(0, 0, bytes(9)) + ROW.pack(1, 0, bytes(9)))
    assert len(module.TraitPairs(index, 4, 10).strongest(5, bytes(64), 32)[0]) == 8
    with pytest.raises(ValueError, match="keys from 1 on"):
        module.TraitPairs(index, 4, 10).strongest(5, bytes(32), 0)
    with pytest.raises(ValueError, match="whole sketches"):
        module.TraitPairs(index, 4, 10).strongest(5, bytes(33), 0)
