"""Write what the kernel knows about Unicode's characters, from the files of the Unicode Character Database.

Debian's package unicode-data has these files in /usr/share/unicode. The version they have is pinned: shingles
are equal on every Python, so a newer version changes features and needs a reason. The output is
rdc/kernel/unicode.bin; rdc/kernel/unicode_data.py describes it.
Command: python scripts/unicode_tables.py [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from zlib import compress

TOP = Path(__file__).parents[1]
HANGUL = range(0xAC00, 0xD7A4)
LAST = 0x10FFFF

FILES = ("UnicodeData.txt", "CaseFolding.txt", "Scripts.txt", "LineBreak.txt", "DerivedCoreProperties.txt")

ALONE_SCRIPTS = {"Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Tangut", "Nushu", "Khitan_Small_Script"}
"""Scripts without spaces between words; those of South East Asia have the line break class SA."""

ZERO_WIDTH_SPACE = 0x200B


class Database:
    """The files, read."""

    def __init__(self, folder: Path) -> None:
        self.digest = sha256()
        texts = []
        for name in FILES:
            content = (folder / name).read_bytes()
            self.digest.update(content)
            texts.append(content.decode())
        data, folding, scripts, breaks, derived = texts
        self.version = scripts.split("Scripts-")[1].split(".txt")[0]
        self.category = ["Cn"] * (LAST + 1)
        self.order = [0] * (LAST + 1)
        self.parts: dict[int, list[int]] = {}
        first = 0
        for line in data.splitlines():
            fields = line.split(";")
            code = int(fields[0], 16)
            if fields[1].endswith("First>"):
                first = code
            for one in range(first if fields[1].endswith("Last>") else code, code + 1):
                self.category[one], self.order[one] = fields[2], int(fields[3])
            if fields[5]:
                self.parts[code] = [int(part, 16) for part in fields[5].split() if part[0] != "<"]
        self.folding = {
            int(fields[0], 16): [int(part, 16) for part in fields[2].split()]
            for fields in (line.split("#")[0].split("; ") for line in folding.splitlines())
            if len(fields) > 2 and fields[1] in "CF"
        }
        self.alone = set(_codes(scripts, ALONE_SCRIPTS)) | set(_codes(breaks, {"SA"}))
        self.ignored = set(_codes(derived, {"Default_Ignorable_Code_Point"})) - {ZERO_WIDTH_SPACE}


def _codes(text: str, values: set[str]) -> Iterator[int]:
    """Yield the code points that have one of the values."""
    for line in text.splitlines():
        fields = [field.strip() for field in line.split("#")[0].split(";")]
        if len(fields) > 1 and fields[1] in values:
            first, _, last = fields[0].partition("..")
            yield from range(int(first, 16), int(last or first, 16) + 1)


def fold(database: Database, code: int) -> tuple[int, ...]:
    """One character, folded and decomposed until nothing changes, without what is ignored."""
    if code in database.ignored:
        return ()
    if code in HANGUL:
        return (code,)
    for steps in (database.folding, database.parts):
        if code in steps:
            return tuple(end for part in steps[code] for end in fold(database, part))
    return (code,)


def kind(database: Database, code: int) -> int:
    """Return the kind of a folded character, as tests/reference/shingles.py numbers them."""
    category = database.category[code]
    if category[0] == "M" or 0x1160 <= code < 0x1200 or 0xD7B0 <= code < 0xD800:
        return 3
    if category in ("Zs", "Zl", "Zp", "Cc", "Cf", "Cs") or (category[0] in "PS" and category != "Pc"):
        return 0
    return 2 if code in database.alone else 1


def columns(database: Database) -> list[int]:
    """Return the numbers whose order rdc/kernel/unicode_data.py states."""
    lengths, properties, steps, counts, firsts, more = [], [], [], [], [], []
    for (what, order), run in groupby(
        (kind(database, code), database.order[code]) for code in range(LAST + 1)
    ):
        assert what == 3 or not order
        lengths.append(sum(1 for _ in run))
        properties.append(what | order << 2)
    code = first = 0
    for one in range(LAST + 1):
        folded = fold(database, one)
        if folded == (one,):
            continue
        difference = folded[0] - first if folded else 0
        steps.append(one - code)
        counts.append(len(folded))
        firsts.append(2 * difference if difference >= 0 else -2 * difference - 1)
        more += folded[1:]
        code, first = one, first + difference
    return [len(lengths), len(steps), *lengths, *properties, *steps, *counts, *firsts, *more]


def varint(number: int) -> bytes:
    """Return the number in unsigned LEB128."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*groups, number))


def packed(numbers: list[int], version: str, source: str) -> bytes:
    """Return the whole of unicode.bin."""
    head = f"{version} {source} {len(numbers)}\n"
    return head.encode() + compress(b"".join(map(varint, numbers)), 9)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
    database = Database(folder)
    data = packed(columns(database), database.version, database.digest.hexdigest())
    (TOP / "rdc/kernel/unicode.bin").write_bytes(data)


if __name__ == "__main__":
    main()
