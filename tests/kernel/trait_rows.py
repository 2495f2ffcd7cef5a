"""Rows of traits, and every kernel variant."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import kernel as pure

ROW = struct.Struct("<QH9s")
every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])
samples = st.lists(st.sampled_from([0, 0, 0, 1, 31, 63]), min_size=12, max_size=12)


def packed(numbers: list[int]) -> bytes:
    return sum(number << 6 * t for t, number in enumerate(numbers)).to_bytes(9, "little")


def drained(pairs: Any) -> list[tuple[int, int, int]]:
    found = []
    while (step := pairs.step()) is not None:
        found += step
    return sorted(found)


def random_rows(count: int, seed: int, traits: Callable[[random.Random], bytes]) -> bytes:
    rng = random.Random(seed)
    return b"".join(ROW.pack(i, rng.randrange(65_536), traits(rng)) for i in range(count))
