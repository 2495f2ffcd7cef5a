"""Compares rdc with rsync over random trees and random options.

    scripts/soak rsync [CASES [SEED]]   10,000 cases and seed 1 by default; fails if a case differs

Trees, lines of `-n -i` and of `-i`, and exit codes are equal but for the rows of
tests/support/oracle/intended.py. Blocks of 100 cases run on all cores. Each case that differs
is printed, with the seed of its block.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.support.oracle.cases import Case
from tests.support.oracle.comparison import differences
from tests.support.oracle.options import option_words
from tests.support.oracle.scenes import Scene, scenes

BLOCK = 100


def block(number: int) -> list[str]:
    """What differs in the block of cases with that seed, one text a case."""
    found = []

    @seed(number)
    @settings(
        max_examples=BLOCK,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(scenes(specials=False), option_words())
    def compare(scene: Scene, words: tuple[str, ...]) -> None:
        case = Case(scene, words)
        said = differences(case)
        if said:
            found.append("\n  ".join([f"seed {number}, {' '.join(words)}", *said, repr(scene)]))

    compare()
    return found


def main() -> int:
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    blocks = range(first * 1_000_000, first * 1_000_000 + -(-cases // BLOCK))
    differ = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for done, found in enumerate(pool.map(block, blocks), 1):
            differ += len(found)
            for text in found:
                print(text, flush=True)
            print(f"{done * BLOCK} cases, {differ} differ", file=sys.stderr)
    print(f"{len(blocks) * BLOCK} cases from seed {first}: {differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
