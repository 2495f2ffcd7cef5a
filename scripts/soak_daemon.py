"""scripts/soak daemon [--minutes N] [--events N [--reloads N]] [--seed S]

Without --events: damaged beginnings of sessions for a real daemon. Every session ends with one of its exit
codes and one line, never by a signal or an internal error, and within its memory bound. The daemon goes on
and does not grow. Nothing outside the module changes.

With --events: that many events of strangers' connections in random orders, and --reloads with damaged
configurations (every tenth is valid). The daemon stays alive, serves trusted clients, and does not grow.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.support.daemon.fuzzed_daemon import Fuzz
from tests.support.daemon.hostile_events import HostileEvents
from tests.support.trees.trees import tree, write_tree
from tests.support.wire.hostile_peer import private_kb, serving

ROUND = 500
"""Attempts with one daemon: its log is read back whole."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--events", type=int)
    parser.add_argument("--reloads", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.events is not None:
        storm(given.events, given.reloads, given.seed)
        return
    end, seed, codes = time.monotonic() + 60 * given.minutes, given.seed, Counter[str]()
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="rdc-soak-") as top:
            place = Path(top)
            (place / "data").mkdir()
            with serving(place / "data") as daemon:
                fuzz, done = Fuzz(daemon, place, seed), 0
                daemon.await_idle()  # memory shared with a session does not count
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


def storm(events: int, reloads: int, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="rdc-soak-") as top:
        data = write_tree(Path(top) / "data", tree({"d/f": b"f" * 50_000, "g": b"g"}))
        with serving(data) as daemon:
            began = time.monotonic()
            try:
                print(HostileEvents(daemon, Path(top), seed).run(events, reloads), flush=True)
            except BaseException:
                print("".join((daemon.place / "log").read_text().splitlines(keepends=True)[-20:]))
                raise
            seconds = time.monotonic() - began
            print(f"{seconds:.0f} seconds; exit code after SIGTERM: {daemon.end()}")


if __name__ == "__main__":
    main()
