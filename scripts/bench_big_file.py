#!/usr/bin/env python3
"""Measures a sync of a big file with a few edits: bytes on the wire, memory of each side, time.

Question:  do bytes and memory grow with the edits or with the file?
Metrics:   bytes both ways through the pipe, framing included; peak resident size of each process; seconds.
Corpus:    random bytes with ten edits of 100 bytes spread evenly; seeded, the same on every machine.
Command:   scripts/rdc --version && .venv/bin/python scripts/bench_big_file.py [--mib 1024] [--edits 10]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rdc.kernel import kernel_name
from tests.support.trees.big_file import MIB, make_versions, sync_measured


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("--edit-bytes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(f"kernel {kernel_name()}, {given.mib} MiB, {given.edits} edits of {given.edit_bytes} bytes")
    for pull in (False, True):
        with tempfile.TemporaryDirectory(prefix="rdc-bench-") as top:
            source, destination = make_versions(
                Path(top), given.mib * MIB, edits=given.edits, edit_bytes=given.edit_bytes, seed=given.seed
            )
            cost = sync_measured(source, destination, pull=pull)
            subprocess.run(["cmp", source / "file", destination / "file"], check=True)
        direction = "pull" if pull else "push"
        print(f"{direction}: {cost.wire:,} bytes on the wire ({cost.up:,} up, {cost.down:,} down)")
        print(f"  literal {cost.summary['literal_bytes']:,}, round trips {cost.summary['round_trips']}")
        print(f"  peak memory near {cost.near_memory / 1e6:.0f} MB, far {cost.far_memory / 1e6:.0f} MB")
        print(f"  {cost.seconds:.1f} s")


if __name__ == "__main__":
    main()
