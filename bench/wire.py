"""Measures bytes on the wire from one version of a tree to the next, rdc --fewest-bytes against rsync.

Command: .venv/bin/python -m bench.wire OLD NEW...

Each pair runs with the mtimes of the files and with fresh ones, as if every file of the old version had been
touched. A counting stand-in for ssh counts the bytes of both directions. CPU is user and system time of both
sides, and of the remote side alone, as medians of --runs. OLD is copied to --scratch first, and the catalog
of rdc is empty. The table also has the patches that zstd and xdelta3 make of both versions as tars, if these
programs are installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

from bench.harness import RELAY, TOP, arguments, in_turns, run, scratch

RDC = str(Path(sys.executable).with_name("rdc"))
"""The rdc that is installed beside the Python that runs this script."""
FRESH_NS = 1_000_000_000 * 10**9
"""The fresh mtime of every old file. No file of the new version has it."""

TOOLS = ("rsync -a", "rsync -a -z", "rsync -a -z --zc=zstd", "rdc")

ZSTD, XDELTA = "zstd --patch-from -19 --long", "xdelta3 -9"
DELTAS = (ZSTD, XDELTA)
"""Tools that read both versions in one place. Their patches between tars, whose entries are sorted and differ
only in content, are a bound to compare with, not a way to sync."""


@dataclass(frozen=True, slots=True)
class Row:
    pair: str
    mtimes: str
    tool: str
    up: int
    down: int
    cpu_seconds: float
    far_cpu_seconds: float = 0.0
    round_trips: int | None = None

    @property
    def wire(self) -> int:
        return self.up + self.down


def measured(pair: str, mtimes: str, tool: str, source: Path, destination: Path, stats: bool) -> Row:
    account, catalogs = destination.parent / "account", destination.parent / "catalogs"
    shutil.rmtree(catalogs, ignore_errors=True)
    relay = f"{sys.executable} {RELAY} --account {account}"
    ends = [f"{source}/", f"far:{destination}/"]
    if tool == "rdc":
        far = ["-e", relay, "--remote-path", RDC]
        argv = [*RDC.split(), "sync", "--stats", "--no-fsync", "--fewest-bytes", *far, *ends]
    else:
        argv = [*tool.split(), "-e", relay, *ends]
    environment = os.environ | {"XDG_CACHE_HOME": str(catalogs)}
    said = destination.parent / "said"
    spent = run(argv, cwd=TOP, env=environment, out=said).cpu
    trips = re.search(r"^Round trips: +([0-9,]+)$", said.read_text(), re.MULTILINE)
    if stats and tool == "rdc":
        print(said.read_text(), file=sys.stderr)
    counted = json.loads(account.read_text())
    own, there = counted["relay_cpu"], counted["cpu"]
    round_trips = int(trips[1]) if trips else None
    return Row(pair, mtimes, tool, counted["up"], counted["down"], spent - own, there, round_trips)


def patched(tool: str, old: Path, new: Path, patch: Path) -> tuple[int, float]:
    """Return the bytes of the patch from one tar to the other, and the CPU seconds to make it."""
    if tool == ZSTD:
        argv = ["zstd", "-q", "-f", f"--patch-from={old}", "-19", "--long=31", str(new), "-o", str(patch)]
    else:
        window = str(min(max(old.stat().st_size, 1 << 20), (1 << 31) - 1))
        argv = ["xdelta3", "-9", "-f", "-e", "-B", window, "-s", str(old), str(new), str(patch)]
    spent = run(argv).cpu
    return patch.stat().st_size, spent


def deltas(old: Path, new: Path, top: Path, tools: Sequence[str]) -> list[Row]:
    """One row per tool; 0 bytes if the program is not installed."""
    rows, tars = [], {old: top / "old.tar", new: top / "new.tar"}
    for tool in tools:
        up, spent = 0, 0.0
        if shutil.which(tool.split()[0]) is not None:
            for tree, tar in tars.items():
                same = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]
                subprocess.run(["tar", *same, "-C", str(tree), "-cf", str(tar), "."], check=True)
            up, spent = patched(tool, tars[old], tars[new], top / "patch")
        rows.append(Row(f"{old.parent.name} {old.name} > {new.name}", "tars", tool, up, 0, spent))
    return rows


def touch(tree: Path) -> None:
    for directory, _, names in os.walk(tree):
        for name in names:
            os.utime(Path(directory, name), ns=(FRESH_NS, FRESH_NS), follow_symlinks=False)


def differences(one: Path, other: Path) -> str:
    """Return what `other` lacks or has in another version. Entries that only `other` has are ignored."""
    argv = ["rsync", "-an", "--checksum", "-i", f"{one}/", f"{other}/"]
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout


def compare(
    old: Path, new: Path, top: Path, tools: Sequence[str], mtimes: Sequence[str], runs: int, stats: bool
) -> list[Row]:
    """One row per tool and kind of mtimes; the tools run in turns."""
    rows: list[Row] = []
    pair = f"{old.parent.name} {old.name} > {new.name}"
    destination = top / "destination"
    for how in mtimes:

        def once(tool: str, how: str = how) -> Row:
            shutil.rmtree(destination, ignore_errors=True)
            subprocess.run(["cp", "-a", old, destination], check=True)
            if how == "fresh":
                touch(destination)
            row = measured(pair, how, tool, new, destination, stats)
            found = differences(new, destination)
            if found:
                raise SystemExit(f"{tool}, {pair}: the trees differ afterwards:\n{found[:500]}")
            return row

        rows += map(typical, in_turns({tool: partial(once, tool) for tool in tools}, runs).values())
    return rows


def typical(runs: Sequence[Row]) -> Row:
    """Return the run with median bytes, with the median CPU seconds and the most round trips of all runs."""
    middle = sorted(runs, key=lambda row: row.wire)[len(runs) // 2]
    trips = [row.round_trips for row in runs if row.round_trips is not None]
    return replace(
        middle,
        cpu_seconds=median(row.cpu_seconds for row in runs),
        far_cpu_seconds=median(row.far_cpu_seconds for row in runs),
        round_trips=max(trips, default=None),
    )


def table(rows: list[Row]) -> str:
    lines = [
        f"{'pair':34} {'mtimes':7} {'tool':28} {'up':>12} {'down':>12} {'wire':>12} {'to -z':>7}"
        f" {'CPU, s':>7} {'far':>6}  trips"
    ]
    for row in rows:
        compressed = [r.wire for r in rows if (r.pair, r.mtimes) == (row.pair, row.mtimes) and "-z" in r.tool]
        ratio = f"{row.wire / min(compressed):7.3f}" if compressed else " " * 7
        if not row.wire:
            lines.append(f"{row.pair:34} {row.mtimes:7} {row.tool:28} absent: not installed")
            continue
        lines.append(
            f"{row.pair:34} {row.mtimes:7} {row.tool:28} {row.up:12,} {row.down:12,} {row.wire:12,} {ratio}"
            f" {row.cpu_seconds:7.2f} {row.far_cpu_seconds:6.2f}  {row.round_trips or ''}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__, runs=1)
    parser.add_argument("trees", nargs="+", type=Path, metavar="OLD NEW")
    parser.add_argument("--json", action="store_true", help="one JSON object a line in place of the table")
    every = (*TOOLS, *DELTAS)
    parser.add_argument("--tool", action="append", choices=every, help="only this one; may be repeated")
    parser.add_argument("--mtimes", choices=("kept", "fresh"), help="only these")
    parser.add_argument("--stats", action="store_true", help="rdc's own summary on stderr")
    parser.add_argument("--scratch", type=Path, help="where the copies go (default: a temporary directory)")
    given = parser.parse_args()
    if len(given.trees) % 2:
        parser.error("trees come in pairs: OLD NEW")
    mtimes = (given.mtimes,) if given.mtimes else ("kept", "fresh")
    rows = []
    with scratch(given.scratch) as top:
        for old, new in zip(given.trees[::2], given.trees[1::2], strict=True):
            pair = (old.resolve(), new.resolve(), top)
            asked = given.tool or every
            rows += compare(*pair, [tool for tool in asked if tool in TOOLS], mtimes, given.runs, given.stats)
            rows += deltas(*pair, [tool for tool in asked if tool in DELTAS])
    if given.json:
        for row in rows:
            print(json.dumps({**asdict(row), "wire": row.wire}))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
