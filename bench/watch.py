"""Measures how long an edit takes to arrive through `rdc watch`, and its bytes on the wire.

Question: a file of 4 KB in a large tree is edited; when does the destination have it, and for how many bytes?
Metrics: seconds from the end of the write until the destination's file has the new content (polled every
2 ms); bytes both ways of the turns it took. A tree is copied by hard links; edited files get new inodes.
Commands: bench/watch.py --tree TREE --place DIR [--edits N] [--far LINE]
LINE says where the other side is: child (the default), daemon or shell; daemon-source and shell-source mean
that the source is there.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness import RDC, arguments
from tests.support.running.watching import DaemonLine, Line, ShellLine

EDIT_BYTES = 4096

LINES: dict[str, Callable[[Path], Line]] = {
    "daemon": lambda place: DaemonLine(place, place),
    "shell": ShellLine,
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--tree", type=Path, required=True, help="to copy from, by hard links")
    parser.add_argument(
        "--place", type=Path, required=True, help="on the same file system; removed at the end"
    )
    parser.add_argument("--edits", type=int, default=25)
    parser.add_argument("--far", default="child", choices=["child", *LINES, *(f"{x}-source" for x in LINES)])
    given = parser.parse_args()
    place: Path = given.place
    place.mkdir()
    try:
        source, destination = place / "src", place / "dst"
        for copy in (source, destination):
            subprocess.run(["cp", "-al", given.tree, copy], check=True)
        kind, _, end = given.far.partition("-")
        line = LINES[kind](place) if kind in LINES else None
        try:
            measure(source, destination, given.edits, line, far_source=bool(end))
        finally:
            if line is not None:
                line.close()
    finally:
        shutil.rmtree(place)


def measure(source: Path, destination: Path, edits: int, line: Line | None, *, far_source: bool) -> None:
    rng = random.Random(1)
    files = [Path(top) / name for top, _, names in os.walk(source) for name in names]
    chosen = rng.sample(files, edits)
    for path in chosen:
        rewrite(path, rng.randbytes(EDIT_BYTES))
    environ = {**os.environ, "RDC_CATALOG": "off"}
    words = [*RDC, "watch", "--json", "--delete"]
    ends = [f"{source}/", f"{destination}/"]
    if line is not None:
        words += line.options()
        ends[not far_source] = line.name(source if far_source else destination)
    words += ends
    began = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)
    turns: list[dict[str, Any]] = []
    reader = threading.Thread(target=follow, args=(process, turns))
    reader.start()
    try:
        while not turns:
            time.sleep(0.01)
        print(f"{len(files):,} files; in sync after {time.monotonic() - began:.1f} s")
        latencies, costs = [], []
        for path in chosen:
            time.sleep(rng.uniform(0.3, 0.6))
            before = len(turns)
            wanted = bytearray(path.read_bytes())
            at = rng.randrange(EDIT_BYTES - 20)
            wanted[at : at + 10] = rng.randbytes(10)
            with path.open("r+b") as file:
                file.write(wanted)
            latencies.append(arrival(destination / path.relative_to(source), bytes(wanted)))
            while len(turns) == before:
                time.sleep(0.005)
            costs.append(sum(turn["bytes_sent"] + turn["bytes_received"] for turn in turns[before:]))
        print(f"edits of a {EDIT_BYTES}-byte file: {edits}")
        for name, values, unit in (("seconds to arrive", latencies, "s"), ("bytes on the wire", costs, "")):
            ordered = sorted(values)
            print(
                f"{name}: median {statistics.median(ordered):.3f}{unit}, "
                f"90 % {ordered[int(len(ordered) * 0.9)]:.3f}{unit}, most {ordered[-1]:.3f}{unit}"
            )
        status = Path(f"/proc/{process.pid}/status").read_text()
        print(next(line for line in status.splitlines() if line.startswith("VmHWM")))
        used = os.sysconf("SC_CLK_TCK")
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        print(f"CPU of the near side: {(int(fields[11]) + int(fields[12])) / used:.2f} s")
    finally:
        process.terminate()
        process.wait()
        reader.join()


def rewrite(path: Path, content: bytes) -> None:
    """Replace a hard link by a file of its own."""
    beside = path.with_name(path.name + ".new")
    beside.write_bytes(content)
    beside.replace(path)


def follow(process: subprocess.Popen[str], turns: list[dict[str, Any]]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "in_step":
            turns.append(event)


def arrival(path: Path, wanted: bytes) -> float:
    began = time.monotonic()
    while path.read_bytes() != wanted:
        if time.monotonic() - began > 30:
            raise SystemExit(f"{path}: the edit never arrived")
        time.sleep(0.002)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
