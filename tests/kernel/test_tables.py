"""Every constant of the kernel follows from the polynomials, and the polynomials from what FORMAT.md says."""

from __future__ import annotations

import hashlib
import os
import random
import re
import subprocess
from itertools import count

import pytest

from rdc import limits
from rdc.kernel.constants import mix
from rdc.kernel.cut import reference as pure
from rdc.rabin import multiply, reflect
from scripts.kernel_tables import fold_multipliers, header_text, reduction_multipliers
from tests.reference.rabin import Fingerprint, is_primitive
from tests.support.project_paths import KERNEL, NATIVE


def swapped(data: bytes) -> bytes:
    """Bytes as the kernel reads them, lowest bit first, in the order rabin.py reads them."""
    return bytes(reflect(byte, 8) for byte in data)


def lead_by_rabin(
    window: bytes, polynomial: int = pure.LEAD_POLYNOMIAL, constant: int = pure.LEAD_CONSTANT
) -> int:
    return reflect(Fingerprint(polynomial).window(swapped(window[-16:])), 8) ^ constant


def low_by_rabin(window: bytes) -> int:
    return mix(reflect(Fingerprint(pure.LOW_POLYNOMIAL).window(swapped(window[-64:])), 64))


def test_header_is_what_the_generator_writes() -> None:
    assert (KERNEL / "cut" / "tables.h").read_text() == header_text(), "run scripts/kernel_tables.py"


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """The tables that cut/tables.c computes when it is loaded, by name."""
    program = tmp_path_factory.mktemp("tables") / "tables"
    sources = [NATIVE / "tables.c", KERNEL / "cut" / "tables.c"]
    compiler = [os.environ.get("CC", "cc"), "-std=c11", "-fsanitize=address,undefined", f"-I{KERNEL}"]
    subprocess.run([*compiler, *sources, "-o", program], check=True)
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {
        name: [int(number, 16) for number in numbers]
        for name, *numbers in map(str.split, printed.splitlines())
    }


def test_every_computed_table_is_a_multiple_of_a_power_of_x(computed: dict[str, list[int]]) -> None:
    lead, low = Fingerprint(pure.LEAD_POLYNOMIAL), Fingerprint(pure.LOW_POLYNOMIAL)

    def shifted(f: Fingerprint, byte: int, zeros: int) -> int:
        return reflect(f.window(swapped(bytes((byte,))) + bytes(zeros)), f.degree)

    assert computed == {
        "rdc_lead_carry": [shifted(lead, b, 1) for b in range(256)],
        "rdc_lead_leaving": [shifted(lead, b, 16) for b in range(256)],
        "rdc_lead_powers": [sum(shifted(lead, b, j) << 8 * j for j in range(8)) for b in range(256)],
        # Byte j of a stored fingerprint has 7 - j bytes after it, and eight more are appended.
        "rdc_low_slice": [shifted(low, b, 15 - j) for j in range(8) for b in range(256)],
        "rdc_low_leaving": [shifted(low, b, 64) for b in range(256)],
        "rdc_bit_positions": [
            position
            for byte in range(256)
            for position in ([i + 1 for i in range(8) if byte >> i & 1] + [0] * 8)[:8]
        ],
    }


def test_the_multipliers_in_the_header_are_those_of_traits() -> None:
    match = re.search(
        r"rdc_trait_multiplier\[3\].*?;\n", (KERNEL / "cut" / "tables.h").read_text(), re.DOTALL
    )
    assert match
    assert [int(word, 16) for word in re.findall(r"0x[0-9a-f]+", match[0])] == list(pure.TRAIT_MULTIPLIERS)


def test_ranks_of_the_pure_variant_are_rabin_fingerprints() -> None:
    data = random.Random(3).randbytes(200)
    seen: list[tuple[int, int]] = []

    class Spy(pure._Minima):
        def push(self, position: int, rank: int) -> None:
            seen.append((position, rank))
            super().push(position, rank)

    cutter = pure.Cutter(64, 128)
    cutter._minima = Spy()
    cutter.feed(data)
    padded = bytes(64) + data
    assert seen == [
        (i, lead_by_rabin(padded[: 64 + i]) << 64 | low_by_rabin(padded[: 64 + i])) for i in range(1, 201)
    ]


def test_runs_of_quiet_bytes_rank_high() -> None:
    for byte in pure.QUIET_BYTES:
        assert lead_by_rabin(bytes((byte,)) * 16) >= 123
    assert low_by_rabin(bytes(64)) >> 60 == 0xE  # zeros are not rank 0 among equal leads either


