"""Simulates estimates of resemblance and compares them with the formulas: bias within 3 standard errors,
variance within 5 %.

    scripts/soak similarity [SEED]      some minutes; fails at the first formula that does not hold

It covers all word pairs of table 1 of Li and Konig, "b-Bit Minwise Hashing" (WWW 2010), at 1 to 4 bits, with
joined bits and with sampled coordinates, and two of six supershingles at the resemblances .95, .9 and .8.
"""

from __future__ import annotations

import sys
from random import Random

from rdc.similarity import hamming_probability
from tests.similarity.trials import (
    WORDS,
    Agreement,
    accepted,
    bbit_agreement,
    hamming_agreement,
    joined_agreement,
)

TOLERANCE = 0.05
TRIALS = 8_000
"""Three standard errors of a simulated variance are then 4.7 %."""


def shown(name: str, found: Agreement) -> bool:
    print(f"{name}: bias {found.bias:+.2f} se, variance {found.variance:.3f} of the formula's", flush=True)
    return found.holds(TOLERANCE)


def main() -> None:
    random, good = Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1), True
    for words in WORDS:
        for bits in (1, 2, 3, 4):
            found = bbit_agreement(random, words, bits, k=20, trials=TRIALS)
            good &= shown(f"{words.name}, {bits} bits", found)
        k = round(1600 / hamming_probability(words.jaccard, words.r1, words.r2))
        good &= shown(f"{words.name}, {k} coordinates", hamming_agreement(random, words, k, TRIALS))
    # Joined bits say little below R = .5.
    for words in WORDS[:3]:
        good &= shown(f"{words.name}, joined bits", joined_agreement(random, words, 1500, TRIALS))
    for shared in (38, 36, 32):
        error = accepted(random, 40, shared, trials=20_000)
        print(f"two of six supershingles at {shared / 40}: {error:+.2f} se", flush=True)
        good &= abs(error) <= 3
    if not good:
        sys.exit("a simulation does not agree with its formula")


if __name__ == "__main__":
    main()
