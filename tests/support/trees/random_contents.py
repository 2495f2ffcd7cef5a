"""Contents of files as they are found on disks, and what becomes of them: all from one random generator."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import random
import re
import sqlite3
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path

__all__ = ["Contents", "libraries", "shifted_code", "sources"]

PAGE = 4096
LARGEST = 3 << 20
"""Bytes of the largest content: of several trees in turn, that is what a second has time for."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_NEAR_CALL = re.compile(rb"[\xe8\xe9]", re.DOTALL)


@cache
def libraries(place: Path) -> list[Path]:
    """Machine code below `place`, or what this very Python has loaded from."""
    return sorted(path for path in place.rglob("*.so*") if path.is_file() and path.stat().st_size > 20_000)


@cache
def sources(place: Path) -> list[Path]:
    """Text below `place`."""
    return sorted(path for path in place.rglob("*.py") if path.is_file() and path.stat().st_size > 200)


def shifted_code(data: bytes, at: int, added: bytes) -> bytes:
    """`added` in the middle of x86 code: calls and jumps over it still meet their targets."""
    code, grown = bytearray(data), len(added)
    for match in _NEAR_CALL.finditer(data):
        place = match.start()
        if place + 5 > len(data):
            break
        (distance,) = struct.unpack_from("<i", data, place + 1)
        target = place + 5 + distance
        if not 0 <= target < len(data) or (place < at) == (target < at):
            continue
        moved = distance + (grown if target >= at else -grown)
        struct.pack_into("<i", code, place + 1, moved)
    return bytes(code[:at]) + added + bytes(code[at:])


