"""A store of each version that was ever written is restored, and PACKS.md says what is in it."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

import rdc.store
from rdc.store.place import VERSION, PackStore
from rdc.store.reader import StoreReader
from tests.support.project_paths import TOP
from tests.support.store.stores import read_alone, state_of

SONG = b"".join(b"%d green bottles hanging on the wall\n" % number for number in range(6000))
MANUAL = (Path(rdc.store.__file__).parent / "PACKS.md").read_text()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with tarfile.open(TOP / "fixtures" / "stores" / "1.tar") as archive:
        archive.extractall(tmp_path / "st", filter="data")
    return tmp_path / "st"


def test_a_fixture_of_each_version_is_kept() -> None:
    assert sorted(os.listdir(TOP / "fixtures" / "stores")) == [f"{one}.tar" for one in range(1, VERSION + 1)]


@pytest.mark.parametrize("number", [1, 2])
def test_the_kept_store_is_restored(store: Path, tmp_path: Path, number: int) -> None:
    out = tmp_path / "out"
    read_alone(store, number, out)
    song = SONG if number == 1 else SONG.replace(b"5000 green", b"5000 blue")
    assert (out / "docs" / "song").read_bytes() == song
    assert (out / "empty").exists() == (number == 1)
    assert os.getxattr(out / "zero", "user.note") == b"value"
    assert (out / "second name").samefile(out / "docs" / "noise")
    assert (out / "fifo").is_fifo()
    assert (out / "docs" / "noise").stat().st_size == 30_000 + 9 * (number - 1)
    assert os.readlink(out / "link") == "docs/song"
    assert os.fsdecode(b"not \xff utf-8") in os.listdir(out)
    assert len(state_of(out)) == 11 - number


def test_the_worked_example_is_that_store(store: Path) -> None:
    (pack,) = [path for path in store.rglob("*.pack") if path.stat().st_size < 1000]
    data = pack.read_bytes()
    example = MANUAL.partition("```\n")[2].partition("```")[0]
    shown = "".join(line[10:50].replace(" ", "") for line in example.splitlines())
    assert bytes.fromhex(shown) == data[-64:]
    assert pack.name in MANUAL
    with PackStore.open(os.fsencode(store)) as opened:
        reader = StoreReader(opened)
        (second,) = [one for one in reader.packs if one.size == len(data)]
        directory = reader.directory(second)
        assert list(directory.stored_sizes) == [28, 35, 195]
        assert opened.head.id.hex() in MANUAL
        assert opened.head.key.hex() in MANUAL
        for key in (directory.keys[:16], directory.bases_of(0)):
            assert key.hex() in MANUAL
        assert opened.snapshot(2).tree.keys.hex() in MANUAL
        reader.close()


def test_the_independent_reader_is_short_and_knows_nothing_of_rdc() -> None:
    text = (TOP / "scripts" / "read_store.py").read_text()
    assert len(text.splitlines()) <= 200
    assert "import rdc" not in text
    assert "from rdc" not in text
