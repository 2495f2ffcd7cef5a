"""scripts/soak kills [--minutes N | --kills N] [--seed S]: kills either side of syncs with SIGKILL.

After each kill every path must be wholly old or wholly new. The next run must finish and leave nothing over.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.support.running.killed_sync import Killer, Scene


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=0, help="end after so many, however long they take")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory(prefix="rdc-soak-") as top:
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
