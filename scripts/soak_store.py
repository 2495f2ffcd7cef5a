"""Run random histories of a store beside a model, with kills and damage, until the time is over.

    scripts/soak store [--minutes=N | --histories=N] [--seed=N] [--steps=N]
    scripts/soak store --kills=10000 | --cuts=10 | --flips=1000 | --generations=1000 [--seed=N]

Each history is one of tests/support/store/histories.py. One that fails is named with its seed. With a number
of kills, flipped bits, generations, or rounds of power cuts after every call of puts, a forget and a gc, one
of tests/support/store/trials.py runs instead.
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

from tests.support.store.histories import StoreHistory
from tests.support.store.trials import cut_everywhere, flip_bits, kill_at_once, many_generations

SUBSETS = 4
"""Random sets of what was not synced that a power cut loses, after each call."""

KILLS_AT_ONCE = 100
"""Kills of one store, before a new one is made."""


def main() -> int:
    """Run what was asked for, and report what failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--histories", type=int, default=0)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--cuts", type=int)
    parser.add_argument("--flips", type=int)
    parser.add_argument("--generations", type=int)
    arguments = parser.parse_args()
    if arguments.kills:
        return _kill(arguments.seed, arguments.kills)
    if arguments.cuts:
        return _cut(arguments.seed, arguments.cuts)
    with tempfile.TemporaryDirectory() as top:
        if arguments.flips:
            counts = flip_bits(Path(top), arguments.seed, arguments.flips)
            print(f"{arguments.flips:,} flipped bits, seed {arguments.seed}: {counts}")
            return 0
        if arguments.generations:
            depth, share = many_generations(Path(top), arguments.seed, arguments.generations)
            print(
                f"{arguments.generations} generations: depth {depth}; after gc {share:.3f} of a fresh store"
            )
            return 0
    seconds = float("inf") if arguments.histories else 60 * arguments.minutes
    return _histories(arguments.seed, arguments.steps, arguments.histories or sys.maxsize, seconds)


def _kill(seed: int, kills: int) -> int:
    done = put = 0
    while done < kills:
        with tempfile.TemporaryDirectory() as top:
            put += kill_at_once(Path(top), seed, min(KILLS_AT_ONCE, kills - done))
        done += KILLS_AT_ONCE
        seed += 1
        print(f"{done:,} kills, {put:,} snapshots, next seed {seed}: each listed one was read", flush=True)
    return 0


def _cut(seed: int, rounds: int) -> int:
    states = 0
    for done in range(1, rounds + 1):
        with tempfile.TemporaryDirectory() as top:
            states += cut_everywhere(Path(top), seed, SUBSETS)
        seed += 1
        print(f"{done} rounds, {states:,} states of a disk, next seed {seed}: each was whole", flush=True)
    return 0


def _histories(seed: int, steps: int, histories: int, seconds: float) -> int:
    ends, first, failed = time.monotonic() + seconds, seed, 0
    while time.monotonic() < ends and seed < first + histories:
        with tempfile.TemporaryDirectory() as top:
            try:
                StoreHistory(seed, Path(top)).run(steps)
            except Exception:  # noqa: BLE001 - every failure is shown
                failed += 1
                print(f"history failed: seed {seed}", flush=True)
                traceback.print_exc(limit=-4)
        seed += 1
    print(
        f"{steps * (seed - first):,} steps, seeds from {first}, pid {os.getpid()}: {failed} histories failed"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
