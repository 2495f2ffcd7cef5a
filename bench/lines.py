"""Measures the time of an update beside rsync's, over lines of several rates and delays.

Question:  does rdc end sooner than rsync on any line, and where does it lose?
Metrics:   wall: seconds from start to end; cpu: user and system seconds of both sides, without those of the
           stand-in for ssh; bytes both ways; turns of the stream's direction, halved. Medians of interleaved
           runs, each into a fresh copy of the old tree. The last columns compare with the faster of rsync and
           rsync -z.
Lines:     --line MBIT:MS, million bits a second in each direction and the milliseconds that a byte takes one
           way; --line pipe has neither. Default: 10:20, 100:5, 1000:.5, 8000:.1 and pipe.
Beside:    `rsync -a` and `rsync -a -z`; --rdc adds a contender, rdc with other options. Without --fsync
           nobody waits for the disk. What was copied before is on the disk before each timed run.
Corpora:   pairs of trees OLD NEW whose unchanged files have equal times. --place /dev/shm keeps all trees of
           the runs in memory.
Command:   .venv/bin/python -m bench.lines OLD NEW [OLD NEW]... [--line MBIT:MS]... [--place /dev/shm]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.harness import FAR, RDC, Table, arguments, in_turns, machine, medians, run, scratch

SHELL = Path(__file__).with_name("line_shell.py")
LINES = ("10:20", "100:5", "1000:.5", "8000:.1", "pipe")
"""The lines of the table in docs/benchmarks.md."""


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    mbit: float = 0.0
    """Million bits a second; 0: as fast as the pipe."""
    ms: float = 0.0
    """Milliseconds one way."""

    @classmethod
    def parse(cls, text: str) -> Line:
        """Read MBIT:MS or `pipe`. Raises ValueError."""
        if text == "pipe":
            return cls(text)
        mbit, ms = (float(part) for part in text.split(":"))
        if not (mbit > 0 and ms >= 0):
            raise ValueError(f"line {text}: expected a rate above 0 and a delay of 0 or more")
        return cls(f"{mbit:,g} Mbit/s, {ms:g} ms", mbit, ms)

    def shell(self, account: Path) -> str:
        """Return the value of -e."""
        return f"{sys.executable} {SHELL} --mbit {self.mbit} --ms {self.ms} --account {account}"


@dataclass(frozen=True, slots=True)
class Cost:
    wall: float
    cpu: float
    wire: int
    trips: int


@dataclass(frozen=True, slots=True)
class Row:
    pair: str
    line: str
    tool: str
    cost: Cost


def contenders(also: Sequence[str], fsync: bool) -> dict[str, tuple[str, ...]]:
    """Return the command of each tool by its name, up to the shell and the trees."""
    ours = (*RDC, "sync", "-q", "--delete", *(() if fsync else ("--no-fsync",)), "--remote-path", FAR)
    theirs = ("rsync", "-a", "--delete", *(("--fsync",) if fsync else ()))
    return {
        "rdc": ours,
        **{f"rdc {options}": (*ours, *options.split()) for options in also},
        "rsync": theirs,
        "rsync -z": (*theirs, "-z"),
    }


def measure(words: Sequence[str], line: Line, old: Path | None, new: Path, place: Path) -> Cost:
    """Run once into a fresh copy of `old`, which must then equal `new`. `old`: None for a first copy."""
    destination, account = place / "destination", place / "account"
    if old is None:
        destination.mkdir()
    else:
        subprocess.run(["cp", "-a", old, destination], check=True)
    environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
    for name in ("PYTHONDONTWRITEBYTECODE", "RDC_CATALOG"):
        environment.pop(name, None)
    os.sync()
    cost = run([*words, "-e", line.shell(account), f"{new}/", f"far:{destination}/"], env=environment)
    seen = json.loads(account.read_text())
    subprocess.run(["diff", "-rq", "--no-dereference", new, destination], check=True)
    shutil.rmtree(place)
    place.mkdir()
    wire, trips = seen["up"] + seen["down"], (seen["turns"] + 1) // 2
    return Cost(cost.wall, cost.cpu - seen["own_cpu"], wire, trips)


def compare(
    tools: Mapping[str, Sequence[str]], line: Line, pair: tuple[Path | None, Path], place: Path, runs: int
) -> dict[str, Cost]:
    """Return the medians of each tool on one line. One turn before them warms all caches."""
    ways = {name: partial(measure, words, line, *pair, place) for name, words in tools.items()}
    return {name: medians(costs) for name, costs in in_turns(ways, runs, uncounted=1).items()}


def faster(found: Mapping[str, Cost]) -> Cost:
    """Return the cost of the faster of rsync and rsync -z."""
    return min((found["rsync"], found["rsync -z"]), key=lambda cost: cost.wall)


def main() -> None:
    parser = arguments(__doc__, runs=5, place=True)
    parser.add_argument("trees", nargs="+", type=Path, metavar="OLD NEW")
    parser.add_argument("--line", action="append", metavar="MBIT:MS", help="instead of the five lines")
    parser.add_argument("--rdc", action="append", default=[], metavar="OPTIONS", help="one more contender")
    parser.add_argument("--first", action="store_true", help="first copies of the new trees")
    parser.add_argument("--fsync", action="store_true", help="all wait for the disk")
    parser.add_argument("--json", action="store_true", help="one JSON object a line in place of the table")
    given = parser.parse_args()
    if len(given.trees) % 2:
        parser.error("trees come in pairs: OLD NEW")
    try:
        lines = [Line.parse(text) for text in given.line or LINES]
    except ValueError as error:
        parser.error(str(error))
    tools = contenders(given.rdc, given.fsync)
    table = None
    if not given.json:
        print(f"{machine()}; {given.runs} runs")
        table = Table(
            "pair",
            "line",
            "tool",
            "wall, s:",
            "CPU, s:",
            "KB:",
            "trips:",
            "wall, to rsync:",
            "CPU, to rsync:",
        )
    with scratch(given.place) as top:
        place = top / "place"
        place.mkdir()
        for number in range(0, len(given.trees), 2):
            old, new = top / "old", top / "new"
            trees = given.trees[number : number + 2]
            for tree, copy in zip(trees, (old, new), strict=True):
                subprocess.run(["cp", "-a", tree, copy], check=True)
            name = pair_name(*trees, first=given.first)
            for line in lines:
                found = compare(tools, line, (None if given.first else old, new), place, given.runs)
                show(name, line, found, table)
            shutil.rmtree(old)
            shutil.rmtree(new)


def pair_name(old: Path, new: Path, *, first: bool) -> str:
    name = new.resolve().parent.name
    return f"{name} {new.name}, first copy" if first else f"{name} {old.name} to {new.name}"


def show(pair: str, line: Line, found: Mapping[str, Cost], table: Table | None) -> None:
    best = faster(found)
    for tool, cost in found.items():
        if table is None:
            print(json.dumps(asdict(Row(pair, line.name, tool, cost))), flush=True)
            continue
        table.row(
            pair,
            line.name,
            tool,
            f"{cost.wall:.2f}",
            f"{cost.cpu:.2f}",
            f"{cost.wire / 1e3:,.0f}",
            cost.trips,
            f"{cost.wall / best.wall:.2f}",
            f"{cost.cpu / best.cpu:.2f}",
        )


if __name__ == "__main__":
    main()
