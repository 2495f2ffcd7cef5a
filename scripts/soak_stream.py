"""scripts/soak stream [--minutes N] [--seed S]: cuts streams at random offsets and flips single bits.

After a cut every path is old or new. After a flipped bit no content is wrong. No error is an internal one.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from rdc.errors import ExitCode
from tests.support.running.damaged_sync import HELD, WANTED, Attempt
from tests.support.running.syncing import Way
from tests.support.trees.trees import write_tree


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ["RDC_CATALOG"] = "off"
    rng, codes = random.Random(given.seed), Counter[ExitCode]()
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory(prefix="rdc-soak-") as top:
        places = write_tree(Path(top, "source"), WANTED), write_tree(Path(top, "destination"), HELD)
        attempts = [Attempt(*places, way, side) for way in (Way.PUSH, Way.PULL) for side in ("near", "far")]
        totals = [attempt.total() for attempt in attempts]
        while time.monotonic() < end:
            attempt, total = rng.choice(list(zip(attempts, totals, strict=True)))
            # Half of the damage hits the first messages, half any offset.
            last = rng.choice((min(total, 3000), total))
            damage = (
                {"cut": rng.randrange(1, last)} if rng.random() < 0.2 else {"flip": rng.randrange(8 * last)}
            )
            try:
                codes[attempt.run(**damage)] += 1
            except BaseException:
                print(f"{attempt.way.name.lower()}, {attempt.end} end: {damage}", flush=True)
                raise
    print({int(code): count for code, count in sorted(codes.items())})


if __name__ == "__main__":
    main()
