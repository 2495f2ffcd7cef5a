"""scripts/soak power [--seed S] [--states N] [--converge N] [--on FS] [COMMAND...]: power cuts at every call.

Each command of tests/support/power/power_scenes.py is recorded once. After each of its calls, and for both
orders of metadata, the run tries three kinds of loss: each single thing that was not synced, all of them, and
20 random sets. Each path must then be wholly old or wholly new. The command run again over every N-th state
(--converge) must finish. --states draws that many states of each command and order. Exits with 1 if anything
was torn or lost. All states take ten minutes where TMPDIR is in memory, and hours on a disk.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.support.power.power_checks import run_states, sample
from tests.support.power.power_cut import History
from tests.support.power.power_log import Ordering
from tests.support.power.power_scenes import SCENES
from tests.support.power.recorded_writes import built_recorder
from tests.support.trees.loop_images import mounted


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--states", type=int, default=0)
    parser.add_argument("--converge", type=int, default=20)
    parser.add_argument("command", nargs="*", choices=[*SCENES, []], metavar="COMMAND")
    parser.add_argument("--on", choices=("btrfs", "xfs"), help="on an image of this file system (needs root)")
    given = parser.parse_args()
    os.environ["RDC_CATALOG"] = "off"
    prefixes = states = converged = faults = 0
    with contextlib.ExitStack() as stack:
        top = stack.enter_context(tempfile.TemporaryDirectory(prefix="rdc-soak-"))
        if given.on:
            top = str(stack.enter_context(mounted(given.on, Path(top), size=2 << 30)))
        recorder = built_recorder(Path(top))
        for number, name in enumerate(given.command or SCENES):
            began = time.monotonic()
            place = Path(top) / str(number)
            place.mkdir()
            scene = SCENES[name](place, recorder)
            history = History(scene.before, scene.calls)
            syncs = len(history.log.syncs())
            print(f"{name}: {len(history)} calls, {syncs} of them syncs", flush=True)
            for ordering in Ordering:
                cuts = (
                    sample(history, ordering, given.seed, given.states)
                    if given.states
                    else history.cuts(ordering, given.seed)
                )
                found = run_states(
                    scene, history, ordering, cuts, place / "again", converge_every=given.converge
                )
                prefixes, states = prefixes + found.prefixes, states + found.states
                converged, faults = converged + found.converged, faults + len(found.faults)
                print(
                    f"  {ordering.value}: {found.prefixes} prefixes, {found.states} states,"
                    f" {found.converged} run again, {len(found.faults)} faults,"
                    f" {time.monotonic() - began:.0f} s",
                    flush=True,
                )
                for fault in found.faults[:5]:
                    print(f"    {fault}")
    print(f"{prefixes} prefixes, {states} states, {converged} run again, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
