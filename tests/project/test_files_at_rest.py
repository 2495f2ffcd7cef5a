"""The files that rdc writes and reads again: one of each version is kept, and every later rdc must read it.

docs/contributing/formats.md has the table. A new version adds a fixture, and drops the oldest of three.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import rdc
from rdc.catalog import database
from rdc.catalog.catalog import Catalog
from rdc.documents.parts import part_file
from rdc.duplicates import journal
from rdc.errors import RdcError
from rdc.library.scans import merge
from rdc.library.similar import merge_documents
from rdc.similarity import index
from rdc.store import place
from rdc.survey.parts import sections
from rdc.uniting import ancestor_file
from tests.support.project_paths import TOP

FIXTURES = TOP / "fixtures" / "at_rest"


def read_index(path: Path) -> object:
    with path.open("rb") as file:
        return len(rdc.SimilarityIndex.load(file))


def read_part(path: Path) -> object:
    return merge([path]).files


def read_documents(path: Path) -> object:
    summary = merge_documents([path]).summary
    return summary.documents, summary.grouped


def read_dedupe_journal(path: Path) -> object:
    return [change.path for change in journal.read_journal(str(path).encode()).changes]


def read_ancestor(path: Path) -> object:
    return list(ancestor_file.decode(path.read_bytes()).paths)


READERS: dict[str, tuple[Callable[[Path], object], object]] = {
    "dedupe-1.rdcjournal": (read_dedupe_journal, [b"b", b"d/c"]),
    "dedupe-2.rdcjournal": (read_dedupe_journal, [b"b", b"d/c"]),
    "dedupe-3.rdcjournal": (read_dedupe_journal, [b"d/c", b"b"]),
    "dupes-1.rdcjournal": (read_dedupe_journal, [b"b", b"d/c"]),
    "index-1.rdcx": (read_index, 3),
    "documents-1.rdcdocs": (read_documents, (5, 2)),
    "documents-2.rdcdocs": (read_documents, (5, 2)),
    "unite-1.ancestor": (read_ancestor, [b"a", b"d", b"d/e", b"d/l"]),
    "part-2.rdcscan": (read_part, 4),
    "part-3.rdcscan": (read_part, 4),
    "part-4.rdcscan": (read_part, 4),
}
"""How each is read, and what comes of it."""

VERSIONS = {
    "catalog.sqlite": database.SCHEMA_VERSION,
    "ancestor of `rdc unite`": ancestor_file.MAGIC[-1],
    "journal of `dedupe` and `dupes`": journal.VERSION,
    "index of `SimilarityIndex.save`": index.VERSION,
    "`.rdcscan` of `scan -o`": sections.MAGIC[-1],
    "`.rdcdocs` of `similar --text -o`; 2 for a slice": part_file.MAGIC_OF_SLICES[-1],
    "directory of `store put`": place.VERSION,
}


def copied(name: str, content: bytes, tmp_path: Path) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("name", READERS)
def test_the_kept_file_is_read(name: str, tmp_path: Path) -> None:
    read, expected = READERS[name]
    assert read(copied(name, (FIXTURES / name).read_bytes(), tmp_path)) == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", READERS)
def test_damage_is_named_and_never_a_traceback(name: str, tmp_path: Path) -> None:
    """Every truncation, and 300 flips of bits. A journal that was cut is read up to the cut."""
    read, expected = READERS[name]
    whole = (FIXTURES / name).read_bytes()
    rng = random.Random(name)
    damaged = [whole[:size] for size in range(0, len(whole), max(1, len(whole) // 200))]
    for _ in range(300):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        damaged.append(bytes(flipped))
    for content in damaged:
        try:
            found = read(copied(name, content, tmp_path))
        except RdcError as error:
            assert "\n" not in str(error)
        else:
            # Only names and counts of files are compared; a flip elsewhere in a part may be another figure.
            assert isinstance(found, type(expected))


@pytest.mark.parametrize("name", READERS)
def test_a_newer_version_is_refused_by_name(name: str, tmp_path: Path) -> None:
    read, _ = READERS[name]
    content = (FIXTURES / name).read_bytes()
    newer = {
        ".rdcx": lambda: content.replace(b"RDCX\x01", b"RDCX\x09", 1),
        ".ancestor": lambda: b"RDCUNIT\x09" + content[8:],
        ".rdcdocs": lambda: b"RDCDOCS\x09" + content[8:],
        ".rdcscan": lambda: b"RDCPART\x09" + content[8:],
        ".rdcjournal": lambda: _head(content, 9),
    }[Path(name).suffix]()
    assert newer != content
    with pytest.raises(RdcError):
        read(copied(name, newer, tmp_path))


def _head(content: bytes, version: int) -> bytes:
    from zlib import crc32

    head, _, rest = content.partition(b"\n")
    text = re.sub(rb'"v":\d', b'"v":%d' % version, head.rpartition(b" ")[0])
    return text + b" %08x\n" % crc32(text) + rest


@pytest.mark.parametrize(("version", "entries"), [(database.SCHEMA_VERSION, (1,)), (9, None)])
def test_the_catalog_of_this_version_is_read_and_another_is_left_alone(
    version: int, entries: tuple[int] | None, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    path = copied("catalog.sqlite", (FIXTURES / "catalog-1.sqlite").read_bytes(), tmp_path)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with Catalog(tmp_path) as catalog:
        catalog.remember_in_sync(bytes(32))
        catalog.flush()
        found = catalog.read(lambda each: each.execute("SELECT count(*) FROM signature").fetchone())
        notices = catalog.take_notices()
    assert found == entries
    if entries is None:
        assert path.read_bytes() == before
        assert "it is of version 9, this rdc knows" in notices[0]


def test_the_table_of_the_manual_has_each_with_its_version() -> None:
    text = (
        (TOP / "docs/contributing/formats.md")
        .read_text()
        .partition("## Files at rest")[2]
        .partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (.+?) \| (\d+) \| (\d+) ", text, re.MULTILINE)
    assert {name: int(version) for name, version, _ in rows} == VERSIONS
    assert all(int(version) - int(oldest) <= 2 for _, version, oldest in rows)


def test_a_fixture_of_each_version_that_is_read_is_kept() -> None:
    kept = {path.name for path in FIXTURES.iterdir()}
    assert kept == {*READERS, f"catalog-{database.SCHEMA_VERSION}.sqlite"}
