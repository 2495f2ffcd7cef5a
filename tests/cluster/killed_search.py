"""A program: searches documents on an engine whose first worker kills itself, and prints what it found.

python -m tests.cluster.killed_search URL|none TREE OUT MARKS
"""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from pathlib import Path

import rdc
from rdc.cluster.engines import opened_engine, parse_engine
from tests.cluster.failing_executors import Killing

__all__: list[str] = []


def main(url: str, tree: str, out: str, marks: str) -> None:
    report = (
        rdc.similar_documents(tree) if url == "none" else rdc.merge_documents(parts(url, tree, out, marks))
    )
    for group in report.groups:
        print(group)
    for document in report.kept:
        print(document)


def parts(url: str, tree: str, out: str, marks: str) -> tuple[str, ...]:
    with opened_engine(parse_engine(url)) as engine:
        if isinstance(engine.executor, Executor):
            return rdc.document_parts(tree, Killing(engine.executor, Path(marks), {0}), 3, out)
        make = engine.executor
        return rdc.document_parts(tree, lambda: Killing(make(), Path(marks), {0}), 3, out)


if __name__ == "__main__":
    main(*sys.argv[1:])