def test_the_lead_polynomial_and_constant_are_the_best_of_all() -> None:
    def score(polynomial: int, constant: int) -> tuple[int, int]:
        leads = [lead_by_rabin(bytes((byte,)) * 16, polynomial, constant) for byte in pure.QUIET_BYTES]
        return min(leads), sum(leads)

    polynomials = [p for p in range(1 << 8, 2 << 8) if is_primitive(p)]
    # The constant only enters by XOR: one fingerprint a polynomial and byte.
    best = (0, 0, 0, 0)
    for polynomial in polynomials:
        plain = [lead_by_rabin(bytes((byte,)) * 16, polynomial, 0) for byte in pure.QUIET_BYTES]
        for constant in range(256):
            leads = [lead ^ constant for lead in plain]
            best = max(best, (min(leads), sum(leads), polynomial, constant))
    assert best == (
        *score(pure.LEAD_POLYNOMIAL, pure.LEAD_CONSTANT),
        pure.LEAD_POLYNOMIAL,
        pure.LEAD_CONSTANT,
    )


def test_nothing_was_chosen_in_the_low_polynomial_and_the_multipliers() -> None:
    def drawn(name: str, n: int) -> int:
        return int.from_bytes(hashlib.sha256(f"{name} {n}".encode()).digest()[:8], "big")

    for n in count():
        candidate = 1 << 64 | (drawn("rdc cuts v1", n) & (1 << 63) - 1) << 1 | 1
        if is_primitive(candidate):
            assert candidate == pure.LOW_POLYNOMIAL
            break
    assert tuple(drawn("rdc traits v1", n) | 1 for n in range(3)) == pure.TRAIT_MULTIPLIERS


def test_bounds_in_the_binding_are_those_of_limits() -> None:
    text = "".join((KERNEL / "cut" / f"{name}_binding.c").read_text() for name in ("cutter", "winnower"))
    for name in ("CHUNK_MIN_LIMIT", "CHUNK_RATIO_LIMIT", "CHUNK_MAX_LIMIT", "WINNOW_MAX_LIMIT"):
        match = re.search(rf"#define {name} (.*)\n", text)
        assert match
        assert eval(match[1]) == getattr(limits, name)  # noqa: S307 - our own source


def test_doubling_tables_and_matrices_multiply_by_powers_of_x() -> None:
    text = (KERNEL / "cut" / "tables.h").read_text()

    def rows(name: str) -> list[int]:
        match = re.search(rf"{name}(?:\[\d+\])+ RDC_TABLE = (.*?);\n", text, re.DOTALL)
        assert match
        return [int(word, 16) for word in re.findall(r"0x[0-9a-f]+", match[1])]

    lead, halves, matrices = (
        Fingerprint(pure.LEAD_POLYNOMIAL),
        rows("rdc_lead_double"),
        rows("rdc_lead_matrix"),
    )
    for i, zeros in enumerate((1, 2, 4, 8)):
        low, high = halves[32 * i : 32 * i + 16], halves[32 * i + 16 : 32 * i + 32]
        matrix = matrices[i].to_bytes(8, "little")
        for byte in range(256):
            product = reflect(lead.window(swapped(bytes((byte,))) + bytes(zeros)), 8)
            constant = pure.LEAD_CONSTANT if zeros == 8 else 0
            assert low[byte & 15] ^ high[byte >> 4] == product ^ constant
            assert sum(((matrix[7 - bit] & byte).bit_count() & 1) << bit for bit in range(8)) == product


def test_folding_and_reduction_give_the_fingerprint() -> None:
    """low_rank_x86.h in Python: eight carry-less products, then Montgomery's reduction."""

    def product(a: int, b: int) -> int:
        return multiply(
            a, b
        )  # reflected words: the product of the polynomials times x, in 128 reflected bits

    mask = (1 << 64) - 1
    fold, (inverse, rest_of_p) = fold_multipliers(), reduction_multipliers()
    window = random.Random(8).randbytes(64)
    v = 0
    for j in range(8):
        v ^= product(int.from_bytes(window[8 * j : 8 * j + 8], "little"), fold[j])
    low, high = v & mask, v >> 64
    m = product(high, inverse) >> 64 ^ high
    assert mix(low ^ m ^ product(m, rest_of_p) & mask) == low_by_rabin(window)
