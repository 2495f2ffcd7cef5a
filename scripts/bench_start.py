#!/usr/bin/env python3
"""What a start of rdc costs in CPU time: `rdc --version`, and a local sync of one file.

Question:  do both stay within their budgets, 40 ms and 70 ms of CPU? Which of two trees starts faster?
Metrics:   user and system time of the process in milliseconds (wait4), the median of N runs. One run before
           them compiles the modules and is not counted. With two trees the runs alternate; the difference is
           the median of the paired differences, with a 95 % interval by bootstrap.
Beside:    an empty Python (`python -I -c pass`), the part of a start that rdc cannot change.
Corpora:   made here: a file of 64 KiB, and an empty destination for each run.
Commands:  .venv/bin/python scripts/bench_start.py [--runs 15] [--place /dev/shm]
           .venv/bin/python scripts/bench_start.py --tree OTHER_CHECKOUT --against . --runs 30
Exits with 1 if a median is over its budget. A busy machine inflates CPU times: repeat before you conclude.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent

BUDGETS = {"version": 40.0, "sync": 70.0}
"""Milliseconds of CPU by case."""

START = "import sys; sys.argv[0] = 'rdc'; from rdc.__main__ import main; main()"


def cpu_ms(argv: list[str], environ: dict[str, str]) -> float:
    """Milliseconds of CPU that a command takes."""
    process = subprocess.Popen(
        argv, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    told = process.stderr.read()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)}: exit code {process.returncode}\n{told.decode(errors='replace')}")
    return (usage.ru_utime + usage.ru_stime) * 1000


def start(case: str, tree: Path | None, place: Path) -> float:
    """Milliseconds of CPU of one start of the rdc in `tree`; None: of an empty Python."""
    if tree is None:
        return cpu_ms([sys.executable, "-I", "-c", "pass"], {})
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home"), "PYTHONPATH": str(tree)}
    words = ["--version"]
    if case == "sync":
        destination = place / "destination"
        shutil.rmtree(destination, ignore_errors=True)
        destination.mkdir()
        words = ["sync", f"{place / 'source'}/", f"{destination}/"]
    return cpu_ms([sys.executable, "-P", "-c", START, *words], environ)


def interval(differences: list[float]) -> tuple[float, float]:
    """The 95 % interval of their median, by 2,000 resamples."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(differences, k=len(differences))) for _ in range(2000))
    return medians[50], medians[1949]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--place", help="a directory for the trees (default: the system's)")
    parser.add_argument("--tree", type=Path, default=HERE, help="the checkout to measure")
    parser.add_argument("--against", type=Path, help="a checkout to compare it with")
    parser.add_argument("--case", choices=BUDGETS, action="append")
    given = parser.parse_args()
    trees = [given.tree.resolve(), *([given.against.resolve()] if given.against else [])]
    over = False
    with tempfile.TemporaryDirectory(dir=given.place) as name:
        place = Path(name)
        (place / "source").mkdir()
        (place / "source" / "file").write_bytes(random.Random(1).randbytes(65536))
        empty = statistics.median(start("", None, place) for _ in range(given.runs))
        print(f"empty Python: {empty:.1f} ms of CPU")
        for case in given.case or BUDGETS:
            found: list[list[float]] = [[] for _ in trees]
            for run in range(given.runs + 1):
                order = list(range(len(trees)))
                for number in order if run % 2 else order[::-1]:
                    cost = start(case, trees[number], place)
                    if run:
                        found[number].append(cost)
            medians = [statistics.median(costs) for costs in found]
            over = over or medians[0] > BUDGETS[case]
            print(f"{case}: {medians[0]:.1f} ms of CPU, budget {BUDGETS[case]:.0f} ms")
            if len(trees) > 1:
                differences = [one - other for one, other in zip(*found, strict=True)]
                low, high = interval(differences)
                print(
                    f"    against {medians[1]:.1f} ms:"
                    f" {statistics.median(differences):+.2f} ms ({low:+.2f} to {high:+.2f})"
                )
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
