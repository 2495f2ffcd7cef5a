"""Writes what the kernel knows about Unicode's characters, from the files of the Unicode Character Database.

Debian's package unicode-data has these files in /usr/share/unicode. The version they have is pinned: shingles
are equal on every Python, so a newer version changes features and needs a reason. The output is
scripts/unicode_data.py, of which scripts/kernel_tables.py makes the header of the kernel.
Command: python scripts/unicode_tables.py [FOLDER]
"""

from __future__ import annotations

import subprocess
import sys
from base64 import b85encode
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
    """Yields the code points that have one of the values."""
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
    """The kind of a folded character, as tests/reference/shingles.py numbers them."""
    category = database.category[code]
    if category[0] == "M" or 0x1160 <= code < 0x1200 or 0xD7B0 <= code < 0xD800:
        return 3
    if category in ("Zs", "Zl", "Zp", "Cc", "Cf", "Cs") or (category[0] in "PS" and category != "Pc"):
        return 0
    return 2 if code in database.alone else 1


def unicode_lines(database: Database) -> Iterator[str]:
    """Yields the lines that tests/reference/characters.py reads: ranges, an empty line, foldings."""
    rows = ((kind(database, code), database.order[code]) for code in range(LAST + 1))
    length = 0
    for (what, order), run in groupby(rows):
        assert what == 3 or not order
        yield f"{length} {what} {order}"
        length = sum(1 for _ in run)
    yield ""
    code = first = 0
    for one in range(LAST + 1):
        folded = fold(database, one)
        if folded == (one,):
            continue
        fields = [
            str(one - code),
            *(str(part - first) for part in folded[:1]),
            *(f"{part:x}" for part in folded[1:]),
        ]
        code, first = one, folded[0] if folded else first
        yield " ".join(fields)


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")
    database = Database(folder)
    packed = b85encode(compress("\n".join(unicode_lines(database)).encode(), 9)).decode()
    lines = "\n".join(f'    "{packed[at : at + 100]}"' for at in range(0, len(packed), 100))
    (TOP / "scripts/unicode_data.py").write_text(
        f'''"""Unicode's characters, pinned; written by scripts/unicode_tables.py, do not edit."""

from __future__ import annotations

__all__ = ["PACKED", "SOURCE", "VERSION"]

VERSION = "{database.version}"

SOURCE = "{database.digest.hexdigest()}"
"""SHA-256 of {", ".join(FILES[:-1])}
and {FILES[-1]}, one after another."""

PACKED = (
{lines}
)
"""Text, compressed by zlib, in base 85. tests/reference/characters.py reads it."""
'''
    )
    subprocess.run([sys.executable, "-m", "scripts.kernel_tables"], cwd=TOP, check=True)


if __name__ == "__main__":
    main()
