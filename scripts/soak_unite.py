"""Run random histories of two-way sync on real trees, with kills and lost state, until the time is over.

    scripts/soak unite [--minutes=N] [--seed=N]

Each history is one of tests/uniting/real_histories.py: against the plan in memory, or with kills, on one
machine or as between two. One that fails is named with its seed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.uniting.real_histories import history_beside_memory, history_with_kills

KINDS = tuple((kind, remote) for kind in ("memory", "kills", "lost state") for remote in (False, True))


def history(kind: str, remote: bool, seed: int) -> None:
    """Run one history in a directory of its own."""
    with tempfile.TemporaryDirectory() as top:
        if kind == "memory":
            history_beside_memory(seed, Path(top), remote=remote)
        else:
            history_with_kills(seed, kind == "lost state", Path(top), remote=remote)


def main() -> int:
    """Run until the time is over or a history fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    ends = time.monotonic() + 60 * arguments.minutes
    seed, failed = arguments.seed, 0
    while time.monotonic() < ends:
        for kind, remote in KINDS:
            try:
                history(kind, remote, seed)
            except Exception:  # noqa: BLE001 - every failure is shown
                failed += 1
                print(f"history failed: {kind}, {'two machines, ' * remote}seed {seed}", flush=True)
                traceback.print_exc(limit=-4)
        seed += 1
    print(f"{seed - arguments.seed:,} seeds from {arguments.seed}, pid {os.getpid()}: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
