"""A corpus of all kinds of files, some of them bad, and its slices."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pyarrow
from pyarrow import parquet

from rdc.library.similar import document_slice
from rdc.model.scan import ScanSlice
from rdc.model.similar import DocumentOptions
from tests.documents.corpora import families, write_jsonl

__all__ = ["LOOSE", "sliced", "write_corpus"]

LOOSE = DocumentOptions(threshold=0.5)


def write_corpus(tree: Path) -> None:
    """Plain files below two directories, a JSONL file with bad and empty lines, a Parquet file of several row
    groups with nulls, packed files, and files that are broken."""
    chosen = random.Random(11)
    texts = families(40)
    (tree / "deep" / "er").mkdir(parents=True)
    for number in range(24):
        folder = chosen.choice((tree, tree / "deep", tree / "deep" / "er"))
        (folder / f"{number}.txt").write_text(texts[number])
    lines = [json.dumps({"text": text}) for text in texts]
    for at in chosen.sample(range(len(lines)), 16):
        lines.insert(at, chosen.choice(["", "bad", '{"other": 1}', '{"text": 5}', " "]))
    (tree / "rows.jsonl").write_text("\n".join(lines))
    (tree / "more.ndjson").write_text("\n" * 40 + lines[0] + "\n" + "x" * 3000 + "\n\n" + lines[1])
    (tree / "packed.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[:30]).encode()))
    # Fewer nulls than problems of one kind get lines: which of more get lines goes by who comes first.
    table = pyarrow.table(
        {"id": range(len(texts)), "text": [None if not n % 29 else t for n, t in enumerate(texts)]}
    )
    parquet.write_table(table, tree / "rows.parquet", row_group_size=7, compression="none")
    content = bytearray((tree / "rows.parquet").read_bytes())
    content[300] ^= 255
    (tree / "flipped.parquet").write_bytes(content)
    (tree / "cut.parquet").write_bytes(content[:-9])
    parquet.write_table(table.select(["id"]), tree / "textless.parquet", row_group_size=7)
    write_jsonl(tree / "deep" / "short.jsonl", texts[:3])
    (tree / "deep" / "latin.txt").write_bytes(b"gr\xfc\xdfe")


def sliced(paths: list[str], of: int, options: DocumentOptions = LOOSE) -> list[str]:
    """The names of the parts of all slices."""
    parts = []
    for number in range(1, of + 1):
        parts.append(f"{number}-of-{of}.rdcdocs")
        document_slice(paths, ScanSlice(number, of), parts[-1], options)
    return parts
