"""Inputs for block fingerprints, and every kernel variant."""

from __future__ import annotations

import random

import pytest
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import kernel as pure

KEY = bytes(range(16))
NOWHERE = (1 << 64) - 1
every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])
# Plain Python takes milliseconds to find a key's polynomial; it remembers those of the last keys.
keys = st.sampled_from([random.Random(seed).randbytes(16) for seed in range(20)])
sizes = st.integers(1, 40)
widths = st.integers(1, 8)
# Few letters: blocks that occur twice, runs, and near misses are then common.
texts = st.one_of(
    st.binary(max_size=400),
    st.lists(st.sampled_from([0, 1, 255]), max_size=400).map(bytes),
    st.just(bytes(300)),
)
