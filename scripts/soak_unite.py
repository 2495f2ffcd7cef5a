"""Run random histories of two-way sync on real trees, with kills and lost state, until the time is over.

    scripts/soak unite [--minutes=N] [--seed=N] [--kills=N]

Each history is one of tests/uniting/real_histories.py: against the plan in memory, or with kills, on one
machine or as between two, and without extended attributes, with them, or with ACLs among them; a third of
them with hard links. One that fails is named with its seed. With --kills each history has kills, right before
a random one of the system calls that change something, those of C code as well, and the soak ends after this
many.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from rdc.lean.records import replace
from rdc.model.options import KeepUndo
from tests.support.running.killed_calls import killing_library
from tests.uniting.real_histories import (
    Kill,
    history_beside_memory,
    history_with_kills,
    in_a_child,
    killed_run,
)
from tests.uniting.real_world import QUICK, RealWorld

KINDS = tuple(
    (kind, remote, sets)
    for kind in ("memory", "kills", "lost state")
    for remote in (False, True)
    for sets in ("", "attributes", "ACLs")
)
MOST_CALLS = 160
"""A run of such a small tree makes fewer calls that change something, unless it has many steps."""
_PRELOADED = "RDC_SOAK_KILLS"


def history(kind: str, remote: bool, sets: str, seed: int, kill: Kill = killed_run) -> None:
    """Run one history in a directory of its own."""
    has_attributes, has_acls = bool(sets), sets == "ACLs"
    has_links = seed % 3 == 0
    with tempfile.TemporaryDirectory() as top:
        if kind == "memory":
            history_beside_memory(
                seed,
                Path(top),
                remote=remote,
                has_attributes=has_attributes,
                has_acls=has_acls,
                has_links=has_links,
            )
        else:
            history_with_kills(
                seed,
                kind == "lost state",
                Path(top),
                remote=remote,
                has_attributes=has_attributes,
                has_acls=has_acls,
                has_links=has_links,
                kill=kill,
            )


class CallKills:
    """Kills runs right before one of their system calls. This process has the library that counts them."""

    def __init__(self) -> None:
        self._arm: Callable[[ctypes.c_long], None] = ctypes.CDLL(None).arm
        self.done = 0

    def __call__(self, world: RealWorld, rng: random.Random, exchanged: bool) -> None:
        calls = rng.randrange(MOST_CALLS)
        # Data kept for an undo gives old versions second names, and other change times.
        options = replace(QUICK, keep_undo=rng.choice([None, KeepUndo(days=7)]))

        def run() -> None:
            self._arm(ctypes.c_long(calls))
            world.unite(options, lambda _: None, exchanged=exchanged)

        status = in_a_child(run)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or not status, f"a run in a child ended with status {status}"
        self.done += killed


def preload() -> None:
    """Start again with the library that counts calls. Returns in the process that has it."""
    if _PRELOADED in os.environ:
        return
    with tempfile.TemporaryDirectory() as place:
        library = killing_library(Path(place))
        preloaded = f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()
        environ = {**os.environ, "LD_PRELOAD": preloaded, _PRELOADED: "1"}
        words = [sys.executable, "-m", "scripts.soak_unite", *sys.argv[1:]]
        sys.exit(subprocess.call(words, env=environ))


def main() -> int:
    """Run until the time is over, or all kills were done."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--kills", type=int, default=0, help="end after this many kills at system calls")
    arguments = parser.parse_args()
    if arguments.kills:
        preload()
    kills = CallKills() if arguments.kills else None
    kinds = [each for each in KINDS if kills is None or each[0] != "memory"]
    ends = time.monotonic() + 60 * arguments.minutes
    seed, count, failed = arguments.seed, 0, 0
    while time.monotonic() < ends and (kills is None or kills.done < arguments.kills):
        for kind, remote, sets in kinds:
            count += 1
            try:
                history(kind, remote, sets, seed, kills or killed_run)
            except Exception:  # noqa: BLE001 - every failure is shown
                failed += 1
                how = "two machines, " * remote + f"{sets}, " * bool(sets)
                print(f"history failed: {kind}, {how}seed {seed}", flush=True)
                traceback.print_exc(limit=-4)
        seed += 1
        if (seed - arguments.seed) % 100 == 0:
            print(f"{count:,} histories, {failed} failed", flush=True)
    killed = f", {kills.done:,} kills" if kills is not None else ""
    print(f"{count:,} histories, seeds from {arguments.seed}{killed}, pid {os.getpid()}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
