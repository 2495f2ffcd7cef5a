"""scripts/soak kills [--minutes N | --kills N] [--seed S] [--on FS]: kills either side of syncs with SIGKILL.

After each kill every path must be wholly old or wholly new. The next run must finish and leave nothing over.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from pathlib import Path

from tests.support.running.killed_sync import Killer, Scene
from tests.support.trees.loop_images import mounted


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=0, help="end after this many, however long they take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--on", choices=("btrfs", "xfs"), help="on an image of this file system (needs root)")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    with contextlib.ExitStack() as stack:
        top = stack.enter_context(tempfile.TemporaryDirectory(prefix="rdc-soak-"))
        if given.on:
            top = str(stack.enter_context(mounted(given.on, Path(top), size=2 << 30)))
        os.environ["RDC_CATALOG"] = f"{top}/catalog"
        killer = Killer(Scene(Path(top)), given.seed)
        said = 0.0
        while killer.tally.kills < given.kills if given.kills else time.monotonic() < end:
            killer.kill_once()
            if time.monotonic() - said > 30:
                said = time.monotonic()
                print(killer.tally, flush=True)
        print(killer.tally)


if __name__ == "__main__":
    main()
