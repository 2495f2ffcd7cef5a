"""Measures two-way sync over a connection that counts bytes, beside Unison.

Question: what do a first run on equal trees, a run without changes, an edit at each side, and a renamed
directory with edits below its old name at the other side cost?
Metrics: bytes both ways, CPU seconds of both sides, seconds, memory of the larger side, conflicts. The disk
is synced before each run, and both trees have to be the same after it; what a tool left different is counted.
Corpus: small files, made here, in directories of 14; each tool has two copies.
Command: bench/unite.py [--files N] [--renamed N] [--tools rdc,unison] [--place DIR]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.harness import FAR, RDC, RELAY, TOP, Table, arguments, machine, run, scratch

PER_DIRECTORY = 14
EDITS = 10


def path_of(top: Path, number: int) -> Path:
    """Return the path of a file of a tree. A list of all would be counted as memory of what runs next."""
    group = number // PER_DIRECTORY
    return top / f"dir{group // 100:03}" / f"sub{group:05}" / f"file{number:07}.txt"


def made(top: Path, count: int) -> Path:
    """Make `count` files with times that compress badly, as grown trees have them."""
    rng = random.Random(5)
    for number in range(count):
        path = path_of(top, number)
        if number % PER_DIRECTORY == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(b"file %d\n" % number)
        when = 1_600_000_000_000_000_000 + rng.randrange(10**17)
        os.utime(path, ns=(when, when))
    return top


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


class Rdc:
    """Two copies that `rdc unite` keeps the same."""

    waits = True
    """True if the tool waits for the other side's process, so that its own costs are in the tool's."""

    def __init__(self, place: Path, tree: Path) -> None:
        self.left, self.right = place / "left", place / "right"
        for side in (self.left, self.right):
            subprocess.run(["cp", "-a", tree, side], check=True)
        self._place = place
        self._account = place / "account"
        self._env = os.environ | {"XDG_STATE_HOME": str(place), "UNISON": str(place / "archives")}

    def words(self) -> Sequence[str | Path]:
        relay = f"{sys.executable} {RELAY} --account {self._account}"
        return *RDC, "unite", "-q", "-e", relay, "--remote-path", FAR, self.left, f"far:{self.right}"

    def measured(self) -> tuple[int, float, float, int, int]:
        """Run once. Return bytes, CPU seconds, seconds, memory, and what differs then."""
        os.sync()
        self._account.unlink(missing_ok=True)
        spent = run(self.words(), env=self._env, cwd=TOP, accept=(0, 1, 41))  # conflicts are 1 of Unison
        while not self._account.exists() or not (text := self._account.read_text()):
            time.sleep(0.05)  # Unison ends before its connection has been counted
        counted = json.loads(text)
        cpu = spent.cpu - counted["relay_cpu"] if self.waits else spent.cpu + counted["cpu"]
        memory = max(spent.memory, counted["rss"])
        return counted["up"] + counted["down"], cpu, spent.wall, memory, self.differences()

    def differences(self) -> int:
        """Return how many entries the two sides do not have alike."""
        words = ["rsync", "-anic", "--omit-dir-times", "--delete", "--exclude=.rdc-*"]
        found = subprocess.run(
            [*words, f"{self.left}/", f"{self.right}/"], stdout=subprocess.PIPE, check=True
        )
        return len(found.stdout.splitlines())


class Unison(Rdc):
    """Two copies that Unison keeps the same."""

    waits = False

    def words(self) -> Sequence[str | Path]:
        # Unison gives the host, then options of ssh, then the command.
        shell = self._place / "shell"
        shell.write_text(
            f'#!/bin/sh\nwhile [ "$1" != unison ]; do shift; done\n'
            f'exec {sys.executable} {RELAY} --account {self._account} far "$@"\n'
        )
        shell.chmod(0o755)
        there = f"ssh://far/{self.right}"
        return "unison", self.left, there, "-batch", "-auto", "-silent", "-times", "-sshcmd", str(shell)


TOOLS: dict[str, type[Rdc]] = {"rdc": Rdc, "unison": Unison}


def edit_both(pair: Rdc, files: int) -> None:
    append(path_of(pair.left, files // 3), "left\n")
    append(path_of(pair.right, 2 * files // 3), "right\n")


def rename_and_edit(pair: Rdc, files: int) -> None:
    for number in range(EDITS):
        append(path_of(pair.right / "big", number * files // EDITS), "edited\n")
    (pair.left / "big").rename(pair.left / "renamed")


def nothing(_pair: Rdc, _files: int) -> None:
    """Change nothing."""


def main() -> None:
    parser = arguments(__doc__, place=True)
    parser.add_argument("--files", type=int, default=129_000)
    parser.add_argument("--renamed", type=int, default=20_000, help="files in the renamed directory")
    parser.add_argument("--tools", default="rdc,unison")
    given = parser.parse_args()
    print(machine())
    table = Table("case", "tool", "bytes:", "CPU s:", "s:", "MB:", "different after:")
    with scratch(given.place) as top:
        large, small = made(top / "large", given.files), top / "small"
        made(small / "big", given.renamed)
        few, many = given.renamed, given.files
        cases: list[tuple[str, Path, Callable[[Rdc, int], None], int]] = [
            ("first run, equal trees", large, nothing, many),
            ("unchanged", large, nothing, many),
            ("one edit a side", large, edit_both, many),
            ("unchanged after it", large, nothing, many),
            ("first run of a small tree", small, nothing, few),
            (f"{few:,} renamed, {EDITS} edited", small, rename_and_edit, few),
        ]
        pairs: dict[tuple[str, Path], Rdc] = {}
        for name, tree, change, files in cases:
            for tool in given.tools.split(","):
                if (tool, tree) not in pairs:
                    place = top / f"{tool}-{tree.name}"
                    place.mkdir()
                    pairs[tool, tree] = TOOLS[tool](place, tree)
                change(pairs[tool, tree], files)
                size, cpu, wall, memory, different = pairs[tool, tree].measured()
                table.row(
                    name, tool, f"{size:,}", f"{cpu:.2f}", f"{wall:.1f}", memory >> 20, f"{different:,}"
                )


if __name__ == "__main__":
    main()
