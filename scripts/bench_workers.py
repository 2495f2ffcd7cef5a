#!/usr/bin/env python3
"""Measures what a second worker is worth to a scan in slices.

Question:  how much sooner does a scan end with two workers of one thread each than with one? How long is its
           end, when all parts are there and one process merges and reports them?
Metrics:   wall: seconds of the whole command. end: seconds from the last part to the end of the process. cpu:
           user and system seconds of all processes. Medians of turns, in which one and two workers
           alternate, after one turn that is not counted. Other work on the machine makes two workers look
           worse than one. So their CPU is shown, too: what the end does not take is shared evenly.
Corpora:   --files files of --bytes bytes altogether, random content, from 8 KiB to 4 MiB, 100 in a directory;
           or --tree. Waits are injected by tests/kernel/native/slow_calls.c.
Commands:  .venv/bin/python scripts/bench_workers.py --place /dev/shm/bench [--open-us 2000] [--runs 5]
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

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
    parser = argparse.ArgumentParser(description="Two workers of a scan in slices beside one.")
    parser.add_argument("--place", type=Path, required=True, help="a new directory; removed at the end")
    parser.add_argument("--tree", type=Path, help="a tree to scan instead of a made one")
    parser.add_argument("--files", type=int, default=18_000)
    parser.add_argument("--bytes", type=float, default=8.4e9)
    parser.add_argument("--open-us", type=int, default=0)
    parser.add_argument("--depth", type=int, default=0, help="opens in flight; 0 leaves it to rdc")
    parser.add_argument("--slices", type=int, help="instead of rdc's own number")
    parser.add_argument(
        "--shift", type=int, default=0, help="one chunk in 2^shift is counted, as for a fleet"
    )
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    place: Path = given.place
    place.mkdir()
    try:
        storage = SlowStorage(place)
        tree = given.tree or make_files(place / "tree", given.files, round(given.bytes))
        found: dict[int, list[Run]] = {1: [], 2: []}
        for turn in range(given.runs + 1):
            for workers, runs in found.items():
                ran = measure(storage, place / "parts", tree, workers, given)
                if turn:
                    runs.append(ran)
                    print(
                        f"{workers}: {ran.wall:.2f} s, end {ran.end:.2f} s, {ran.cpu:.2f} s of CPU",
                        flush=True,
                    )
        show(found)
    finally:
        shutil.rmtree(place)


def measure(storage: SlowStorage, parts: Path, tree: Path, workers: int, given: argparse.Namespace) -> Run:
    shutil.rmtree(parts, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["scan", "--quiet", "--no-zstd", f"--cluster=processes:{workers}", f"--depth={given.depth}"]
    words.append(f"--shift={given.shift}")
    words += [f"--slices={given.slices}"] if given.slices else []
    waits = {"open": given.open_us} if given.open_us else {}
    ran = storage.run(*words, "-o", parts, tree, **waits)
    ended = time.time()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.code:
        raise SystemExit(ran.errors)
    last = max(part.stat().st_mtime for part in parts.iterdir())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(ran.seconds, ended - last, cpu)


def show(found: dict[int, list[Run]]) -> None:
    print("| workers | wall | end | CPU |\n|---|---|---|---|")
    for workers, runs in found.items():
        wall, end, cpu = (statistics.median(each) for each in zip(*map(values, runs), strict=True))
        print(f"| {workers} | {wall:.2f} s | {end:.2f} s | {cpu:.2f} s |")
    pairs = [one.wall / two.wall for one, two in zip(found[1], found[2], strict=True)]
    print(f"1 : 2 in each turn: {', '.join(f'{pair:.2f}' for pair in pairs)}")
    print(f"median {statistics.median(pairs):.2f}")


def values(run: Run) -> tuple[float, float, float]:
    return run.wall, run.end, run.cpu


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
