"""rsync and rdc over the same trees, and the comparison of both."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.running.syncing import command
from tests.support.trees.trees import Directory, Tree, describe, read_tree, write_tree

Result = tuple[int, list[str]]
"""Exit code, and the sorted lines of stdout."""


def rsync(*words: str | Path) -> Result:
    """`rsync -a`, without what it says of a directory it makes or cannot replace."""
    done = subprocess.run(
        ["rsync", "-a", "--modify-window=-1", *map(str, words)], capture_output=True, check=False, timeout=60
    )
    hexadecimal = re.sub(rb"\\#([0-7]{3})", lambda m: b"\\x%02x" % int(m[1], 8), done.stdout)
    lines = os.fsdecode(hexadecimal).splitlines()
    spoken = ("created directory ", "cannot delete non-empty directory: ", "could not make way for ")
    return done.returncode, sorted(line for line in lines if not line.startswith(spoken))


def rdc(*words: str | Path) -> Result:
    """A rename is told as what rsync makes of it: a new file, and one that is deleted."""
    ended = command("sync", "--force-empty", "--no-fsync", *words)
    lines = []
    for line in ended.out.splitlines():
        old, renamed, new = line.removeprefix("*renaming   ").partition(" -> ")
        if renamed and line.startswith("*renaming   "):
            lines += [f"*deleting   {old}", f">f+++++++++ {new}"]
        else:
            lines.append(line)
    return ended.code, sorted(lines)


def settled(result: Result) -> Result:
    """Return the result without the difference between a file that was sent and one that was found equal."""
    code, lines = result
    return code, sorted(line.replace(">f..t", ".f..t", 1) for line in lines)


def certain(rehearsed: Result, rules: Sequence[str]) -> Result:
    """Return the result without the deletions that rsync announces and then does not make."""
    code, lines = rehearsed
    if any("clude=" in word or "filter" in word for word in rules) and "--delete-excluded" not in rules:
        lines = [line for line in lines if not re.fullmatch(r"\*deleting .*/", line)]
    return code, lines


def without_now(found: Tree) -> Tree:
    """Directories that were written in, and are not synced themselves, have the time of this run."""
    recent = time.time_ns() - 3600 * 10**9
    return {
        path: Directory(node.mode) if isinstance(node, Directory) and node.mtime_ns > recent else node
        for path, node in found.items()
    }


def check(wanted: Tree, held: Tree, *words: str) -> None:
    with tempfile.TemporaryDirectory(prefix="rdc-test-") as top:
        source = write_tree(Path(top, "source"), wanted)
        theirs, ours = (write_tree(Path(top, name), held) for name in ("theirs", "ours"))
        where = f"{source}/"
        rehearsed = rdc("-n", "-i", *words, where, f"{ours}/")
        assert certain(rehearsed, words) == certain(rsync("-n", "-i", *words, where, f"{theirs}/"), words)
        assert describe(held, read_tree(ours)) == []
        real = rdc("-i", *words, where, f"{ours}/")
        assert settled(real) == settled(rsync("-i", *words, where, f"{theirs}/"))
        assert describe(without_now(read_tree(theirs)), without_now(read_tree(ours))) == []
