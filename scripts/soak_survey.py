"""Counts how often the 95 % bounds of a survey hold, over seeded trials.

    scripts/soak survey [TRIALS]        300 by default; fails if fewer than 93 % hold

Each trial draws a population of chunks with copies, counts it in too little memory, and checks whether the
true figure lies within the stated bounds.
"""

from __future__ import annotations

import random
import sys
from array import array

from rdc.survey.count.chunk_counter import STRATA, ChunkCounter, CompressionSample, Figures

LEAST = 0.93


def chunk_trial(seed: int) -> bool:
    """Draw content-defined chunks, from evenly sized to widely spread, some with many copies."""
    drawn = random.Random(seed)
    number = drawn.choice([4_000, 10_000])
    sizes = [drawn.randint(1, 6228) if seed % 2 else drawn.randint(1558, 6228) for _ in range(number)]
    return _trial(drawn, sizes, memory=24_000, strata=())


def file_trial(seed: int) -> bool:
    """Draw files with log-normal sizes and a long tail."""
    drawn = random.Random(1_000_000 + seed)
    sizes = [int(drawn.lognormvariate(9, 2.3)) for _ in range(6_000)]
    return _trial(drawn, sizes, memory=60_000, strata=STRATA)


def _trial(drawn: random.Random, sizes: list[int], *, memory: int, strata: tuple[int, ...]) -> bool:
    tally = ChunkCounter(memory, strata)
    keys = [drawn.getrandbits(64) for _ in sizes]
    copies = [int(drawn.paretovariate(1.3)) for _ in sizes]
    tally.add(*(array("Q", column).tobytes() for column in (keys, sizes, copies)))
    figures = tally.figures()
    if figures.exact:
        raise AssertionError("the trial needs less memory")
    return figures.low <= sum(sizes) <= figures.high


def compression_trial(seed: int) -> bool:
    """Draw chunks that compress by very different factors, and compress a few hundred."""
    drawn = random.Random(2_000_000 + seed)
    sample = CompressionSample(shift=drawn.choice([3, 4]))
    total = truth = number = 0
    for _ in range(6_000):
        key, before = drawn.getrandbits(64), drawn.randint(1000, 25_000)
        after = max(1, int(before * min(1.0, drawn.betavariate(0.8, 1.2))))
        total, truth, number = total + before, truth + after, number + 1
        if sample.wanted(array("Q", [key]).tobytes()):
            sample.put_many([(key, before, after)])
    figures = sample.figures(Figures(number, total, number, total, 0.0, True, 0, (), ()))
    return figures is not None and figures.low <= truth <= figures.high


def main() -> int:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    worst = 1.0
    for trial in (chunk_trial, file_trial, compression_trial):
        held = sum(trial(seed) for seed in range(trials))
        worst = min(worst, held / trials)
        print(f"{trial.__name__}: {held} of {trials} within the bounds ({100 * held / trials:.1f} %)")
    return worst < LEAST


if __name__ == "__main__":
    sys.exit(main())
