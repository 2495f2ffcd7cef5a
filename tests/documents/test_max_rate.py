"""--max-rate of a search of documents: all that is read is counted before, in the order of the file."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from rdc.files.depth import ReadRate
from tests.support.running.syncing import command

TEXTS = [" ".join([str(Random(row).random())] * 300) for row in range(400)]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What was asked for, in bytes."""
    sizes: list[int] = []
    monkeypatch.setattr(ReadRate, "take", lambda _, size: sizes.append(size))
    return sizes


def write(top: Path, ending: str) -> int:
    """Writes TEXTS in files of this kind. Returns their bytes."""
    top.mkdir()
    if ending == ".txt":
        for row, text in enumerate(TEXTS):
            (top / f"{row}.txt").write_text(text)
    elif ending == ".jsonl":
        (top / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    else:
        import pyarrow
        from pyarrow import parquet

        table = pyarrow.table({"text": TEXTS, "other": [text[::-1] for text in TEXTS]})
        parquet.write_table(table, top / "a.parquet", compression="none", use_dictionary=False)
    return sum(path.stat().st_size for path in top.iterdir())


@pytest.mark.parametrize(("ending", "part"), [(".txt", 1.0), (".jsonl", 1.0), (".parquet", 0.5)])
def test_what_is_read_is_counted(tmp_path: Path, taken: list[int], ending: str, part: float) -> None:
    """Of a Parquet file only one column of two is read. The last read of a file may find less than it asked
    for."""
    size = write(tmp_path / "top", ending)
    bounded = command("similar", "--text", "--json", "--max-rate=5M", "--depth=2", tmp_path / "top")
    assert bounded.code == 0, bounded.err
    assert part * size <= sum(taken) <= part * size + (3 << 20)
    free = command("similar", "--text", "--json", tmp_path / "top")
    assert (
        free.out.splitlines()[-1].split('"seconds"')[0] == bounded.out.splitlines()[-1].split('"seconds"')[0]
    )
