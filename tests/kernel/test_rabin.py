"""Rabin fingerprints against brute force: polynomials as lists of coefficients, orders by counting."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.rabin import (
    byte_table,
    degree,
    multiply,
    power_of_x,
    reflect,
    remainder,
    remainder_of_product,
)
from tests.reference.rabin import Fingerprint, is_primitive, random_primitive

EXAMPLE = 0x11D  # x^8 + x^4 + x^3 + x^2 + 1
POLYNOMIALS = [EXAMPLE, 0x1F5, 0x1100B, 0x1_AAE3_F5FB_0075_F2E7]


def long_division(bits: list[int], p: int) -> int:
    """The remainder of a polynomial given as bits, highest first, by schoolbook division."""
    bits, divisor = list(bits), [int(c) for c in f"{p:b}"]
    for i in range(len(bits) - len(divisor) + 1):
        if bits[i]:
            for j, coefficient in enumerate(divisor):
                bits[i + j] ^= coefficient
    return int("".join(map(str, bits[-(len(divisor) - 1) :])) or "0", 2)


def bits_of(data: bytes) -> list[int]:
    return [byte >> i & 1 for byte in data for i in range(7, -1, -1)]


def order_of_x(p: int) -> int:
    value, order = remainder(2, p), 1
    while value != 1:
        value, order = remainder(value << 1, p), order + 1
        if order > 1 << degree(p):
            return 0
    return order


@given(st.integers(0, 1 << 90), st.integers(0, 1 << 90), st.integers(2, 1 << 70))
def test_arithmetic_is_that_of_coefficients(a: int, b: int, p: int) -> None:
    product = [0] * 182
    for i in range(91):
        for j in range(91):
            product[181 - (i + j)] ^= (a >> i & 1) & (b >> j & 1)
    assert multiply(a, b) == int("".join(map(str, product)), 2)
    assert remainder(multiply(a, b), p) == long_division([0] * 71 + product, p)
    assert remainder_of_product(a, b, p) == remainder(multiply(a, b), p)


@given(st.integers(0, 300), st.sampled_from(POLYNOMIALS))
def test_powers_of_x(n: int, p: int) -> None:
    assert power_of_x(n, p) == remainder(1 << n, p)


@pytest.mark.parametrize("k", range(2, 11))
def test_primitive_means_that_x_has_full_order(k: int) -> None:
    for p in range(1 << k, 2 << k):
        full = p & 1 == 1 and order_of_x(p) == (1 << k) - 1
        assert is_primitive(p) == full, f"{p:#b}"


def test_number_of_primitive_polynomials_of_degree_8() -> None:
    # phi(2^8 - 1) / 8 = 128 / 8
    assert sum(is_primitive(p) for p in range(1 << 8, 2 << 8)) == 16


def test_primitivity_at_degree_64() -> None:
    assert is_primitive(0x1_AAE3_F5FB_0075_F2E7)
    assert is_primitive((1 << 64) | 0x1B)  # x^64 + x^4 + x^3 + x + 1, in every table of primitive polynomials
    assert not is_primitive((1 << 64) | 1)
    assert not is_primitive(multiply((1 << 32) | 0xC5, (1 << 32) | 0xAF))


def test_degrees_whose_order_is_not_factored_are_refused() -> None:
    with pytest.raises(ValueError, match="degree 63"):
        is_primitive(1 << 63 | 1)


def test_random_primitive_uses_the_given_randomness() -> None:
    draws = [random_primitive(k, random.Random(7).getrandbits) for k in (8, 16, 64)]
    assert draws == [random_primitive(k, random.Random(7).getrandbits) for k in (8, 16, 64)]
    assert all(is_primitive(p) and degree(p) == k for p, k in zip(draws, (8, 16, 64), strict=True))
    rng = random.Random(1)
    assert {random_primitive(8, rng.getrandbits) for _ in range(300)} == {
        p for p in range(1 << 8, 2 << 8) if is_primitive(p)
    }


def test_published_example() -> None:
    # "A" modulo x^8 + x^4 + x^3 + x^2 + 1 is x^6 + x
    assert Fingerprint(EXAMPLE).fingerprint(b"A") == 0b0100_0010


@given(st.binary(max_size=40), st.sampled_from(POLYNOMIALS))
def test_both_forms_are_long_division(data: bytes, p: int) -> None:
    f, k = Fingerprint(p), degree(p)
    assert f.window(data) == long_division([0] * (k + 1) + bits_of(data), p)
    assert f.fingerprint(data) == long_division([1, *bits_of(data), *([0] * k)], p)
    assert f.from_window(f.window(data), len(data)) == f.fingerprint(data)


@given(st.binary(max_size=30), st.binary(max_size=30), st.sampled_from(POLYNOMIALS))
def test_extend_and_concat(left: bytes, right: bytes, p: int) -> None:
    f = Fingerprint(p)
    whole = f.fingerprint(left + right)
    assert f.extend(f.fingerprint(left), right) == whole
    assert f.concat(f.fingerprint(left), f.fingerprint(right), len(right)) == whole


@given(st.binary(max_size=20), st.sampled_from(POLYNOMIALS))
def test_leading_zeros_count_only_in_the_fingerprint(data: bytes, p: int) -> None:
    f = Fingerprint(p)
    assert f.window(b"\0" + data) == f.window(data)
    assert f.fingerprint(b"\0" + data) != f.fingerprint(data)


@given(st.binary(min_size=12, max_size=12), st.binary(min_size=12, max_size=12), st.sampled_from(POLYNOMIALS))
def test_the_window_form_is_linear(a: bytes, b: bytes, p: int) -> None:
    f = Fingerprint(p)
    both = bytes(x ^ y for x, y in zip(a, b, strict=True))
    assert f.window(both) == f.window(a) ^ f.window(b)


@given(st.binary(max_size=100), st.integers(1, 70), st.sampled_from(POLYNOMIALS))
def test_sliding_is_the_window_of_the_last_bytes(data: bytes, width: int, p: int) -> None:
    f = Fingerprint(p)
    sliding = f.sliding(width)
    for i, byte in enumerate(data, 1):
        assert sliding.slide(byte) == f.window(data[max(0, i - width) : i])


@given(st.integers(0, 255), st.integers(0, 1 << 64), st.sampled_from(POLYNOMIALS))
def test_byte_tables(byte: int, multiplier: int, p: int) -> None:
    assert byte_table(multiplier, p)[byte] == remainder_of_product(byte, multiplier, p)


@given(st.integers(0, (1 << 13) - 1))
def test_reflect(bits: int) -> None:
    assert [reflect(bits, 13) >> i & 1 for i in range(13)] == [bits >> 12 - i & 1 for i in range(13)]
    assert reflect(reflect(bits, 13), 13) == bits


def test_misuse_is_refused() -> None:
    for wrong in (lambda: remainder(5, 0), lambda: Fingerprint(0b111), lambda: reflect(4, 2)):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(ValueError, match="window of 0"):
        Fingerprint(EXAMPLE).sliding(0)
    with pytest.raises(ValueError, match="no polynomial"):
        power_of_x(-1, EXAMPLE)
