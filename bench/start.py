"""The CPU time of a start of rdc: `rdc --version`, and a local sync of one file.

Question:  do both stay within their budgets, 40 ms and 70 ms of CPU? Which of two trees starts faster?
Metrics:   user and system time of the process in milliseconds (wait4), the median of N runs. One run before
           them compiles the modules and is not counted. With two trees the runs alternate; the difference is
           the median of the paired differences, with a 95 % interval by bootstrap.
Beside:    an empty Python (`python -I -c pass`), the part of a start that rdc cannot change.
Corpora:   made here: a file of 64 KiB, and an empty destination for each run.
Commands:  .venv/bin/python -m bench.start [--runs 15] [--place /dev/shm]
           .venv/bin/python -m bench.start --tree OTHER_CHECKOUT --against . --runs 30
Exits with 1 if a median is over its budget. A busy machine inflates CPU times: repeat before you conclude.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
from functools import partial
from pathlib import Path

from bench.harness import TOP, arguments, in_turns, run, scratch

BUDGETS = {"version": 40.0, "sync": 70.0}
"""Milliseconds of CPU by case."""

START = "import sys; sys.argv[0] = 'rdc'; from rdc.__main__ import main; main()"


def start(case: str, tree: Path | None, place: Path) -> float:
    """Milliseconds of CPU of one start of the rdc in `tree`; None: of an empty Python."""
    if tree is None:
        return run([sys.executable, "-I", "-c", "pass"], env={}).cpu * 1000
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place / "home"), "PYTHONPATH": str(tree)}
    words = ["--version"]
    if case == "sync":
        destination = place / "destination"
        shutil.rmtree(destination, ignore_errors=True)
        destination.mkdir()
        words = ["sync", f"{place / 'source'}/", f"{destination}/"]
    return run([sys.executable, "-P", "-c", START, *words], env=environ).cpu * 1000


def interval(differences: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of their median, by 2,000 resamples."""
    chance = random.Random(1)
    medians = sorted(statistics.median(chance.choices(differences, k=len(differences))) for _ in range(2000))
    return medians[50], medians[1949]


def main() -> int:
    parser = arguments(__doc__, runs=15, place=True)
    parser.add_argument("--tree", type=Path, default=TOP, help="the checkout to measure")
    parser.add_argument("--against", type=Path, help="a checkout to compare it with")
    parser.add_argument("--case", choices=BUDGETS, action="append")
    given = parser.parse_args()
    trees = [given.tree.resolve(), *([given.against.resolve()] if given.against else [])]
    over = False
    with scratch(given.place) as place:
        (place / "source").mkdir()
        (place / "source" / "file").write_bytes(random.Random(1).randbytes(65536))
        empty = statistics.median(start("", None, place) for _ in range(given.runs))
        print(f"empty Python: {empty:.1f} ms of CPU")
        for case in given.case or BUDGETS:
            ways = {str(number): partial(start, case, tree, place) for number, tree in enumerate(trees)}
            found = list(in_turns(ways, given.runs, uncounted=1).values())
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
