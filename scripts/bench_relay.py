#!/usr/bin/env python3
"""Measures a sync from one other host to another beside a sync from here.

Question: what does the way through this machine cost, on each hop and on this machine?
Metrics: bytes of both directions of each hop, round trips, wall seconds, and CPU seconds and peak memory of
this machine's process. Hosts are processes of this machine behind a counting stand-in for ssh. "empty" is
a first copy of the last version. Medians of --runs for seconds, the highest of them for memory.
Command: .venv/bin/python scripts/bench_relay.py [--runs N] [--place DIR] VERSION...
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.support.relay.two_hosts import hosts_shell

RDC = (sys.executable, "-m", "rdc")
FAR = " ".join(RDC)
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
    began = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    assert status == 0, said
    subprocess.run(["diff", "-rq", "--no-dereference", new, target], check=True)
    counted = [json.loads(path.read_text()) for path in accounts if path.exists()]
    hops = tuple(each["up"] + each["down"] for each in counted)
    last = json.loads(said.splitlines()[-1])
    return Run(hops, last["round_trips"], seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description="A sync between two other hosts, beside one from here.")
    parser.add_argument("versions", type=Path, nargs="+", help="of one tree, the oldest first")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--place", type=Path, default=Path("/var/tmp"))  # noqa: S108 - the user's choice
    given = parser.parse_args()
    versions: list[Path] = given.versions
    pairs = [*pairwise(versions), (versions[-1], versions[-1]), (None, versions[-1])]
    print("| from, to | way | bytes of each hop | round trips | wall, s | CPU here, s | memory here, MB |")
    print("|---|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir=given.place) as name:
        for old, new in pairs:
            for relayed in (False, True):
                runs = [measured(old, new, Path(name), relayed=relayed) for _ in range(given.runs)]
                best = sorted(runs, key=lambda run: sum(run.hops))[len(runs) // 2]
                print(
                    f"| {EMPTY if old is None else old.name}, {new.name}",
                    "through here" if relayed else "from here",
                    " and ".join(f"{hop:,}" for hop in best.hops),
                    best.round_trips,
                    f"{median(run.seconds for run in runs):.2f}",
                    f"{median(run.cpu for run in runs):.2f}",
                    f"{max(run.memory for run in runs) / 1e6:.0f} |",
                    sep=" | ",
                    flush=True,
                )


if __name__ == "__main__":
    main()
