"""One big file and its edited version, synced between two processes whose traffic and memory are measured."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.project_paths import RELAY_SSH
from tests.support.running.syncing import FAR, RDC

__all__ = ["Cost", "make_versions", "sync_measured"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one sync through a child. All but `seconds` in bytes."""

    up: int
    down: int
    near_memory: int
    """Peak resident size of the process that was run."""
    far_memory: int
    seconds: float
    summary: dict[str, Any]
    """The last event of --json."""

    @property
    def wire(self) -> int:
        return self.up + self.down


def make_versions(place: Path, size: int, *, edits: int, edit_bytes: int, seed: int = 0) -> tuple[Path, Path]:
    """`place`/new/file of `size` random bytes and `place`/old/file, which differs in `edits` runs of
    `edit_bytes`, spread evenly with a seeded jitter."""
    rng = random.Random(seed)
    new, old = place / "new", place / "old"
    new.mkdir()
    old.mkdir()
    with (new / "file").open("wb") as one, (old / "file").open("wb") as other:
        for start in range(0, size, MIB):
            block = rng.randbytes(min(MIB, size - start))
            one.write(block)
            other.write(block)
    with (old / "file").open("r+b") as file:
        for i in range(edits):
            file.seek(size // edits * i + rng.randrange(size // edits - edit_bytes))
            file.write(rng.randbytes(edit_bytes))
    os.utime(old / "file", (1, 1))
    return new, old


def sync_measured(source: Path, destination: Path, *words: str, pull: bool = False) -> Cost:
    """`rdc sync SOURCE/ DESTINATION`, one of them behind a remote shell. Raises unless it ends with 0."""
    account, near = destination.with_name("account"), destination.with_name("near")
    ends = (f"far:{source}/", str(destination)) if pull else (f"{source}/", f"far:{destination}")
    relay = f"{sys.executable} {RELAY_SSH} --account {account}"
    argv = [*RDC, "sync", "--json", "-e", relay, "--remote-path", FAR, *words, *ends]
    # A small process in between: the peak of a child counts what it inherited before it became rdc.
    measured = [sys.executable, "-c", _MEASURE, str(near), *argv]
    began = time.monotonic()
    done = subprocess.run(measured, stdout=subprocess.PIPE, check=True)
    seconds = time.monotonic() - began
    far = json.loads(account.read_text())
    summary = json.loads(done.stdout.splitlines()[-1])
    return Cost(far["up"], far["down"], int(near.read_text()) * 1024, far["rss"], seconds, summary)


# /proc and not getrusage: the kernel's count of children's memory includes the remote side, here a
# grandchild.
_MEASURE = """
import os, subprocess, sys, time
child = subprocess.Popen(sys.argv[2:])
peak = "0"
while child.poll() is None:
    try:
        with open(f"/proc/{child.pid}/status") as status:
            peak = next((line.split()[1] for line in status if line.startswith("VmHWM")), peak)
    except OSError:
        pass
    time.sleep(0.005)
with open(sys.argv[1], "w") as file:
    file.write(peak)
sys.exit(child.returncode)
"""
