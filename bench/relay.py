"""Measures a sync from one other host to another beside a sync from here.

Question: what does the way through this machine cost, on each hop and on this machine?
Metrics: bytes of both directions of each hop, round trips, wall seconds, and CPU seconds and peak memory of
this machine's process. Hosts are processes of this machine behind a counting stand-in for ssh. "empty" is
a first copy of the last version. Medians of --runs for seconds, the highest of them for memory.
Command: .venv/bin/python -m bench.relay [--runs N] [--place DIR] VERSION...
"""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

from bench.harness import FAR, RDC, Table, arguments, in_turns, run, scratch
from tests.support.relay.two_hosts import hosts_shell

EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Run:
    hops: tuple[int, ...]
    """Bytes both ways of each hop, the source's first."""
    round_trips: int
    seconds: float
    cpu: float
    memory: int
    """Bytes."""


def measured(old: Path | None, new: Path, place: Path, *, relayed: bool) -> Run:
    target = place / "target"
    shutil.rmtree(target, ignore_errors=True)
    if old is None:
        target.mkdir()
    else:
        subprocess.run(["cp", "-a", old, target], check=True)
    accounts = [place / f"account-{host}" for host in ("one", "two")]
    for account in accounts:
        account.unlink(missing_ok=True)
    shell = hosts_shell(place, **{path.name.partition("-")[2]: f"--account {path}" for path in accounts})
    source = f"{'one:' if relayed else ''}{new}/"
    line = [*RDC, "sync", "--json", "--no-catalog", "--no-fsync", "--delete", "-e", shell]
    words = [*line, "--remote-path", FAR, source, f"two:{target}"]
    cost = run(words, out=place / "said")
    subprocess.run(["diff", "-rq", "--no-dereference", new, target], check=True)
    counted = [json.loads(path.read_text()) for path in accounts if path.exists()]
    hops = tuple(each["up"] + each["down"] for each in counted)
    last = json.loads((place / "said").read_text().splitlines()[-1])
    return Run(hops, last["round_trips"], cost.wall, cost.cpu, cost.memory)


def main() -> None:
    parser = arguments(__doc__, runs=3, place=True)
    parser.add_argument("versions", type=Path, nargs="+", help="of one tree, the oldest first")
    given = parser.parse_args()
    versions: list[Path] = given.versions
    pairs = [*pairwise(versions), (versions[-1], versions[-1]), (None, versions[-1])]
    heads = "bytes of each hop", "round trips:", "wall, s:", "CPU here, s:", "memory here, MB:"
    table = Table("from, to", "way", *heads)
    with scratch(given.place) as place:
        for old, new in pairs:
            ways = {
                "from here": partial(measured, old, new, place, relayed=False),
                "through here": partial(measured, old, new, place, relayed=True),
            }
            for way, runs in in_turns(ways, given.runs).items():
                best = sorted(runs, key=lambda run: sum(run.hops))[len(runs) // 2]
                table.row(
                    f"{EMPTY if old is None else old.name}, {new.name}",
                    way,
                    " and ".join(f"{hop:,}" for hop in best.hops),
                    best.round_trips,
                    f"{median(run.seconds for run in runs):.2f}",
                    f"{median(run.cpu for run in runs):.2f}",
                    f"{max(run.memory for run in runs) / 1e6:.0f}",
                )


if __name__ == "__main__":
    main()
