"""How fast texts become shingles, in MB/s of CPU time of one thread.

Texts are English-like ASCII of words with the lengths of English, or the files given, one text a file. Each
variant that this CPU can run is measured, and once the definition in Python.
Command: .venv/bin/python scripts/bench_shingles.py [--size MB] [--rounds N] [FILE...]
"""

from __future__ import annotations

import argparse
import random
import time
from array import array
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path

from rdc.kernel import _kernel
from tests.reference import shingles as reference

LENGTHS = {1: 3, 2: 17, 3: 21, 4: 16, 5: 11, 6: 9, 7: 8, 8: 6, 9: 4, 10: 3, 11: 1, 12: 1}
"""How many of a hundred words of English prose have so many letters, roughly."""


def english(size: int, of: int, letters: str = "etaoinshrdlucmwfgypbvk") -> list[bytes]:
    """Texts of about `of` bytes each, `size` bytes in all."""
    rng = random.Random(1)
    lengths = rng.choices(list(LENGTHS), list(LENGTHS.values()), k=20_000)
    words = ["".join(rng.choices(letters, k=length)) for length in lengths]
    texts, left = [], size
    while left > 0:
        drawn = rng.choices(words, k=of // 6)
        for at in range(0, len(drawn), 12):
            drawn[at] = drawn[at].capitalize()
            drawn[at - 1] += rng.choice((".", ",", ".\n"))
        texts.append(" ".join(drawn).encode())
        left -= len(texts[-1])
    return texts


def speed(call: Callable[[], object], size: int, rounds: int) -> float:
    """MB/s of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        call()
        best = min(best, time.thread_time() - began)
    return size / best / 1e6


def measure(texts: list[bytes], rounds: int) -> None:
    """Prints the speed of each variant, and of the definition on a part."""
    column = b"".join(texts), array("q", accumulate(map(len, texts), initial=0))
    for variant in _kernel.usable():
        _kernel.choose(variant)
        for unit in ("words", "chars"):
            call = partial(_kernel.shingle_features, *column, 5, unit == "chars", False)
            print(f"  {variant:5} {unit}, k = 5: {speed(call, len(column[0]), rounds):7.0f} MB/s")
    part = column[0][:200_000]
    call = partial(reference.shingle_features, part, array("q", [0, len(part)]), 5, False, False)
    print(f"  plain words, k = 5: {speed(call, len(part), 1):7.2f} MB/s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--size", type=float, default=1, help="MB of text in a call")
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    size = int(options.size * 1_000_000)
    corpora = {
        "ASCII, 6 KB a text": english(size, 6_000),
        "ASCII, 300 B a text": english(size, 300),
        "ASCII, one text": [b" ".join(english(size, 6_000))],
        "ASCII with a quotation mark each 300 B": ["\u2019".encode().join(english(size, 300))],
        "Cyrillic": english(size, 6_000, "оеаинтсрвлкмдпуяыьгзбчй"),
        "Chinese": english(size, 6_000, "的一是不了人我在有他这为之大来以个中上们"),
    }
    if options.files:
        corpora = {"files": [path.read_bytes() for path in options.files]}
    for name, texts in corpora.items():
        print(f"{name}: {len(texts)} texts, {sum(map(len, texts)) / 1e6:.1f} MB")
        measure(texts, options.rounds)


if __name__ == "__main__":
    main()
