"""A program: scans on an engine whose first worker kills itself, and prints the merged JSON document.

python -m tests.cluster.killed_scan URL TREE OUT MARKS
"""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from pathlib import Path

import rdc
from rdc.cluster.engines import opened_engine, parse_engine
from rdc.survey.report.terminal import scan_json
from tests.cluster.failing_executors import Killing

__all__: list[str] = []


def main(url: str, tree: str, out: str, marks: str) -> None:
    with opened_engine(parse_engine(url)) as engine:
        if isinstance(engine.executor, Executor):
            executor = Killing(engine.executor, Path(marks), {0})
            parts = rdc.scan_parts(tree, executor, 3, out)
        else:
            make = engine.executor
            parts = rdc.scan_parts(tree, lambda: Killing(make(), Path(marks), {0}), 3, out)
    sys.stdout.write(scan_json(rdc.merge(parts)))


if __name__ == "__main__":
    main(*sys.argv[1:])
