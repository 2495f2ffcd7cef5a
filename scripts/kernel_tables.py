"""Write the tables and constants of the C kernel again.

rdc/kernel/cut/tables.h comes from the polynomials in rdc/kernel/cut/reference.py, rdc/kernel/shingles/keys.h
from tests/reference/shingles.py.
Command: .venv/bin/python -m scripts.kernel_tables
"""

from __future__ import annotations

from collections.abc import Sequence

from rdc.kernel.constants import FEW_FEATURES_BELOW, GOLDEN, LOW_WINDOW, TRAIT_COUNT
from rdc.kernel.cut.reference import (
    LEAD_CONSTANT,
    LEAD_FEW,
    LEAD_POLYNOMIAL,
    LEAD_WINDOW,
    LOW_POLYNOMIAL,
    TRAIT_MULTIPLIERS,
    reflected_table,
)
from rdc.rabin import multiply, power_of_x, reflect
from tests.reference import shingles
from tests.support.project_paths import KERNEL


def main() -> None:
    (KERNEL / "cut" / "tables.h").write_text(header_text())
    (KERNEL / "shingles" / "keys.h").write_text(keys_text())


def _lines(words: Sequence[str], per_line: int, indent: str) -> str:
    return f",\n{indent}".join(", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line))


def _words(name: str, values: Sequence[int]) -> str:
    words = [f"UINT64_C(0x{value:016x})" for value in values]
    return (
        f"static const uint64_t {name}[{len(words)}] RDC_TABLE = {{\n    {_lines(words, 4, '    ')},\n}};\n"
    )


def _rows_of(kind: str, name: str, rows: Sequence[Sequence[int]]) -> str:
    text = ",\n    ".join(f"{{{_lines([f'0x{value:02x}' for value in row], 16, '     ')}}}" for row in rows)
    size = f"[{len(rows)}][{len(rows[0])}]"
    return f"static const {kind} {name}{size} RDC_TABLE = {{\n    {text},\n}};\n"


def _reflected(polynomial: int) -> int:
    """Return the polynomial without its highest power, the constant term in the highest bit."""
    degree = polynomial.bit_length() - 1
    return reflect(polynomial & (1 << degree) - 1, degree)


def _doubling(k: int) -> list[int]:
    table = reflected_table(LEAD_POLYNOMIAL, 8 * k)
    constant = LEAD_CONSTANT if 2 * k == LEAD_WINDOW else 0
    return [table[n] ^ constant for n in range(16)] + [table[n << 4] for n in range(16)]


def bit_matrix(table: Sequence[int]) -> int:
    """Return a linear map of bytes as the 8 x 8 bit matrix for GF2P8AFFINEQB: row i is byte 7 - i."""
    rows = [sum((table[1 << j] >> i & 1) << j for j in range(8)) for i in range(8)]
    return int.from_bytes(bytes(reversed(rows)), "little")


def fold_multipliers() -> list[int]:
    """Return x^(64 (7 - j) + 63) for the words j = 0 .. 7 of a window.

    A carry-less product of reflected words is the product times x in 128 reflected bits. The reduction
    divides by x^64. Hence 63.
    """
    return [reflect(power_of_x(64 * (7 - j) + 63, LOW_POLYNOMIAL), 64) for j in range(8)]


def reduction_multipliers() -> tuple[int, int]:
    """Return (1/P - 1)/x and (P - x^64 - 1)/x modulo x^64, where P is the low polynomial: Montgomery's
    reduction.

    Let V = H x^64 + L have a degree < 128, and let m = L / P mod x^64. Then V + m P is divisible by x^64, and
    the quotient H + m + floor(m (P - x^64) / x^64) is V x^-64 mod P. Both factors have the constant term 1.
    It is removed here and added back as an XOR. The product's own factor x makes up for the division by x.
    """
    mask = (1 << 64) - 1
    inverse = 1
    for _ in range(6):  # Newton: 1/P modulo x^2, x^4, ..., x^64; each step doubles the precision
        inverse = multiply(multiply(inverse, inverse), LOW_POLYNOMIAL) & mask
    return reflect(inverse >> 1, 64), reflect((LOW_POLYNOMIAL & mask) >> 1, 64)


def header_text() -> str:
    """Return the whole text of tables.h."""
    defines = [
        ("RDC_LEAD_WINDOW", f"{LEAD_WINDOW}"),
        ("RDC_LEAD_POLYNOMIAL", f"UINT64_C(0x{_reflected(LEAD_POLYNOMIAL):02x})"),
        ("RDC_LEAD_CONSTANT", f"0x{LEAD_CONSTANT:02x}"),
        ("RDC_LEAD_FEW", f"{LEAD_FEW}"),
        ("RDC_LOW_WINDOW", f"{LOW_WINDOW}"),
        ("RDC_LOW_POLYNOMIAL", f"UINT64_C(0x{_reflected(LOW_POLYNOMIAL):016x})"),
        ("RDC_FEW_FEATURES_BELOW", f"{FEW_FEATURES_BELOW}"),
        ("RDC_GOLDEN", f"UINT64_C(0x{GOLDEN:016x})"),
        ("RDC_TRAIT_COUNT", f"{TRAIT_COUNT}"),
        ("RDC_TRAIT_BYTES", f"{6 * TRAIT_COUNT // 8}"),
    ]
    return "\n".join(
        [
            "/* tables.h - constants of the kernel; written by scripts/kernel_tables.py, do not edit.",
            " * It derives them from the polynomials. */",
            "#ifndef RDC_TABLES_H",
            "#define RDC_TABLES_H",
            "",
            "#include <stdint.h>",
            "",
            *(f"#define {name} {value}" for name, value in defines),
            "",
            "/* No file uses all of them. */",
            "#define RDC_TABLE __attribute__((unused))",
            '#define RDC_COMPUTED __attribute__((visibility("hidden")))',
            "",
            "/* Computed by tables.c. Byte b times x^8 and x^128 modulo the polynomial of lead(). */",
            "extern RDC_COMPUTED uint8_t rdc_lead_carry[256], rdc_lead_leaving[256];",
            "/* In byte j, from the lowest on, b times x^(8 j). */",
            "extern RDC_COMPUTED uint64_t rdc_lead_powers[256];",
            "/* Byte j of a fingerprint, times x^64, and b times x^512, modulo the polynomial of low(). */",
            "extern RDC_COMPUTED uint64_t rdc_low_slice[8][256], rdc_low_leaving[256];",
            "/* The positions, from 1, of the bits set in a byte; then zeros. */",
            "extern RDC_COMPUTED uint16_t rdc_bit_positions[256][8];",
            "",
            _words("rdc_trait_multiplier", TRAIT_MULTIPLIERS),
            "/* Doubling k = 1, 2, 4, 8: n and n << 4 times x^(8 k); of k = 8 the first half XOR 0xe6. */",
            _rows_of("uint8_t", "rdc_lead_double", [_doubling(k) for k in (1, 2, 4, 8)]),
            "/* The same products as bit matrices, without the constant. */",
            _words(
                "rdc_lead_matrix",
                [bit_matrix(reflected_table(LEAD_POLYNOMIAL, 8 * k)) for k in (1, 2, 4, 8)],
            ),
            "/* Carry-less multiplication: what the words of a window are multiplied by; reduction. */",
            _words("rdc_low_fold", fold_multipliers()),
            _words("rdc_low_reduce", reduction_multipliers()),
            "#endif",
            "",
        ]
    )


def keys_text() -> str:
    """Return the whole text of keys.h."""
    defines = [
        ("RDC_SHINGLE_KEY_A", f"UINT64_C(0x{shingles.KEYS[0]:016x})"),
        ("RDC_SHINGLE_KEY_B", f"UINT64_C(0x{shingles.KEYS[1]:016x})"),
        ("RDC_SHINGLE_BASE", f"UINT64_C(0x{shingles.BASE:016x})"),
        ("RDC_SHINGLE_LIMIT", f"{shingles.SHINGLE_LIMIT}"),
        ("RDC_MARK_RUN", f"{shingles.MARK_RUN}"),
    ]
    return "\n".join(
        [
            "/* keys.h - constants of shingles; written by scripts/kernel_tables.py, do not edit. */",
            "#ifndef RDC_SHINGLES_KEYS_H",
            "#define RDC_SHINGLES_KEYS_H",
            "",
            "#include <stdint.h>",
            "",
            *(f"#define {name} {value}" for name, value in defines),
            "",
            "#endif",
            "",
        ]
    )


if __name__ == "__main__":
    main()