class Contents:
    """New contents, and edited ones. Contents that were made are made again, so that files share them."""

    def __init__(self, rng: random.Random, samples: Path | None = None) -> None:
        self._rng = rng
        standard = Path(os.__file__).parent
        self._texts: Sequence[Path] = sources(samples) if samples else sorted(standard.glob("*.py"))
        self._codes: Sequence[Path] = libraries(samples or Path(sys.prefix)) or [Path(sys.executable)]
        self._made: list[bytes] = []
        self._kinds: Sequence[Callable[[], bytes]] = (
            self._tiny, self._tiny, self._text, self._text, self._text, self._code, self._database,
            self._archive, self._table, self._noise, self._repeated, lambda: b"",
        )  # fmt: skip

    def new(self) -> bytes:
        if self._made and self._rng.random() < 0.1:
            return self._rng.choice(self._made)
        data = self._rng.choice(self._kinds)()[:LARGEST]
        self._made = [*self._made[-20:], data]
        return data

    def small_text(self) -> bytes:
        """A file of a source tree: many of these travel together."""
        return self._text()[: self._rng.choice((300, 3_000, 20_000))]

    def _size(self) -> int:
        """Return a size: mostly a few kilobytes, sometimes more than a megabyte."""
        return int(min(LARGEST, self._rng.lognormvariate(9.5, 1.8)))

    def _tiny(self) -> bytes:
        return self._rng.randbytes(self._rng.choice((1, 2, 15, 63, 64, 65, 200, 1_000)))

    def _text(self) -> bytes:
        text = self._rng.choice(self._texts).read_bytes()
        start = self._rng.randrange(len(text))
        return text[start : start + self._size()] if self._rng.random() < 0.5 else text

    def _code(self) -> bytes:
        path = self._rng.choice(self._codes)
        size, wanted = path.stat().st_size, max(30_000, self._size() * 8)
        with path.open("rb") as file:
            file.seek(
                self._rng.choice((0, self._rng.randrange(max(1, size - wanted)))) if size > wanted else 0
            )
            return file.read(wanted)

    def _database(self) -> bytes:
        rows = self._rng.choice((5, 200, 3_000))
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute("create table t (k integer primary key, name text, data blob)")
            database.executemany(
                "insert into t values (?, ?, ?)",
                ((n, f"row {n}", self._rng.randbytes(self._rng.randrange(200))) for n in range(rows)),
            )
            return database.serialize()

    def _archive(self, plain: bytes | None = None) -> bytes:
        plain = self._text() + self._text() if plain is None else plain
        match self._rng.randrange(3):
            case 0:
                return gzip.compress(plain, 6, mtime=0)
            case 1:
                return lzma.compress(plain, preset=1)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(4):
                part = plain[number * len(plain) // 4 : (number + 1) * len(plain) // 4]
                archive.writestr(zipfile.ZipInfo(f"part{number}", _EPOCH), part)
        return packed.getvalue()

    def _table(self) -> bytes:
        """Rows of 24 bytes with rising offsets, as relocations are."""
        offset, rows = 0, []
        for _ in range(self._size() // 24 + 1):
            offset += self._rng.choice((8, 8, 8, 16, 24, 400))
            rows.append(struct.pack("<QQq", offset, 8, offset * 2 + 4096))
        return b"".join(rows)

    def _noise(self) -> bytes:
        return self._rng.randbytes(self._size())

    def _repeated(self) -> bytes:
        piece = self._rng.choice((b"\0", b"\0", b"ab", self._rng.randbytes(100), self._rng.randbytes(9_000)))
        return (piece * (self._size() // len(piece) + 1))[: self._size() or 1]

    # What becomes of them

    def edited(self, data: bytes) -> bytes:
        """Return another version of `data`, as the program that made it would write it, or any other."""
        rng = self._rng
        if not data or rng.random() < 0.05:
            return self.new()
        if rng.random() < 0.5:
            if data.startswith(b"SQLite format 3\0") and len(data) % PAGE == 0:
                return self._updated(data)
            if data.startswith(b"\x1f\x8b"):
                return self._repacked(data)
            if data.startswith(b"\x7fELF") or len(data) > 200_000:
                return self._relinked(data)
        for _ in range(rng.choice((1, 1, 1, 2, 5, 40))):
            data = self._edit(data)
        return data[:LARGEST]

    def _edit(self, data: bytes) -> bytes:
        rng, size = self._rng, len(data)
        at, count = rng.randint(0, size), rng.choice((1, 3, 60, 700, 5_000, 70_000))
        match rng.randrange(10):
            case 0:
                return data[:at] + rng.randbytes(min(count, 5_000)) + data[at:]
            case 1:
                return data[:at] + data[at + count :]
            case 2:
                return data[:at] + rng.randbytes(count) + data[at + count :]
            case 3:
                return data + self._text()[:count]
            case 4:
                return data[:at]
            case 5:
                return data[at : at + count] + data[:at] + data[at + count :]
            case 6:
                changed = bytearray(data)
                for _ in range(rng.choice((1, 5, 50))):
                    page = rng.randrange(size // PAGE + 1) * PAGE + rng.randrange(PAGE)
                    changed[page : page + 16] = rng.randbytes(len(changed[page : page + 16]))
                return bytes(changed)
            case 7:
                return data[:at] + bytes(count) + data[at + count :]
            case 8:
                return data.replace(data[at : at + 4], rng.randbytes(rng.choice((3, 4, 4, 6))), 100) or data
        return data[:at] + data[at : at + count] + data[at:]

    def _updated(self, data: bytes) -> bytes:
        """Rows here and there; some are gone, and some are new."""
        with closing(sqlite3.connect(":memory:")) as database:
            try:
                database.deserialize(data)
                keys = [key for (key,) in database.execute("select k from t")]
                for key in self._rng.sample(keys, min(len(keys), self._rng.choice((1, 10, 100)))):
                    if self._rng.random() < 0.1:
                        database.execute("delete from t where k = ?", (key,))
                    else:
                        database.execute("update t set data = ? where k = ?", (self._rng.randbytes(80), key))
                database.commit()
                return database.serialize()
            except sqlite3.DatabaseError:  # another edit came before
                return self._edit(data)

    def _repacked(self, data: bytes) -> bytes:
        try:
            return self._archive(self._edit(gzip.decompress(data)))
        except (OSError, EOFError, zlib.error):
            return self._edit(data)

    def _relinked(self, data: bytes) -> bytes:
        for _ in range(self._rng.choice((1, 3, 10))):
            added = self._rng.randbytes(16 * self._rng.randint(1, 20))
            data = shifted_code(data, self._rng.randrange(len(data)), added)
        return data
