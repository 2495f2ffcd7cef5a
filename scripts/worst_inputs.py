"""Search for streams that are expensive to cut, and keep the worst as fixtures.

Question: how slow can a hostile stream make the kernel?
Method: hill climbing over recipes. A recipe is a pattern of wanted lead bytes, or of plain bytes, repeated,
or drawn from in no order, which no branch predictor learns; the polynomials give the bytes that have these
leads. Chunks have 600 bytes and more on average: far smaller ones cost what cuts cost, whatever the bytes.
Cost is the median time of cutting 256 KiB of the recipe's first 32 KiB repeated, by the chosen kernel, over
that of random bytes.
Command: RDC_KERNEL=avx512 scripts/worst_inputs.py [ROUNDS] [--keep N], from .venv/bin/python; writes
fixtures/kernel/worst_*.bin.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from rdc.kernel import Cutter, kernel_name  # noqa: E402
from tests.kernel_streams import with_leads  # noqa: E402

PIECE = 32 << 10
STREAM = 256 << 10


@dataclass(frozen=True, slots=True)
class Recipe:
    pattern: tuple[int, ...]
    as_leads: bool
    drawn: bool
    min_size: int
    max_size: int
    seed: int

    def piece(self) -> bytes:
        rng = random.Random(self.seed)
        if self.drawn:
            wanted = rng.choices(self.pattern, k=PIECE)
        else:
            wanted = list(self.pattern * (PIECE // len(self.pattern) + 1))
        return with_leads(rng.randbytes(16), wanted[: PIECE - 16]) if self.as_leads else bytes(wanted[:PIECE])


def seconds(data: bytes, min_size: int, max_size: int, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        cutter = Cutter(min_size, max_size)
        start = time.thread_time_ns()
        cutter.feed(data)
        times.append(time.thread_time_ns() - start)
    return statistics.median(times) / 1e9


def cost(recipe: Recipe) -> float:
    return seconds(recipe.piece() * (STREAM // PIECE), recipe.min_size, recipe.max_size)


def fresh(rng: random.Random) -> Recipe:
    top = rng.choice((1, 2, 3, 4, 16, 256))
    base = rng.choice((0, 0, 1, rng.randrange(256)))
    length = rng.choice((1, 2, 3, 7, 64, 65, 255, 1000, 4080))
    pattern = [(base + rng.randrange(top)) % 256 for _ in range(length)]
    if rng.random() < 0.3:
        pattern.sort()
    min_size = rng.choice((400, 2000, 8000))
    return Recipe(
        tuple(pattern),
        rng.random() < 0.8,
        rng.random() < 0.5,
        min_size,
        min_size * rng.choice((2, 4, 7)),
        rng.randrange(99),
    )


def mutated(recipe: Recipe, rng: random.Random) -> Recipe:
    pattern = list(recipe.pattern)
    for _ in range(rng.randint(1, 8)):
        match rng.randrange(4):
            case 0:
                pattern[rng.randrange(len(pattern))] = rng.randrange(rng.choice((2, 8, 256)))
            case 1:
                pattern.insert(rng.randrange(len(pattern)), pattern[rng.randrange(len(pattern))])
            case 2 if len(pattern) > 1:
                del pattern[rng.randrange(len(pattern))]
            case _:
                at = rng.randrange(len(pattern))
                pattern[at : at + rng.randint(1, 64)] = [pattern[at]] * rng.randint(1, 64)
    return replace(recipe, pattern=tuple(pattern[:4080]), seed=rng.randrange(99))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rounds", type=int, nargs="?", default=300)
    parser.add_argument("--keep", type=int, default=0, help="write the N worst, one of a kind, as fixtures")
    options = parser.parse_args()
    rng = random.Random(1)
    baseline = seconds(rng.randbytes(STREAM), 2000, 8000, 21)
    print(f"kernel {kernel_name()}, random bytes {STREAM / baseline / 1e9:.2f} GB/s")
    found: list[tuple[float, Recipe]] = []
    for _ in range(options.rounds):
        if len(found) < 30 or rng.random() < 0.3:
            candidate = fresh(rng)
        else:
            candidate = mutated(rng.choice(found[:8])[1], rng)
        found.append((cost(candidate), candidate))
        found.sort(key=lambda pair: -pair[0])
        # Of one family (sizes, kind, rough length) only the worst: else mutants of one recipe fill the list.
        families: dict[object, tuple[float, Recipe]] = {}
        for pair in found:
            r = pair[1]
            families.setdefault((r.as_leads, r.drawn, r.min_size, len(r.pattern).bit_length()), pair)
        found = list(families.values())[:40]
    for i, (took, recipe) in enumerate(found[:8]):
        kind = ("drawn " if recipe.drawn else "") + ("leads" if recipe.as_leads else "bytes")
        print(
            f"{STREAM / took / 1e9:.3f} GB/s, {took / baseline:.1f} x random: {len(recipe.pattern)} {kind}, "
            f"sizes {recipe.min_size} to {recipe.max_size}, starts {recipe.pattern[:8]}"
        )
        if i < options.keep:
            (ROOT / "fixtures" / "kernel" / f"worst_{i + 1}.bin").write_bytes(recipe.piece())


if __name__ == "__main__":
    main()
