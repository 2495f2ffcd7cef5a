"""The number of documents that `rdc similar --text` searches in a second of CPU time, from Parquet and from
JSONL.

Documents are the text of the pages that scripts/fetch_documents.py fetched, in a shuffled order: 20,000 of at
most 40,000 characters. Parquet is written as pyarrow does by default.
Metric: documents divided by the user and system time of the whole process, best of some runs: start, reading,
exact duplicates, shingles, samples, comparison of candidates, and the report. The file is in the page cache.
With --old another checkout is measured in turns with this one.
Command: .venv/bin/python -m bench.texts DOCUMENTS.jsonl [--old CHECKOUT] [--runs N]
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from bench.harness import TOP, arguments, in_turns, run, scratch
from rdc.similarity import TextColumn, html_text

DOCUMENTS, MOST = 20_000, 40_000


def texts(path: Path) -> Iterator[str]:
    """Yield the texts of the pages, without markup."""
    with path.open() as file:
        while lines := [json.loads(line)["text"] for line in islice(file, 1000)]:
            column = TextColumn.join(lines)
            plain = html_text(column.text, column.offsets)
            yield from [plain.of(row).decode() for row in range(len(plain))]


def write(found: list[str], folder: Path) -> list[Path]:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": found}), folder / "a.parquet")
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in found))
    return [folder / "a.parquet", folder / "a.jsonl"]


def seconds(checkout: Path, path: Path) -> float:
    """User and system time of one search."""
    command: list[str | Path] = [checkout / ".venv/bin/rdc", "similar", "--text", "--quiet", path]
    return run(command).cpu


def main() -> None:
    parser = arguments(__doc__, runs=10)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--old", type=Path, help="another checkout, measured in turns")
    options = parser.parse_args()
    found = list(texts(options.documents))
    random.Random(1).shuffle(found)
    found = [text for text in found if len(text) < MOST][:DOCUMENTS]
    size = sum(len(text.encode()) for text in found)
    print(f"{len(found)} documents, {size / 1e6:.1f} MB of text")
    with scratch() as folder:
        for path in write(found, folder):
            checkouts = [TOP] if options.old is None else [TOP, options.old]
            ways = {str(checkout): partial(seconds, checkout, path) for checkout in checkouts}
            turns = in_turns(ways, options.runs)
            for checkout, costs in turns.items():
                least = min(costs)
                name = "this one" if checkout == str(TOP) else "the old one"
                speed = f"{len(found) / least / 1000:.1f} k documents/s, {size / least / 1e6:.0f} MB/s"
                print(f"{path.suffix[1:]}, {name}: {least:.3f} s, {speed}")


if __name__ == "__main__":
    main()
