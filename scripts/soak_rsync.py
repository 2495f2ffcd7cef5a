"""Compares rdc with rsync over random trees and random options.

    scripts/soak rsync [CASES [SEED]] [--depth=N]   10,000 cases and seed 1 by default

Fails if a case differs. Trees, lines of `-n -i` and of `-i`, and exit codes are equal but for the rows of
tests/support/oracle/intended.py. Every fourth block is about filter rules and rule files. Of eight blocks
one is about --link-dest and its like, and one about several SRC and lists of paths. Blocks of 100 cases run
on all cores. Each case that differs is printed, with the seed of its block.
--depth: rdc keeps this many storage calls in flight, however long they take.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import HypothesisProvider

from tests.support.oracle.alternate_cases import alternate_cases
from tests.support.oracle.cases import Case
from tests.support.oracle.comparable import comparable
from tests.support.oracle.comparison import differences
from tests.support.oracle.filter_cases import filter_cases, filter_differences
from tests.support.oracle.operand_cases import operand_cases
from tests.support.oracle.operands import CONTENTS
from tests.support.oracle.options import option_words
from tests.support.oracle.scenes import scenes
from tests.support.storage.forced_depth import force_depth

BLOCK = 100


@dataclass(frozen=True, slots=True)
class Block:
    compared: int
    """Cases, each counted once."""
    differing: tuple[str, ...]
    """The differences, one text per case."""


def block(number: int, most: int = BLOCK) -> Block:
    """Return the block of cases with that seed."""
    of_filters = number % 4 == 3
    special = {1: operand_cases(), 5: alternate_cases()}
    plain = st.builds(Case, scenes(specials=True), option_words())
    cases = filter_cases() if of_filters else special.get(number % 8, plain)
    seen: set[str] = set()
    differing = []

    @seed(number)
    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def compare(case: Case) -> None:
        name = repr(case)
        if name in seen or not comparable(case):
            return
        seen.add(name)
        said = filter_differences(case) if of_filters else differences(case)
        if said:
            taken = [] if case.operands == CONTENTS else [repr(case.operands)]
            head = f"seed {number}, {' '.join(case.words)}"
            differing.append("\n  ".join([head, *taken, *said, repr(case.scene)]))

    with pytest.MonkeyPatch.context() as patch:
        # It draws numbers and words of whatever modules are loaded. The same block would have other cases in
        # a larger process, and after any change of the sources.
        patch.setattr(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None)
        compare()
    return Block(len(seen), tuple(differing))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="?", type=int, default=10_000, metavar="CASES")
    parser.add_argument("seed", nargs="?", type=int, default=1, metavar="SEED")
    parser.add_argument("--depth", type=int, default=0)
    given = parser.parse_args()
    wanted: int = given.cases
    first: int = given.seed
    compared = differ = 0
    with ProcessPoolExecutor(os.cpu_count(), initializer=force_depth, initargs=(given.depth,)) as pool:
        numbers = itertools.count(first * 1_000_000)
        while compared < wanted:
            several = itertools.islice(numbers, min(10, -(-(wanted - compared) // BLOCK)))
            for found in pool.map(block, several):
                compared += found.compared
                differ += len(found.differing)
                for text in found.differing:
                    print(text, flush=True)
            print(f"{compared} cases, {differ} differ", file=sys.stderr)
    print(f"{compared} cases from seed {first}: {differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
