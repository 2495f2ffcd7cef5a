"""Measures the new blocks that a sync takes on file systems that can share them.

Question:  what do four changed bytes of a long file cost beside a snapshot or a reflinked copy? And what does
           a first copy cost on the same file system?
Metrics:   new: KiB that df shows as used after the run minus before, once all is on disk; own: KiB of extents
           of the new version that nothing else refers to (FIEMAP); CPU: user and system seconds of all
           processes; wall: seconds. Medians of --runs, each on a new image.
Beside:    rdc sync --inplace, rsync --inplace --no-whole-file, rsync with its temporary file, cp --reflink.
Corpus:    one seeded file of --size MiB. A snapshot (btrfs) or a reflinked copy (XFS) is kept.
Commands:  .venv/bin/python -m bench.cow [--size 200] [--runs 3] [--disk DIR]
Needs root, loop devices, btrfs-progs, xfsprogs and rsync. The image lies in /dev/shm, or in DIR.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.harness import MEMORY, MIB, RDC, Table, arguments, machine, medians, run, scratch
from tests.support.trees.loop_images import free_bytes, mounted
from tests.support.trees.reflinks import own_bytes, reflink

SYNC = (*RDC, "sync", "-q", "--no-catalog")
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    words: tuple[str, ...]


UPDATES = (
    Contender("rdc sync", SYNC),
    Contender("rdc sync --inplace", (*SYNC, "--inplace")),
    Contender("rsync --inplace", ("rsync", "-a", "--inplace", "--no-whole-file")),
    Contender("rsync", ("rsync", "-a", "--no-whole-file")),
)
COPIES = (
    Contender("rdc sync", SYNC),
    Contender("rsync", ("rsync", "-a")),
    Contender("cp --reflink", ("cp", "-a", "--reflink=always")),
)


@dataclass(frozen=True, slots=True)
class Cost:
    new: float
    own: float
    cpu: float
    wall: float


def timed(mount: Path, target: Path, words: tuple[str, ...]) -> Cost:
    """Run a command that makes or changes `target`/image."""
    free = free_bytes(mount)
    cost = run(words)
    new = free - free_bytes(mount)
    return Cost(new / 1024, own_bytes(target / "image") / 1024, cost.cpu, cost.wall)


def updated(kind: str, mount: Path, contender: Contender, size: int) -> Cost:
    """Measure the cost of four changed bytes beside a snapshot or a reflinked copy of the old version."""
    source, target = mount / "source", mount / "target"
    content = random.Random(1).randbytes(size)
    source.mkdir()
    if kind == "btrfs":
        subprocess.run(["btrfs", "-q", "subvolume", "create", target], check=True)
    else:
        target.mkdir()
    for place in (source, target):
        (place / "image").write_bytes(content)
        os.utime(place / "image", ns=(SECOND, SECOND))
    if kind == "btrfs":
        subprocess.run(["btrfs", "-q", "subvolume", "snapshot", target, mount / "snapshot"], check=True)
    else:
        reflink(target / "image", mount / "copy")
    with (source / "image").open("r+b") as file:
        file.seek(size // 2)
        file.write(b"EDIT")
    cost = timed(mount, target, (*contender.words, f"{source}/", f"{target}/"))
    subprocess.run(["cmp", source / "image", target / "image"], check=True)
    return cost


def copied(mount: Path, contender: Contender, size: int) -> Cost:
    """Measure the cost of a first copy on the same file system."""
    source, target = mount / "source", mount / "target"
    source.mkdir()
    (source / "image").write_bytes(random.Random(1).randbytes(size))
    where = f"{source}/." if contender.words[0] == "cp" else f"{source}/"
    cost = timed(mount, target, (*contender.words, where, f"{target}/"))
    subprocess.run(["cmp", source / "image", target / "image"], check=True)
    return cost


def main() -> None:
    parser = arguments(__doc__, runs=3)
    parser.add_argument("--size", type=int, default=200, help="MiB of the file")
    parser.add_argument("--disk", default=MEMORY, help="directory of the images")
    given = parser.parse_args()
    size = given.size * MIB
    if shutil.disk_usage(given.disk).free < 6 * size:
        parser.error(f"{given.disk}: expected {6 * given.size} MiB free")
    print(f"{machine()}, {given.size} MiB, medians of {given.runs}")
    table = Table("file system", "case", "program", "new KiB:", "own KiB:", "CPU s:", "s:")
    for kind in ("btrfs", "xfs"):
        for case, contenders in (("4 bytes", UPDATES), ("first copy", COPIES)):
            for contender in contenders:
                costs = []
                for _ in range(given.runs):
                    with scratch(given.disk) as top, mounted(kind, top, size=5 * size + 512 * MIB) as mount:
                        if case == "4 bytes":
                            costs.append(updated(kind, mount, contender, size))
                        else:
                            costs.append(copied(mount, contender, size))
                found = medians(costs)
                table.row(
                    *(kind, case, f"`{contender.name}`", f"{found.new:,.0f}", f"{found.own:,.0f}"),
                    *(f"{found.cpu:.2f}", f"{found.wall:.2f}"),
                )


if __name__ == "__main__":
    main()
