"""scripts/soak sync [--minutes N] [--seed S] [--scenes N] [--samples DIR] [--scratch DIR]: random syncs.

Random trees change and are synced, locally and through a remote side. Some runs are killed first. The result
must equal what rsync leaves. A second run must change nothing and cost nothing. Trees that failed are kept.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.support.running.compared_sync import ComparedSync, DifferenceError


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first scene; the next has the next one")
    parser.add_argument("--scenes", type=int, help="how many, instead of --minutes")
    parser.add_argument("--samples", type=Path, help="code and text are taken from here")
    parser.add_argument("--scratch", type=Path)
    given = parser.parse_args()
    end, seed, tally, said = time.monotonic() + 60 * given.minutes, given.seed, Counter[str](), 0.0
    failed: list[int] = []
    while seed < given.seed + given.scenes if given.scenes else time.monotonic() < end:
        place = Path(tempfile.mkdtemp(prefix="rdc-soak-", dir=given.scratch))
        try:
            scene = ComparedSync(place, seed, given.samples)
            scene.run()
        except DifferenceError as difference:
            print(f"{difference}\nleft at {place}", flush=True)
            failed.append(seed)
        except BaseException:
            print(f"seed {seed}: left at {place}", flush=True)
            raise
        else:
            tally += scene.tally + Counter(scenes=1)
            shutil.rmtree(place)
        seed += 1
        if time.monotonic() - said > 30:
            said = time.monotonic()
            print(f"to seed {seed}: {dict(tally)}", flush=True)
    print(dict(tally))
    if failed:
        raise SystemExit(f"failed: seeds {failed}")


if __name__ == "__main__":
    main()
