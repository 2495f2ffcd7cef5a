"""Searches for streams that are expensive to cut, and adds the worst to the fixtures.

Question: how much slower can a hostile stream make the kernel, against a scalar sliding hash of the same
bytes?
Method: hill climbing over recipes. A recipe is a list of sections. Each is a pattern of wanted lead bytes or
of plain bytes: repeated, climbing, or drawn in random order, which defeats branch prediction. The
polynomials give bytes with these leads. Section lengths are near those of kernel blocks and of parts of
blocks, so that one block may need several code paths, and its neighbour others. Chunks have 600 bytes or more
on average: with far smaller chunks the cost of cuts dominates on any data.
Cost: the time to cut the first 32 KiB of the recipe, repeated to 256 KiB, over that of the scalar hash
(scalar.c), the quickest of several turns each. High costs are measured again: the highest of hundreds
are otherwise those that other processes disturbed most.
Command: RDC_KERNEL=c .venv/bin/python scripts/worst_inputs.py [ROUNDS] [--keep N]; writes
fixtures/kernel/worst_*.bin.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.kernel import native  # noqa: E402 - after the path is set
from rdc.kernel import Cutter, kernel_name  # noqa: E402 - after the path is set
from tests.support.kernel.kernel_streams import with_leads  # noqa: E402 - after the path is set

PIECE = 32 << 10
STREAM = 256 << 10
TURNS = 7
KEPT = 8192  # bytes of a fixture: two kernel blocks show the effect of a recipe


@dataclass(frozen=True, slots=True)
class Section:
    pattern: tuple[int, ...]
    order: str
    length: int

    def values(self, rng: random.Random) -> list[int]:
        if self.order == "drawn":
            return rng.choices(self.pattern, k=self.length)
        if self.order == "climbing":
            top = max(self.pattern)
            return [1 + i * top // self.length for i in range(self.length)]
        return list(self.pattern * (self.length // len(self.pattern) + 1))[: self.length]


@dataclass(frozen=True, slots=True)
class Recipe:
    sections: tuple[Section, ...]
    as_leads: bool
    min_size: int
    max_size: int
    seed: int

    def piece(self) -> bytes:
        rng = random.Random(self.seed)
        wanted: list[int] = []
        while len(wanted) < PIECE:
            for section in self.sections:
                wanted += [min(value, 255) for value in section.values(rng)]
        return with_leads(rng.randbytes(16), wanted[: PIECE - 16]) if self.as_leads else bytes(wanted[:PIECE])

    def __str__(self) -> str:
        kind = "leads" if self.as_leads else "bytes"
        parts = [f"{s.length} {s.order} of {len(s.pattern)} from {s.pattern[:6]}" for s in self.sections]
        return f"sizes {self.min_size} to {self.max_size}, {kind}: {'; '.join(parts)}"


def ratio(library: ctypes.CDLL, data: bytes, min_size: int, max_size: int, turns: int = TURNS) -> float:
    """Return the time to cut `data`, as a multiple of the scalar hash's."""
    kernel, scalar = [], []
    for _ in range(turns):
        cutter = Cutter(min_size, max_size)
        start = time.thread_time_ns()
        cutter.feed(data)
        middle = time.thread_time_ns()
        library.scalar_cuts(data, len(data), 1023)
        kernel.append(middle - start)
        scalar.append(time.thread_time_ns() - middle)
    return min(kernel) / min(scalar)


def cost(library: ctypes.CDLL, recipe: Recipe) -> float:
    return ratio(library, recipe.piece() * (STREAM // PIECE), recipe.min_size, recipe.max_size)


def fresh_section(rng: random.Random) -> Section:
    top = rng.choice((1, 2, 3, 4, 16, 256))
    base = rng.choice((0, 0, 1, rng.randrange(256)))
    length = rng.choice((1, 2, 3, 7, 17, 64, 65, 255, 1000, 4080))
    pattern = [(base + rng.randrange(top)) % 256 for _ in range(length)]
    if rng.random() < 0.3:
        pattern.sort()
    return Section(
        tuple(pattern),
        rng.choice(("repeated", "drawn", "climbing")),
        rng.choice((64, 130, 250, 270, 520, 1000, 1020, 1500, 3070, 3840, 4096)),
    )


def fresh(rng: random.Random) -> Recipe:
    min_size = rng.choice((400, 2000, 8000))
    return Recipe(
        tuple(fresh_section(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))),
        rng.random() < 0.8,
        min_size,
        min_size * rng.choice((2, 4, 7)),
        rng.randrange(99),
    )


def mutated_section(section: Section, rng: random.Random) -> Section:
    pattern = list(section.pattern)
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
    length = min(max(64, section.length + rng.choice((0, 0, 1, 16, 100)) * rng.choice((-1, 1))), 8192)
    return replace(section, pattern=tuple(pattern[:4080]), length=length)


def mutated(recipe: Recipe, rng: random.Random) -> Recipe:
    sections = list(recipe.sections)
    at = rng.randrange(len(sections))
    match rng.randrange(6):
        case 0 if len(sections) < 4:
            sections.insert(at, fresh_section(rng))
        case 1 if len(sections) > 1:
            del sections[at]
        case 2:
            sections[at] = replace(sections[at], order=rng.choice(("repeated", "drawn", "climbing")))
        case _:
            sections[at] = mutated_section(sections[at], rng)
    return replace(recipe, sections=tuple(sections), seed=rng.randrange(99))


def family(recipe: Recipe) -> object:
    """Return the key that recipes of one kind share. Only the worst of a kind is kept, or mutants of one fill
    the list."""
    orders = tuple((s.order, len(s.pattern).bit_length()) for s in recipe.sections)
    return recipe.as_leads, recipe.min_size, orders


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rounds", type=int, nargs="?", default=300)
    parser.add_argument("--keep", type=int, default=0, help="add the N worst, one of a kind, to the fixtures")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, library = random.Random(options.seed), native()
    data = rng.randbytes(STREAM)
    print(f"kernel {kernel_name()}, random bytes {1 / ratio(library, data, 2000, 8000, 21):.2f} x scalar")
    found: list[tuple[float, Recipe]] = []
    for _ in range(options.rounds):
        if len(found) < 30 or rng.random() < 0.3:
            candidate = fresh(rng)
        else:
            candidate = mutated(rng.choice(found[:8])[1], rng)
        took = cost(library, candidate)
        if len(found) < 8 or took > found[7][0]:
            took = min(took, cost(library, candidate), cost(library, candidate))
        found.append((took, candidate))
        found.sort(key=lambda pair: -pair[0])
        families: dict[object, tuple[float, Recipe]] = {}
        for pair in found:
            families.setdefault(family(pair[1]), pair)
        found = list(families.values())[:40]
    fixtures = ROOT / "fixtures" / "kernel"
    before = len(list(fixtures.glob("worst_*.bin")))
    for i, (took, recipe) in enumerate(found[:8]):
        print(f"{1 / took:.2f} x scalar: {recipe}")
        if i < options.keep:
            (fixtures / f"worst_{before + i + 1}.bin").write_bytes(recipe.piece()[:KEPT])


if __name__ == "__main__":
    main()
