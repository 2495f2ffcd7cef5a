"""Windows as numbers: the C form against the definition, and what the definition promises."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import windows as window_reference
from tests.support.share import examples

LAST = (1 << 64) - 1
CONTENT = (
    st.binary(max_size=200) | st.integers(0, 150).map(bytes) | st.binary(max_size=9).map(lambda b: 20 * b)
)


@settings(max_examples=examples(120))
@given(CONTENT, st.integers(0, LAST) | st.just(LAST))
def test_c_hashes_as_defined(data: bytes, last: int) -> None:
    assert _kernel.window_hashes(data, last) == window_reference.window_hashes(data, last)
    assert _kernel.window_sketch(data) == window_reference.window_sketch(data)


@pytest.mark.parametrize("module", [_kernel, window_reference])
def test_equal_windows_have_equal_hashes_wherever_they_are(module: Any) -> None:
    data = random.Random(1).randbytes(500)
    hashes = array("Q", module.window_hashes(data, LAST))
    assert len(hashes) == len(set(hashes)) == 500 - 31
    assert array("Q", module.window_hashes(b"before" + data[100:150], LAST))[6:] == hashes[100:119]
    assert module.window_hashes(data[:31], LAST) == module.window_hashes(b"", LAST) == b""
    assert module.window_sketch(data[:31]) == bytes(32)


def test_hashes_sample_evenly() -> None:
    """Counters, text and zeros among noise: one window in 16 lies below a sixteenth of all numbers."""
    counters = b"".join([number.to_bytes(4, "little") for number in range(5_000)])
    lines = b"".join([b"line %d of a text\n" % number for number in range(1_200)])
    for data in (counters, lines, random.Random(2).randbytes(20_000)):
        every = set(array("Q", _kernel.window_hashes(data, LAST)))
        sampled = set(array("Q", _kernel.window_hashes(data, LAST >> 4)))
        assert sampled == {number for number in every if number <= LAST >> 4}
        expected = len(every) / 16
        assert abs(len(sampled) - expected) < 5 * expected**0.5


def test_sketches_agree_as_often_as_windows_resemble() -> None:
    agreeing = pairs = 0
    for seed in range(60):
        rng = random.Random(seed)
        data = rng.randbytes(3_000)
        other = data[:2_000] + rng.randbytes(1_000)  # half of all windows of both are common
        one, two = _kernel.window_sketch(data), _kernel.window_sketch(other)
        agreeing += sum(a == b for a, b in zip(one, two, strict=True))
        pairs += 32
    assert abs(agreeing / pairs - 0.5) < 5 * (0.25 / pairs) ** 0.5


@settings(max_examples=examples(60))
@given(st.sets(st.integers(0, 60) | st.integers(0, LAST)), st.sets(st.integers(0, 60) | st.integers(0, LAST)))
def test_c_counts_shared_numbers(first: set[int], second: set[int]) -> None:
    columns = [array("Q", sorted(numbers)) for numbers in (first, second)]
    for module in (_kernel, window_reference):
        assert module.shared_numbers(*columns) == len(first & second)


@pytest.mark.parametrize("module", [_kernel, window_reference])
def test_incomplete_numbers(module: Any) -> None:
    for columns in ((b"1234567", b""), (b"", b"123456789")):
        with pytest.raises(ValueError, match="whole numbers"):
            module.shared_numbers(*columns)
