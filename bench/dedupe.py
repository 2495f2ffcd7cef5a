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
Commands:  .venv/bin/python -m bench.dedupe --made
           .venv/bin/python -m bench.dedupe --tree OLD --tree NEW [--kind btrfs] [--runs 3]
Needs root, loop devices, btrfs-progs, xfsprogs, duperemove and jdupes. The image lies in /dev/shm.
"""

from __future__ import annotations

import filecmp
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import MEMORY, MIB, RDC, arguments, in_turns, machine, medians, run, scratch
from tests.support.trees.loop_images import free_bytes, mounted

DEDUPE = (*RDC, "dedupe", "-q", "--no-catalog", "--apply")


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    words: tuple[str, ...]
    kinds: tuple[str, ...]


SHARING, LINKING = ("btrfs", "xfs"), ("ext4",)
CONTENDERS = (
    Contender("rdc dedupe", DEDUPE, SHARING),
    Contender("jdupes -rB", ("jdupes", "-q", "-r", "-B"), SHARING),
    Contender("rdc dedupe --chunks", (*DEDUPE, "--chunks"), SHARING),
    Contender("duperemove -rd", ("duperemove", "-r", "-d", "-A"), SHARING),
    Contender(
        "rdc dedupe --hardlink", (*DEDUPE, "--hardlink", "--journal=/dev/shm/rdc-bench.journal"), LINKING
    ),
    Contender("jdupes -rL", ("jdupes", "-q", "-r", "-L"), LINKING),
)


@dataclass(frozen=True, slots=True)
class Won:
    won: int
    cpu: float
    wall: float
    sound: bool
    """True if the tree has its original contents."""


def make_tree(top: Path) -> None:
    """Make 40 MiB of small identical files, 240 MiB of large ones, and 3 similar images of 64 MiB."""
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
    """Copy a tree without sharing blocks, keep its times, and wait until it is on disk."""
    for number, tree in enumerate(trees):
        subprocess.run(["cp", "-a", "--reflink=never", tree, top / f"tree{number}"], check=True)
    subprocess.run(["sync", "-f", top], check=True)


def measure(contender: Contender, kind: str, trees: list[Path], size: int) -> Won:
    with scratch(MEMORY) as place, mounted(kind, place, size=size) as point:
        top = point / "trees"
        top.mkdir()
        fill(trees, top)
        free = free_bytes(point)
        cost = run([*contender.words, str(top)], accept=range(256))
        Path(MEMORY, "rdc-bench.journal").unlink(missing_ok=True)
        won = free_bytes(point) - free
        sound = all(_same(tree, top / f"tree{number}") for number, tree in enumerate(trees))
    return Won(won, cost.cpu, cost.wall, sound)


def _same(one: Path, other: Path) -> bool:
    """Return whether content, mode, owner and mtime of every file are equal."""
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
    parser = arguments(__doc__, runs=3)
    parser.add_argument("--tree", type=Path, action="append", default=[])
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--kind", action="append", choices=[*SHARING, *LINKING])
    given = parser.parse_args()
    with scratch(MEMORY) as made:
        trees = given.tree
        if given.made:
            make_tree(made)
            trees = [*trees, made]
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
        print(f"{count:,} files, {content / 1e6:.1f} MB; {machine()}; {'; '.join(versions)}")
        for kind in given.kind or [*SHARING, *LINKING]:
            compare(kind, trees, size, given.runs)


def compare(kind: str, trees: list[Path], size: int, runs: int) -> None:
    contenders = [one for one in CONTENDERS if kind in one.kinds and shutil.which(one.words[0])]
    ways = {one.name: partial(measure, one, kind, trees, size) for one in contenders}
    for name, found in in_turns(ways, runs).items():
        cost = medians(found)
        note = "" if all(one.sound for one in found) else "  CHANGED what it should not"
        print(
            f"{kind:<6} {name:<22} won {cost.won / 1e6:8.1f} MB   cpu {cost.cpu:6.2f} s"
            f"   wall {cost.wall:6.2f} s{note}"
        )


if __name__ == "__main__":
    main()
