"""Generates tables.h: every constant and table of the C kernel, derived from rdc.rabin."""

from __future__ import annotations

from collections.abc import Sequence

from rdc.kernel.constants import (
    FEW_FEATURES_BELOW,
    GOLDEN,
    LEAD_CONSTANT,
    LEAD_FEW,
    LEAD_POLYNOMIAL,
    LEAD_WINDOW,
    LOW_POLYNOMIAL,
    LOW_WINDOW,
    TRAIT_COUNT,
    TRAIT_MULTIPLIERS,
    bit_matrix,
    fold_multipliers,
    reduction_multipliers,
    reflected_table,
)

__all__ = ["header_text"]


def _lines(words: Sequence[str], per_line: int, indent: str) -> str:
    return f",\n{indent}".join(", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line))


def _bytes(name: str, values: Sequence[int]) -> str:
    words = [f"0x{value:02x}" for value in values]
    return (
        f"static const uint8_t {name}[{len(words)}] RDC_TABLE = {{\n    {_lines(words, 16, '    ')},\n}};\n"
    )


def _words(name: str, values: Sequence[int]) -> str:
    words = [f"UINT64_C(0x{value:016x})" for value in values]
    return (
        f"static const uint64_t {name}[{len(words)}] RDC_TABLE = {{\n    {_lines(words, 4, '    ')},\n}};\n"
    )


def _rows(name: str, rows: Sequence[Sequence[int]]) -> str:
    text = ",\n    ".join(
        f"{{{_lines([f'UINT64_C(0x{value:016x})' for value in row], 4, '     ')}}}" for row in rows
    )
    size = f"[{len(rows)}][{len(rows[0])}]"
    return f"static const uint64_t {name}{size} RDC_TABLE = {{\n    {text},\n}};\n"


def _rows_of(kind: str, name: str, rows: Sequence[Sequence[int]]) -> str:
    text = ",\n    ".join(f"{{{_lines([f'0x{value:02x}' for value in row], 16, '     ')}}}" for row in rows)
    size = f"[{len(rows)}][{len(rows[0])}]"
    return f"static const {kind} {name}{size} RDC_TABLE = {{\n    {text},\n}};\n"


def _bit_positions(byte: int) -> list[int]:
    positions = [i + 1 for i in range(8) if byte >> i & 1]
    return positions + [0] * (8 - len(positions))


def _doubling(k: int) -> list[int]:
    table = reflected_table(LEAD_POLYNOMIAL, 8 * k)
    constant = LEAD_CONSTANT if 2 * k == LEAD_WINDOW else 0
    return [table[n] ^ constant for n in range(16)] + [table[n << 4] for n in range(16)]


def _powers(byte: int) -> int:
    return sum(reflected_table(LEAD_POLYNOMIAL, 8 * j)[byte] << 8 * j for j in range(8))


def header_text() -> str:
    """Returns the whole text of tables.h."""
    defines = [
        ("RDC_LEAD_WINDOW", f"{LEAD_WINDOW}"),
        ("RDC_LEAD_CONSTANT", f"0x{LEAD_CONSTANT:02x}"),
        ("RDC_LEAD_FEW", f"{LEAD_FEW}"),
        ("RDC_LOW_WINDOW", f"{LOW_WINDOW}"),
        ("RDC_FEW_FEATURES_BELOW", f"{FEW_FEATURES_BELOW}"),
        ("RDC_GOLDEN", f"UINT64_C(0x{GOLDEN:016x})"),
        ("RDC_TRAIT_COUNT", f"{TRAIT_COUNT}"),
        ("RDC_TRAIT_BYTES", f"{6 * TRAIT_COUNT // 8}"),
    ]
    return "\n".join(
        [
            "/* tables.h - constants of the kernel; written by scripts/kernel_tables, do not edit.",
            " * rdc/kernel/generate_tables.py derives them from the polynomials. */",
            "#ifndef RDC_TABLES_H",
            "#define RDC_TABLES_H",
            "",
            "#include <stdint.h>",
            "",
            *(f"#define {name} {value}" for name, value in defines),
            "",
            "/* No file uses all of them. */",
            "#define RDC_TABLE __attribute__((unused))",
            "",
            _words("rdc_trait_multiplier", TRAIT_MULTIPLIERS),
            "/* b times x^8 and b times x^128 modulo the polynomial of lead(). */",
            _bytes("rdc_lead_carry", reflected_table(LEAD_POLYNOMIAL, 8)),
            _bytes("rdc_lead_leaving", reflected_table(LEAD_POLYNOMIAL, 8 * LEAD_WINDOW)),
            "/* In byte j, from the lowest on, b times x^(8 j). */",
            _words("rdc_lead_powers", [_powers(byte) for byte in range(256)]),
            "/* Byte j of a fingerprint, times x^64, modulo the polynomial of low(). */",
            _rows("rdc_low_slice", [reflected_table(LOW_POLYNOMIAL, 64 + 8 * (7 - j)) for j in range(8)]),
            "/* b times x^512 modulo the polynomial of low(). */",
            _words("rdc_low_leaving", reflected_table(LOW_POLYNOMIAL, 8 * LOW_WINDOW)),
            "/* Doubling k = 1, 2, 4, 8: n and n << 4 times x^(8 k); of k = 8 the first half XOR 0xe6. */",
            _rows_of("uint8_t", "rdc_lead_double", [_doubling(k) for k in (1, 2, 4, 8)]),
            "/* The same products as bit matrices, without the constant. */",
            _words(
                "rdc_lead_matrix",
                [bit_matrix(reflected_table(LEAD_POLYNOMIAL, 8 * k)) for k in (1, 2, 4, 8)],
            ),
            "/* The positions, from 1, of the bits set in a byte. */",
            _rows_of("uint16_t", "rdc_bit_positions", [_bit_positions(byte) for byte in range(256)]),
            "/* Carry-less multiplication: what the words of a window are multiplied by; reduction. */",
            _words("rdc_low_fold", fold_multipliers()),
            _words("rdc_low_reduce", reduction_multipliers()),
            "#endif",
            "",
        ]
    )
