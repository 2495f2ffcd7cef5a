"""scripts/soak messages [--minutes N] [--seed S] [--attempts N]: sessions with altered messages.

Each attempt ends as a session may: normally or with an error of rdc, in bounded time and memory. No content
is wrong, and nothing outside the destination changes. Seed and scene determine an attempt.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from tests.support.wire.tampered_session import SCENES, Tampering


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the first attempt; the next has the next one")
    parser.add_argument("--scene", type=int, choices=range(len(SCENES)), help="only this one")
    parser.add_argument("--attempts", type=int, help="how many of each scene, instead of --minutes")
    given = parser.parse_args()
    os.environ["RDC_CATALOG"] = "off"
    end, seed = time.monotonic() + 60 * given.minutes, given.seed
    numbers = range(len(SCENES)) if given.scene is None else [given.scene]
    with tempfile.TemporaryDirectory(prefix="rdc-soak-") as top:
        tamperings = {number: Tampering(Path(top, str(number)), SCENES[number]()) for number in numbers}
        while seed < given.seed + given.attempts if given.attempts else time.monotonic() < end:
            for number, tampering in tamperings.items():
                try:
                    tampering.attempt(seed)
                except BaseException:
                    print(f"scene {number}, seed {seed}", flush=True)
                    raise
            seed += 1
    for number, tampering in tamperings.items():
        print(number, dict(tampering.ends.most_common()), dict(tampering.kinds.most_common()))


if __name__ == "__main__":
    main()
