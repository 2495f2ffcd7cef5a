#!/usr/bin/env python3
"""Measures space won and CPU time of single instances, beside duperemove and jdupes on the same image.

Question:  how much space does each tool win on the same tree, and for how much CPU?
Metrics:   won: bytes that df shows as free after the run minus before, on a new image for each run; cpu: user
           and system seconds of the tool, with the kernel's comparisons; wall: seconds. Medians of
           interleaved runs. Each tree is compared with the original afterwards; the output names a tool that
           changed it.
Beside:    sharing (btrfs, XFS): `rdc dedupe --apply` with `jdupes -rB`; `rdc dedupe --chunks --apply` with
           `duperemove -rd`. Hard links (ext4): `rdc dedupe --hardlink --apply` with `jdupes -rL`.
Corpora:   --tree: trees; --made: a seeded tree of small identical files, large ones, and images that differ
           by edits in place.
Commands:  .venv/bin/python scripts/bench_dedupe.py --made
           .venv/bin/python scripts/bench_dedupe.py --tree OLD --tree NEW [--kind btrfs] [--runs 3]
Needs root, loop devices, btrfs-progs, xfsprogs, duperemove and jdupes. The image lies in /dev/shm.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rdc.kernel import kernel_name
from tests.support.trees.loop_images import free_bytes, mounted

MIB = 1 << 20
RDC = (sys.executable, "-m", "rdc", "dedupe", "-q", "--no-catalog", "--apply")
MEMORY = "/dev/shm"  # noqa: S108 - a directory of random name is made in it


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    words: tuple[str, ...]
    kinds: tuple[str, ...]


SHARING, LINKING = ("btrfs", "xfs"), ("ext4",)
CONTENDERS = (
    Contender("rdc dedupe", RDC, SHARING),
    Contender("jdupes -rB", ("jdupes", "-q", "-r", "-B"), SHARING),
    Contender("rdc dedupe --chunks", (*RDC, "--chunks"), SHARING),
    Contender("duperemove -rd", ("duperemove", "-r", "-d", "-A"), SHARING),
    Contender("rdc dedupe --hardlink", (*RDC, "--hardlink", "--journal=/dev/shm/rdc-bench.journal"), LINKING),
    Contender("jdupes -rL", ("jdupes", "-q", "-r", "-L"), LINKING),
)


@dataclass(frozen=True, slots=True)
class Cost:
    won: int
    cpu: float
    wall: float
    sound: bool
    """Whether the tree has its original contents."""


def make_tree(top: Path) -> None:
    """Makes 40 MiB of small identical files, 240 MiB of large ones, and 3 similar images of 64 MiB."""
    rng = random.Random(1)
    for number in range(2_000):
        content = rng.randbytes(rng.randrange(1, 16_000))
        for copy in ("one", "two"):
            path = top / copy / f"dir{number % 50}" / f"file{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (1, 1))
    for number in range(20):
        content = rng.randbytes(4 * MIB)
        for copy in ("one", "two", "three"):
            path = top / copy / f"large{number}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (1, 1))
    image = bytearray(rng.randbytes(64 * MIB))
    for version in range(3):
        for _ in range(20):
            at = rng.randrange(len(image) - 4096)
            image[at : at + 100] = rng.randbytes(100)
        (top / f"image{version}").write_bytes(image)


def fill(trees: list[Path], top: Path) -> None:
    """Copies a tree without sharing blocks, keeps its times, and waits until it is on disk."""
    for number, tree in enumerate(trees):
        subprocess.run(["cp", "-a", "--reflink=never", tree, top / f"tree{number}"], check=True)
    subprocess.run(["sync", "-f", top], check=True)


def measure(contender: Contender, kind: str, trees: list[Path], size: int) -> Cost:
    with (
        tempfile.TemporaryDirectory(prefix="rdc-bench-", dir=MEMORY) as place,
        mounted(kind, Path(place), size=size) as point,
    ):
        top = point / "trees"
        top.mkdir()
        fill(trees, top)
        free = free_bytes(point)
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([*contender.words, str(top)], check=False, capture_output=True)
        wall = time.monotonic() - began
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        Path(MEMORY, "rdc-bench.journal").unlink(missing_ok=True)
        won = free_bytes(point) - free
        cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        sound = all(_same(tree, top / f"tree{number}") for number, tree in enumerate(trees))
    return Cost(won, cpu, wall, sound)


def _same(one: Path, other: Path) -> bool:
    """Whether content, mode, owner and mtime of every file are equal."""
    for path in _files(one):
        copy = other / path.relative_to(one)
        then, now = path.stat(), copy.stat()
        alike = (then.st_mode, then.st_uid, then.st_mtime_ns) == (now.st_mode, now.st_uid, now.st_mtime_ns)
        if not alike or not filecmp.cmp(path, copy, shallow=False):
            return False
    return True


def _files(top: Path) -> Iterator[Path]:
    return (path for path in top.rglob("*") if path.is_file() and not path.is_symlink())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tree", type=Path, action="append", default=[])
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--kind", action="append", choices=[*SHARING, *LINKING])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rdc-bench-", dir=MEMORY) as made:
        trees = given.tree
        if given.made:
            make_tree(Path(made))
            trees = [*trees, Path(made)]
        if not trees:
            parser.error("give --made or --tree")
        content = sum(path.stat().st_size for tree in trees for path in _files(tree))
        count = sum(1 for tree in trees for _ in _files(tree))
        size = max(512 * MIB, content * 2)
        versions = [
            subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()[0]
            for words in (("duperemove", "--version"), ("jdupes", "-v"))
            if shutil.which(words[0])
        ]
        print(f"{count:,} files, {content / 1e6:.1f} MB; kernel {kernel_name()}; {'; '.join(versions)}")
        for kind in given.kind or [*SHARING, *LINKING]:
            compare(kind, trees, size, given.runs)


def compare(kind: str, trees: list[Path], size: int, runs: int) -> None:
    contenders = [one for one in CONTENDERS if kind in one.kinds and shutil.which(one.words[0])]
    costs: dict[str, list[Cost]] = {one.name: [] for one in contenders}
    for _ in range(runs):
        for one in contenders:
            costs[one.name].append(measure(one, kind, trees, size))
    for name, found in costs.items():
        won = statistics.median(cost.won for cost in found) / 1e6
        cpu = statistics.median(cost.cpu for cost in found)
        wall = statistics.median(cost.wall for cost in found)
        note = "" if all(cost.sound for cost in found) else "  CHANGED what it should not"
        print(f"{kind:<6} {name:<22} won {won:8.1f} MB   cpu {cpu:6.2f} s   wall {wall:6.2f} s{note}")


if __name__ == "__main__":
    main()
