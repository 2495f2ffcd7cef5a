"""Real writers at work in a tree that is synced, at either end: after them one more run makes both equal.

It compares sizes and mtimes. So no run beside a writer may leave a file that has the size and mtime of the
source's and another content.
"""

from __future__ import annotations

import os
import random
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import run_sync
from tests.support.trees.racing_writer import IN_PLACE, WAYS, Writer, disturb
from tests.support.trees.trees import describe, read_tree

ROUNDS = 30
"""At least, and until both have met so often."""
MANY = 60
"""Files of which those that are only touched are compared many at a time."""
OPTIONS = SyncOptions(delete=True, fsync=False)
CODES = {
    "source": {ExitCode.OK, ExitCode.VANISHED, ExitCode.PARTIAL},
    "destination": {ExitCode.OK, ExitCode.PARTIAL},
}
STATES = ("new", "touched", "changed", "other modes", "equal")


def make_trees(place: Path, rng: random.Random, state: str) -> list[str]:
    """`source` and `destination` below `place`; the names of the files in both."""
    names = [f"{rng.choice(('', 'a/', 'b/'))}f{number}" for number in range(rng.choice((3, 12, MANY)))]
    for side in ("source", "destination"):
        for directory in ("a", "b"):
            (place / side / directory).mkdir(parents=True)
    for number, name in enumerate(names):
        content = rng.randbytes(rng.choice((60, 900, 5_000, 40_000, 300_000)))
        stamp = 1_600_000_000_000_000_000 + number
        wanted, held = place / "source" / name, place / "destination" / name
        wanted.write_bytes(content)
        os.utime(wanted, ns=(stamp, stamp))
        if state != "new":
            held.write_bytes(rng.randbytes(50) + content[50:] if state == "changed" else content)
            # Never the time at which it is made, which a writer of that tick gives its file, too.
            time_held = stamp if state in ("equal", "other modes") else stamp + 1_000_000_000
            os.utime(held, ns=(time_held, time_held))
        if state == "other modes":
            held.chmod(0o600)
    return names


@pytest.mark.parametrize("side", CODES)
def test_a_writer_in_the_tree(side: str, tmp_path: Path) -> None:
    rng = random.Random(side)
    met = made = 0
    for number in count():
        state = STATES[number % len(STATES)]
        place = tmp_path / str(number)
        names = make_trees(place, rng, state)
        # Where syncs are slow to begin, writers go on for longer from round to round.
        pause = rng.choice((0, 0.0005, 0.003)) * (1 + number // ROUNDS)
        ways = WAYS if number % 3 == 0 else IN_PLACE
        work = partial(disturb, place / side, names, number, rng.choice((5, 20, 60)), pause, ways)
        writer = Writer(work)
        while True:
            over = not writer.at_work()
            run = run_sync(place / "source", place / "destination", OPTIONS)
            met += not over
            assert run.done.exit in CODES[side], (number, state, run.problems)
            if over:
                break
        made += writer.result()
        # The first run that began after the writer's last change has nothing to complain of.
        assert run.problems == [], (number, state)
        difference = describe(read_tree(place / "source"), read_tree(place / "destination"))
        assert difference == [], (number, state)
        if number >= ROUNDS - 1 and met > ROUNDS and made > 10 * ROUNDS:
            break
        assert number < 10 * ROUNDS, (met, made)
