"""Measures a sync beside rsync: bytes on the wire, CPU of both sides, time, memory, round trips.

Question:  what does rdc cost and save where people use rsync: an update from one release to the next, a run
           that finds nothing to do, a first copy of many small files and of one big file?
Metrics:   wire: bytes both ways through the pipe; cpu: user and system seconds of both sides, without those
           of the stand-in for ssh; wall: seconds; memory: the largest process; trips: how often the stream
           turned its direction, halved. Medians of interleaved runs, each into a fresh directory. The
           stand-in for ssh relays the pipe and costs both tools the same.
Beside:    `rdc sync` with `rsync -a --fsync`; `rdc sync --no-fsync` with `rsync -a`. Through the pipe rsync
           compresses (-z), as rdc does, unless --plain is given. Each run has a new, empty catalog.
Corpora:   --pair: trees OLD:NEW; --first: this many files of 0 to 8 KiB of text; --big: one file of random
           bytes; --unchanged: a tree. Files of --first and --big are seeded and made for the run.
Commands:  .venv/bin/python -m bench.sync --pair OLD:NEW [--pair ...] [--unchanged TREE]
           .venv/bin/python -m bench.sync --first 20000 --big 1 [--runs 5] [--no-pipe] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.harness import (
    FAR,
    RDC,
    RELAY,
    Table,
    arguments,
    big_file,
    in_turns,
    machine,
    medians,
    run,
    scratch,
    small_files,
)
from rdc.kernel import kernel_name

SAMPLE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    new: Path
    old: Path | None
    """The destination's tree before the run. None: it is empty."""


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    words: tuple[str, ...]
    rsync: bool
    pipe: bool


@dataclass(frozen=True, slots=True)
class Cost:
    wire: int
    """Bytes both ways; 0 without a pipe."""
    cpu: float
    wall: float
    memory: int
    trips: int


