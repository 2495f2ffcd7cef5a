"""Measures what a second worker is worth to a scan in slices.

Question:  how much sooner does a scan end with two workers of one thread each than with one? How long is its
           end, when all parts are there and one process merges and reports them?
Metrics:   wall: seconds of the whole command. end: seconds from the last part to the end of the process. cpu:
           user and system seconds of all processes. Medians of turns, in which one and two workers
           alternate, after one turn that is not counted. Other work on the machine makes two workers look
           worse than one. So their CPU is shown, too: what the end does not take is shared evenly.
Corpora:   --files files of --bytes bytes altogether, random content, from 8 KiB to 4 MiB, 100 in a directory;
           or --tree. Waits are injected by tests/kernel/native/slow_calls.c.
Commands:  .venv/bin/python -m bench.workers --place /dev/shm [--open-us 2000] [--runs 5]
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import Table, arguments, cost_of, in_turns, medians, scratch
from tests.support.storage.slow_storage import SlowStorage

FILES_PER_DIRECTORY = 100
SMALLEST, LARGEST = 13, 22
"""Powers of two between which the sizes of files lie."""


@dataclass(frozen=True, slots=True)
class Run:
    wall: float
    end: float
    cpu: float


def main() -> None:
    parser = arguments(__doc__, runs=5, place=True)
    parser.add_argument("--tree", type=Path, help="a tree to scan instead of a made one")
    parser.add_argument("--files", type=int, default=18_000)
    parser.add_argument("--bytes", type=float, default=8.4e9)
    parser.add_argument("--open-us", type=int, default=0)
    parser.add_argument("--depth", type=int, default=0, help="opens in flight; 0 leaves it to rdc")
    parser.add_argument("--slices", type=int, help="instead of rdc's own number")
    parser.add_argument(
        "--shift", type=int, default=0, help="one chunk in 2^shift is counted, as for a fleet"
    )
    given = parser.parse_args()
    with scratch(given.place) as place:
        storage = SlowStorage(place)
        tree = given.tree or make_files(place / "tree", given.files, round(given.bytes))
        ways = {
            str(workers): partial(measure, storage, place / "parts", tree, workers, given)
            for workers in (1, 2)
        }
        show(in_turns(ways, given.runs, uncounted=1))


def measure(storage: SlowStorage, parts: Path, tree: Path, workers: int, given: argparse.Namespace) -> Run:
    shutil.rmtree(parts, ignore_errors=True)
    words = ["scan", "--quiet", "--no-zstd", f"--cluster=processes:{workers}", f"--depth={given.depth}"]
    words.append(f"--shift={given.shift}")
    words += [f"--slices={given.slices}"] if given.slices else []
    waits = {"open": given.open_us} if given.open_us else {}
    ran, cost = cost_of(partial(storage.run, *words, "-o", parts, tree, **waits))
    ended = time.time()
    if ran.code:
        raise SystemExit(ran.errors)
    last = max(part.stat().st_mtime for part in parts.iterdir())
    done = Run(ran.seconds, ended - last, cost.cpu)
    print(f"{workers}: {done.wall:.2f} s, end {done.end:.2f} s, {done.cpu:.2f} s of CPU", flush=True)
    return done


def show(found: dict[str, list[Run]]) -> None:
    table = Table("workers", "wall", "end", "CPU")
    for workers, runs in found.items():
        typical = medians(runs)
        table.row(workers, f"{typical.wall:.2f} s", f"{typical.end:.2f} s", f"{typical.cpu:.2f} s")
    pairs = [one.wall / two.wall for one, two in zip(found["1"], found["2"], strict=True)]
    print(f"1 : 2 in each turn: {', '.join(f'{pair:.2f}' for pair in pairs)}")
    print(f"median {statistics.median(pairs):.2f}")


def make_files(top: Path, files: int, total: int) -> Path:
    rng = random.Random(1)
    sizes = [2 ** rng.uniform(SMALLEST, LARGEST) for _ in range(files)]
    factor = total / sum(sizes)
    for number, size in enumerate(sizes):
        place = top / f"d{number // FILES_PER_DIRECTORY:04}"
        if number % FILES_PER_DIRECTORY == 0:
            place.mkdir(parents=True)
        (place / f"f{number:06}").write_bytes(rng.randbytes(round(size * factor)))
    return top


if __name__ == "__main__":
    main()
