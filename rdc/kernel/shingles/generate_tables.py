"""Generates keys.h, the constants of shingles, and tables.h, the characters of Unicode."""

from __future__ import annotations

from array import array

from rdc.kernel.shingles import reference, unicode_data
from rdc.kernel.shingles.characters import characters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["keys_text", "tables_text"]

BLOCK = 128
"""Characters a block of the lookup; equal blocks are one."""

HANGUL = range(0xAC00, 0xD7A4)
HANGUL_ENTRY, IGNORED_ENTRY = 0xFFFF, 0xFFFE


def keys_text() -> str:
    """Returns the whole text of keys.h."""
    return _header(
        "keys.h - constants of shingles; written by scripts/unicode_tables.py, do not edit.",
        ("RDC_SHINGLE_KEY_A", f"UINT64_C(0x{reference.KEYS[0]:016x})"),
        ("RDC_SHINGLE_KEY_B", f"UINT64_C(0x{reference.KEYS[1]:016x})"),
        ("RDC_SHINGLE_BASE", f"UINT64_C(0x{reference.BASE:016x})"),
        ("RDC_SHINGLE_LIMIT", f"{reference.SHINGLE_LIMIT}"),
        ("RDC_MARK_RUN", f"{reference.MARK_RUN}"),
    )


def tables_text() -> str:
    """Returns the whole text of tables.h."""
    properties, entries, folded = _entries()
    blocks: dict[bytes, int] = {}
    numbers = [
        blocks.setdefault(entries[at : at + BLOCK].tobytes(), len(blocks))
        for at in range(0, len(entries), BLOCK)
    ]
    values = [value for block in blocks for value in array("H", block)]
    return _header(
        "tables.h - characters of Unicode; written by scripts/unicode_tables.py, do not edit. Unicode\n"
        f" * {unicode_data.VERSION}, SHA-256 {unicode_data.SOURCE}",
        ("RDC_CHARACTER_PROPERTIES", f"{len(properties)}"),
        ("RDC_CHARACTER_HANGUL", f"0x{HANGUL_ENTRY:x}"),
        ("RDC_CHARACTER_IGNORED", f"0x{IGNORED_ENTRY:x}"),
        body=[
            "/* Kind, and from bit 8 on the combining class. */",
            _table("uint16_t", "rdc_character_properties", properties),
            "/* The block of each 128 characters. */",
            _table("uint16_t", "rdc_character_blocks", numbers),
            "/* An index into the properties, behind them one into the foldings, or a value from above. */",
            _table("uint16_t", "rdc_character_entries", values),
            "/* What characters fold to: code point, from bit 21 on the combining class, from bit 29 on the",
            " * kind; bit 31 is set in the last one. */",
            _table("uint32_t", "rdc_character_foldings", folded),
        ],
    )


def _header(title: str, *defines: tuple[str, str], body: Sequence[str] = ()) -> str:
    guard = f"RDC_SHINGLES_{title.partition('.h')[0].upper()}_H"
    return "\n".join(
        [
            f"/* {title} */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#include <stdint.h>",
            "",
            *(f"#define {name} {value}" for name, value in defines),
            "",
            *body,
            "#endif",
            "",
        ]
    )


def _entries() -> tuple[list[int], array[int], list[int]]:
    """The different properties, the entry of each code point, and the foldings."""
    tables = characters()
    properties: dict[int, int] = {}
    entries: array[int] = array("H")
    bounds = [*tables.firsts, 0x110000]
    for i, (kind, order) in enumerate(zip(tables.kinds, tables.orders, strict=True)):
        number = properties.setdefault(kind | order << 8, len(properties))
        entries.extend([number] * (bounds[i + 1] - bounds[i]))
    for code in HANGUL:
        entries[code] = HANGUL_ENTRY
    starts: dict[tuple[int, ...], int] = {}
    folded: list[int] = []
    for code, parts in tables.foldings.items():
        if not parts:
            entries[code] = IGNORED_ENTRY
            continue
        if parts not in starts:
            starts[parts] = len(folded)
            folded += [part | tables.order(part) << 21 | tables.kind(part) << 29 for part in parts]
            folded[-1] |= 1 << 31
        entries[code] = len(properties) + starts[parts]
    return list(properties), entries, folded


def _table(kind: str, name: str, values: Sequence[int]) -> str:
    text = ",".join(map(str, values))
    lines, at = [], 0
    while at < len(text):
        stop = len(text) if len(text) - at <= 116 else text.rindex(",", at, at + 116) + 1
        lines.append(text[at:stop])
        at = stop
    body = "\n    ".join(lines)
    return f"static const {kind} {name}[{len(values)}] = {{\n    {body},\n}};"
