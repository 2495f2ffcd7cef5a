"""scripts/soak daemon [--minutes N] [--seed S]: damaged beginnings of sessions for a real daemon.

Every session ends with one of its exit codes and a line, none by a signal or an internal error, none larger
than its bound; the daemon goes on, does not grow, and nothing outside of the module is touched.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzzed_daemon import Fuzz
from tests.hostile_peer import private_kb, serving

ROUND = 500
"""Attempts with one daemon: its log is read back whole."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end, seed, codes = time.monotonic() + 60 * given.minutes, given.seed, Counter[str]()
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="rdc-soak-") as top:
            place = Path(top)
            (place / "data").mkdir()
            with serving(place / "data") as daemon:
                fuzz, done = Fuzz(daemon, place, seed), 0
                daemon.await_idle()  # what it shares with a session is not counted as its own
                before = private_kb(daemon.process.pid)
                try:
                    while done < ROUND and time.monotonic() < end:
                        fuzz.attempt()
                        done += 1
                    codes += fuzz.check()
                    grown = private_kb(daemon.process.pid) - before
                    assert grown < 5_000, f"the daemon grew by {grown} KiB"
                except BaseException:
                    print(f"seed {seed}, attempt {done}", flush=True)
                    print("".join((daemon.place / "log").read_text().splitlines(keepends=True)[-20:]))
                    raise
        seed += 1
    print(dict(sorted(codes.items())))


if __name__ == "__main__":
    main()
