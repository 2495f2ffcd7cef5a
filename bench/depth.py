"""Measures what several calls in flight are worth on storage that makes one wait.

Question:  how long does a first copy of many small files take, an index, or a walk, if each call that opens,
           lists or looks at a name waits? How much of that is left with 16 calls in flight, and with as many
           as rdc decides for by itself? What does the same cost where nothing waits?
Metrics:   wall: seconds of one run; cpu: user and system seconds; threads: started in all processes. Waits
           are injected by tests/kernel/native/slow_calls.c. Without waits: medians of interleaved pairs of
           runs at a depth of 1 and by default.
Corpora:   --files small files, seeded, --per-directory of them in each directory, and a tree of --entries
           empty files in directories of 12; both in --place.
Commands:  .venv/bin/python -m bench.depth --place /dev/shm [--open-us 2000] [--runs 15]
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import Table, arguments, cost_of, in_turns, medians, scratch
from tests.support.storage.slow_storage import SlowRun, SlowStorage

ENTRIES_PER_DIRECTORY = 12
DIRECTORIES_TOGETHER = 16

HELPER = """#!/bin/sh
shift
exec sh -c "$*"
"""
"""A remote shell that runs the command here: both sides, and a pipe between them."""

WALK = """
import os, sys
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import Root
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk
root = Root.open(os.fsencode(sys.argv[1]))
root = root.having(ReadPolicy(depth=int(sys.argv[2])))
print(sum(found.listing.count for found in Walk(root, FilterList([]), print)))
"""


@dataclass(frozen=True, slots=True)
class Case:
    """One command, measured at several depths."""

    name: str
    words: Sequence[str | Path]
    """Python code; "DEPTH" stands for the depth."""
    waits: dict[str, int]
    removed: Path | None = None
    """Removed before each run."""


@dataclass(frozen=True, slots=True)
class Unslowed:
    """One run where nothing waits."""

    wall: float
    cpu: float
    threads: int


def main() -> None:
    parser = arguments(__doc__, runs=15, place=True)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--per-directory", type=int, default=100)
    parser.add_argument("--only", default="", help="cases whose names begin with this")
    parser.add_argument("--entries", type=int, default=129_000)
    parser.add_argument("--open-us", type=int, default=2000)
    given = parser.parse_args()
    with scratch(given.place) as place:
        storage = SlowStorage(place)
        small = make_small_files(place / "small", given.files, given.per_directory)
        wide = make_entries(place / "wide", given.entries)
        table = Table("case", "depth 1", "depth 16", "by itself", "1 : 16")
        chosen = [
            case for case in cases(place, small, wide, given.open_us) if case.name.startswith(given.only)
        ]
        for case in chosen:
            show(table, case, [measure(storage, case, depth) for depth in (1, 16, 0)])
        without_waits(storage, cases(place, small, wide, 0)[:1], given.runs)


def cases(place: Path, small: Path, wide: Path, open_us: int) -> list[Case]:
    helper = place / "helper"
    helper.write_text(HELPER)
    helper.chmod(0o755)
    copy = place / "copy"
    catalog = f"--catalog={place / 'cache'}"
    far = ["-e", str(helper), f"--remote-path={Path(sys.executable).parent / 'rdc'}"]
    opens = {"open": open_us, "list": open_us} if open_us else {}
    looks = {"list": 1000, "stat": 200} if open_us else {}
    sync = ["-m", "rdc", "sync", "-q", "--depth=DEPTH"]
    return [
        Case("first copy, local", [*sync, f"{small}/", f"{copy}/"], opens, copy),
        Case("first copy, pipe", [*sync, *far, f"{small}/", f"here:{copy}/"], opens, copy),
        Case("index", ["-m", "rdc", "index", "-q", "--depth=DEPTH", catalog, small], opens, place / "cache"),
        Case("walk", ["-c", WALK, wide, "DEPTH"], looks),
    ]


def measure(storage: SlowStorage, case: Case, depth: int) -> SlowRun:
    if case.removed is not None:
        shutil.rmtree(case.removed, ignore_errors=True)
    ran = storage.run_python(*[str(word).replace("DEPTH", str(depth)) for word in case.words], **case.waits)
    if ran.code:
        raise SystemExit(f"{case.name}: {ran.errors}")
    return ran


def show(table: Table, case: Case, runs: list[SlowRun]) -> None:
    one, sixteen, default = (run.seconds for run in runs)
    table.row(case.name, f"{one:.2f} s", f"{sixteen:.2f} s", f"{default:.2f} s", f"{one / sixteen:.1f}")


def without_waits(storage: SlowStorage, chosen: Sequence[Case], runs: int) -> None:
    """Print wall and CPU at a depth of 1 and by default, where nothing waits."""
    for case in chosen:

        def once(depth: int, case: Case = case) -> Unslowed:
            ran, cost = cost_of(partial(measure, storage, case, depth))
            return Unslowed(ran.seconds, cost.cpu, ran.threads)

        ways = {"depth 1": partial(once, 1), "by itself": partial(once, 0)}
        for name, found in in_turns(ways, runs).items():
            cost = medians(found)
            print(
                f"{case.name}, no waits, {name}: {cost.wall:.3f} s, {cost.cpu:.3f} s of CPU,"
                f" {cost.threads} threads"
            )


def make_small_files(top: Path, files: int, per_directory: int) -> Path:
    rng = random.Random(1)
    for number in range(files):
        place = directory_of(top, number // per_directory)
        if number % per_directory == 0:
            place.mkdir(parents=True)
        (place / f"f{number:06}").write_bytes(rng.randbytes(rng.randrange(3000)))
    return top


def make_entries(top: Path, entries: int) -> Path:
    for number in range(entries // (ENTRIES_PER_DIRECTORY + 1)):
        place = directory_of(top, number)
        place.mkdir(parents=True)
        for name in range(ENTRIES_PER_DIRECTORY):
            os.close(os.open(place / f"f{name}", os.O_CREAT | os.O_WRONLY | os.O_EXCL))
    return top


def directory_of(top: Path, number: int) -> Path:
    return top / f"d{number // DIRECTORIES_TOGETHER:04}" / f"e{number:05}"


if __name__ == "__main__":
    main()