class Peak(threading.Thread):
    """Samples the peak memory of a process and of those it started, without the stand-in for ssh."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.bytes = 0
        self._pid = pid
        self._over = threading.Event()
        self.start()

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.bytes

    def run(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            for pid in self._tree(self._pid):
                self._sample(pid)

    def _tree(self, pid: int) -> Iterator[int]:
        yield pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return
        for child in children:
            yield from self._tree(int(child))

    def _sample(self, pid: int) -> None:
        try:
            if str(RELAY).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        kib = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), "0")
        self.bytes = max(self.bytes, int(kib) * 1024)


def contenders(fsync: bool, pipe: bool, plain: bool) -> tuple[Contender, Contender]:
    ours = (*(() if fsync else ("--no-fsync",)), *(("--no-compress",) if plain else ()))
    compress = ("-z",) if pipe and not plain else ()
    theirs = ("-a", "--delete", *compress, *(("--fsync",) if fsync else ()))
    return (
        Contender("rdc", (*RDC, "sync", "-q", "--delete", *ours), False, pipe),
        Contender("rsync", ("rsync", *theirs), True, pipe),
    )


def measure(contender: Contender, case: Case, place: Path) -> Cost:
    """One run into a fresh directory below `place`, whose tree must then be the source's."""
    destination, account, catalog = place / "destination", place / "account", place / "catalog"
    if case.old is None:
        destination.mkdir()
    else:
        subprocess.run(["cp", "-a", case.old, destination], check=True)
    end = f"{destination}/"
    words = list(contender.words)
    if contender.pipe:
        end = f"far:{end}"
        words += ["-e", f"{sys.executable} {RELAY} --account {account}"]
        if not contender.rsync:
            words += ["--remote-path", FAR]
    words += [f"{case.new}/", end]
    environment = {**os.environ, "RDC_CATALOG": str(catalog)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if "--fsync" in words or (not contender.rsync and "--no-fsync" not in words):
        os.sync()  # so that no run pays for what was copied before
    peaks: list[Peak] = []
    cost = run(words, env=environment, beside=lambda pid: peaks.append(Peak(pid)))
    memory = peaks[0].stop()
    subprocess.run(["diff", "-rq", "--no-dereference", case.new, destination], check=True)
    cpu = cost.cpu
    wire = trips = 0
    if contender.pipe:
        seen = json.loads(account.read_text())
        wire, trips = seen["up"] + seen["down"], (seen["turns"] + 1) // 2
        cpu -= seen["relay_cpu"]
    shutil.rmtree(place)
    place.mkdir()
    return Cost(wire, cpu, cost.wall, memory, trips)


def cases(given: argparse.Namespace, top: Path) -> Iterator[Case]:
    for pair in given.pair:
        old, new = (Path(text) for text in pair.split(":"))
        yield Case(f"{old.parent.name} {old.name} to {new.name}", new, old)
    if given.unchanged:
        tree = Path(given.unchanged)
        yield Case(f"{tree.name}, no change", tree, tree)
    if given.first:
        tree = small_files(top / "small", given.first)
        yield Case(f"{given.first:,} small files, first copy", tree, None)
        yield Case(f"{given.first:,} small files, no change", tree, tree)
        shutil.rmtree(tree)
    if given.big:
        tree = big_file(top / "big", given.big * 1024)
        yield Case(f"one file of {given.big} GiB, first copy", tree, None)
        shutil.rmtree(tree)


def main() -> None:
    parser = arguments(__doc__, runs=3, place=True)
    parser.add_argument("--pair", action="append", default=[], metavar="OLD:NEW")
    parser.add_argument("--unchanged", metavar="TREE")
    parser.add_argument("--first", type=int, metavar="FILES", help="a first copy of this many small files")
    parser.add_argument("--big", type=int, metavar="GIB", help="a first copy of one file")
    parser.add_argument("--no-pipe", action="store_true", help="local runs only")
    parser.add_argument("--no-local", action="store_true", help="runs through a pipe only")
    parser.add_argument("--plain", action="store_true", help="through the pipe, neither compresses")
    parser.add_argument("--no-sync", action="store_true", help="without the runs that wait for the disk")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    version = subprocess.run(["rsync", "--version"], capture_output=True, text=True, check=True)
    table = None
    if not given.json:
        print(f"{machine()}; {version.stdout.splitlines()[0]}; {given.runs} runs; rdc / rsync")
        table = Table("case", "link", "wire, KB", "cpu, s", "wall, s", "wall ratio", "memory, MB", "trips")
    with scratch(given.place) as top:
        place = top / "place"
        place.mkdir()
        for case in cases(given, top):
            for pipe in (True, False):
                for fsync in (True, False):
                    if (pipe and given.no_pipe) or (not pipe and given.no_local) or (fsync and given.no_sync):
                        continue
                    pair = contenders(fsync, pipe, given.plain)
                    show(case, compare(case, place, given.runs, pair), fsync, pipe, table)


def compare(case: Case, place: Path, runs: int, pair: tuple[Contender, Contender]) -> tuple[Cost, Cost]:
    ways = {one.name: partial(measure, one, case, place) for one in pair}
    ours, theirs = in_turns(ways, runs).values()
    return medians(ours), medians(theirs)


def show(case: Case, pair: tuple[Cost, Cost], fsync: bool, pipe: bool, table: Table | None) -> None:
    ours, theirs = pair
    link = ("pipe" if pipe else "local") + (", fsync" if fsync else "")
    if table is None:
        row = {"case": case.name, "link": link, "rdc": asdict(ours), "rsync": asdict(theirs)}
        print(json.dumps({**row, "kernel": kernel_name()}), flush=True)
        return
    table.row(
        case.name,
        link,
        f"{ours.wire / 1e3:,.1f} / {theirs.wire / 1e3:,.1f}" if pipe else "",
        f"{ours.cpu:.2f} / {theirs.cpu:.2f}",
        f"{ours.wall:.2f} / {theirs.wall:.2f}",
        f"{ours.wall / theirs.wall:.2f}",
        f"{ours.memory / 1e6:.0f} / {theirs.memory / 1e6:.0f}",
        f"{ours.trips} / {theirs.trips}" if pipe else "",
    )


if __name__ == "__main__":
    main()
