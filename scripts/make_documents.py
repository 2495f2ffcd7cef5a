"""Makes many documents of some real ones: passages, edits of passages, splices of two, and copies.

Everything follows from the seed. Of all texts 55 per cent are passages of a page, 200 to 4,000 characters
long. 25 per cent are passages in which some words are others, 10 are halves of two passages, 5 are copies,
and 5 are passages with other case and punctuation. Half of the texts lie in one JSONL file, a quarter in 16
smaller ones, a fifth in a Parquet file, and the rest in plain files.
Command: .venv/bin/python -m scripts.make_documents PAGES.jsonl OUT COUNT [--seed=N]
PAGES.jsonl: lines with `text`, such as scripts/fetch_documents.py writes.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow
from pyarrow import parquet

SHARDS = 16
GROUP_ROWS = 2_000
"""Rows of a row group of the Parquet file."""
FOLDER_FILES = 500
"""Plain files of a directory."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write_documents(Maker(read_pages(given.pages), given.seed), given.out, given.count)


def read_pages(path: Path) -> list[str]:
    """Return the texts of JSON lines."""
    with path.open() as file:
        return [json.loads(line)["text"] for line in file]


class Maker:
    """The document of each number. Any of them can be made without the others."""

    def __init__(self, pages: list[str], seed: int) -> None:
        self._pages = pages
        self._seed = seed

    def document(self, number: int) -> str:
        rng = random.Random(f"{self._seed} {number}")
        kind = rng.random()
        if kind < 0.55:
            return self._passage(number)
        other = self._passage(rng.randrange(number + 1))
        if kind < 0.80:
            return _edited(other, rng)
        if kind < 0.90:
            second = self._passage(rng.randrange(number + 1))
            return other[: len(other) // 2] + second[len(second) // 2 :]
        return other if kind < 0.95 else other.upper().replace(", ", "; ")

    def _passage(self, number: int) -> str:
        rng = random.Random(f"{self._seed} passage {number}")
        page = rng.choice(self._pages)
        start = rng.randrange(max(1, len(page) - 200))
        start = max(0, page.find(" ", start, start + 100))
        return page[start : start + rng.randint(200, 4_000)]


def _edited(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for _ in range(rng.randint(1, 2 + len(words) // 20)):
        words[rng.randrange(len(words))] = f"edit{rng.randrange(1000)}"
    return " ".join(words)


def write_documents(maker: Maker, out: Path, count: int) -> None:
    """Write documents 0 to `count` below the directory `out`."""
    out.mkdir(parents=True, exist_ok=True)
    bounds = [count * share // 100 for share in (50, 75, 95, 100)]
    _write_lines(out / "large.jsonl", maker, range(bounds[0]))
    for shard in range(SHARDS):
        _write_lines(out / f"shard-{shard:02}.jsonl", maker, range(bounds[0] + shard, bounds[1], SHARDS))
    _write_parquet(out / "rows.parquet", maker, range(bounds[1], bounds[2]))
    for number in range(bounds[2], bounds[3]):
        folder = out / "files" / f"{number // FOLDER_FILES}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(maker.document(number))


def _write_lines(path: Path, maker: Maker, numbers: range) -> None:
    with path.open("w") as file:
        for number in numbers:
            file.write(json.dumps({"number": number, "text": maker.document(number)}) + "\n")


def _write_parquet(path: Path, maker: Maker, numbers: range) -> None:
    schema = pyarrow.schema([("text", pyarrow.string())])
    with parquet.ParquetWriter(path, schema) as writer:
        for texts in _groups(maker, numbers):
            writer.write_table(pyarrow.table({"text": texts}, schema))


def _groups(maker: Maker, numbers: range) -> Iterator[list[str]]:
    for first in range(0, len(numbers), GROUP_ROWS):
        yield [maker.document(number) for number in numbers[first : first + GROUP_ROWS]]


if __name__ == "__main__":
    main()
