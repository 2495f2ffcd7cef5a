"""Measures the merge of parts with many chunks, made of synthetic keys.

Question: how long does `rdc merge` take for as many chunks as no machine of this kind can scan, in how much
memory, and how near are its figures to the truth?
Metrics: CPU and wall seconds and the largest memory of one `rdc merge` process; bytes of the parts; unique
chunks as it reports them, beside their number.
Corpora: --keys chunks in --parts parts, hashes of random bytes and thus as evenly spread as digests, of 1 to
16 KiB. Each part shares half of its chunks with the part before it and half with the next, in a ring. So
half of all chunks are unique. --shift is that of the scans: one chunk in 2^SHIFT is in the parts.
Commands: .venv/bin/python -m bench.merge --place DIR [--keys 1000000000] [--parts 64] [--shift 0]
          [--memory 512M]
"""

from __future__ import annotations

import json
import random
from array import array
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from bench.harness import MIB, RDC, arguments, run, scratch
from rdc.kernel import sorted_pairs, window_hashes
from rdc.model.scan import ScanOptions
from rdc.survey.count.counters import FINE_LEVEL, Outcome
from rdc.survey.parts.part_file import write_part

EVERY = (1 << 64) - 1


@dataclass(frozen=True)
class Plan:
    place: Path
    parts: int
    half: int
    """Chunks that two parts share."""
    shift: int


def shared_keys(plan: Plan, number: int) -> bytes:
    """Return the keys that part `number` shares with the next one."""
    return sorted_pairs(window_hashes(random.Random(number).randbytes(plan.half + 31), EVERY))


def make_part(plan: Plan, number: int) -> int:
    """Write one part. Return its bytes."""
    outcome = Outcome(ScanOptions(memory=1 << 31, shift=plan.shift, fixed=(), compress=False))
    outcome.paths.append(b"synthetic%d" % number)
    for keys in (shared_keys(plan, (number - 1) % plan.parts), shared_keys(plan, number)):
        sizes = array("Q", [1024 + key % 15_361 for key in array("Q", keys)])
        outcome.counters.levels[FINE_LEVEL].add(keys, sizes.tobytes())
    path = plan.place / f"{number}.rdcscan"
    write_part(outcome, str(path))
    return path.stat().st_size


def main() -> None:
    parser = arguments(__doc__, place=True)
    parser.add_argument("--keys", type=int, default=1_000_000_000)
    parser.add_argument("--parts", type=int, default=64)
    parser.add_argument("--shift", type=int, default=0)
    parser.add_argument("--memory", default="512M")
    options = parser.parse_args()
    with scratch(options.place) as made:
        half = options.keys // options.parts // 2
        plan = Plan(made, options.parts, half, options.shift)
        with ProcessPoolExecutor() as workers:
            total = sum(workers.map(make_part, repeat(plan), range(plan.parts)))
        names = [str(plan.place / f"{number}.rdcscan") for number in range(plan.parts)]
        command = [*RDC, "merge", "--json", f"--memory={options.memory}", *names]
        cost = run(command, out=made / "merged")
        found = json.loads((made / "merged").read_text())
    (level,) = [one for one in found["levels"] if one["name"] == FINE_LEVEL]
    chunks = half * plan.parts
    print(f"{2 * chunks:,} chunks in {plan.parts} parts of {total / 1e9:.2f} GB, shift {plan.shift}")
    print(f"merge: {cost.wall:.1f} s wall, {cost.cpu:.1f} s CPU, {cost.memory / MIB:.0f} MB")
    print(f"unique chunks: {level['unique_chunks']:,} reported, {chunks:,} made")


if __name__ == "__main__":
    main()
