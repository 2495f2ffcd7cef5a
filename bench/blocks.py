"""Measures the search for blocks below the chunk, by kernel variant, block size, fingerprints and content.

Question: what does the sender pay to fingerprint blocks, and the receiver to search for them, in small and
in large windows?
Metrics: MB/s (10^6 bytes of data or base per second of this thread's CPU time), the median of ROUNDS
interleaved runs. A busy machine then slows all variants alike.
Corpora: generated data (random, zeros, a period of 100 bytes, text of few words) and the files given as
arguments, at most 32 MiB of each. The base has half of the blocks. `runs` searches for blocks of 128 bytes
near the offsets that the neighbours of each block suggest.
Commands: .venv/bin/python -m bench.blocks [--json OUT] [--rounds N] [--form FORM ...] PATH...
"""

from __future__ import annotations

import json
import random
import statistics
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.harness import arguments, in_turns, rate
from rdc.kernel import _kernel

KEY = bytes(range(16))
WIDTH = 6
LONGEST = 32 << 20
SEARCHES = (
    *((window << 10, size, count) for window in (2, 8) for size in (64, 256) for count in (1, 16)),
    *((64 << 10, size, count) for size in (64, 256, 1024) for count in (1, 16, 64, 256)),
    *((1 << 20, 512, count) for count in (16, 1024)),
    *((LONGEST, 512, count) for count in (1024, 65_536)),
)
"""Bytes of the base, bytes of a block, number of fingerprints."""


@dataclass(frozen=True, slots=True)
class Case:
    what: str
    content: str
    window: int
    size: int
    count: int
    run: Callable[[], object]


def contents(paths: list[Path], size: int) -> dict[str, bytes]:
    rng = random.Random(1)
    words = [rng.randbytes(rng.randrange(2, 9)).hex().encode() for _ in range(2000)]
    text = b" ".join(rng.choices(words, k=size // 10))
    found = {
        "random": rng.randbytes(size),
        "zeros": bytes(size),
        "period 100": (rng.randbytes(100) * (size // 100 + 1))[:size],
        "text": (text * 2)[:size],
    }
    for path in paths:
        with path.open("rb") as file:
            found[path.name] = file.read(size)
    return found


def wanted(base: bytes, size: int, count: int) -> bytes:
    """Blocks to search for; every other one is at a random offset of the base."""
    rng = random.Random(2)
    blocks = []
    for number in range(count):
        at = rng.randrange(len(base) - size + 1)
        blocks.append(base[at : at + size] if number % 2 else rng.randbytes(size))
    return b"".join(blocks)


def near(base: bytes) -> Callable[[], object]:
    """Ranges of 8 KiB in which some blocks differ."""
    rng, size, length = random.Random(3), 128, 8 << 10
    edited = bytearray(base)
    for _ in range(len(base) // size):
        edited[rng.randrange(len(base))] ^= 1
    rows = [(at, length, at, at + length) for at in range(0, len(base) - length, length + 256)]
    runs = array("Q", (number for row in rows for number in row)).tobytes()
    prints = b"".join(_kernel.block_fingerprints(KEY, edited[at : at + length], size, 4) for at, *_ in rows)
    windows = array("Q", (len(rows), 0, 0, len(base)))
    return lambda: _kernel.match_runs(KEY, base, windows, size, 4, 256, runs, prints)


def cases(data: dict[str, bytes]) -> Iterator[Case]:
    for content, whole in data.items():
        part = whole[: 1 << 20]
        for size in (32, 256, 1024):
            yield Case(
                "fingerprints", content, len(part), size, len(part) // size,
                partial(_kernel.block_fingerprints, KEY, part, size, WIDTH),
            )  # fmt: skip
        for window, size, count in SEARCHES:
            if len(whole) < window:
                continue
            base = whole[:window]
            prints = _kernel.block_fingerprints(KEY, wanted(base, size, count), size, WIDTH)
            yield Case(
                "search", content, window, size, count,
                partial(_kernel.match_blocks, KEY, base, size, WIDTH, prints),
            )  # fmt: skip
        yield Case("runs", content, len(part), 128, len(part) // 128, near(part))


def measured(form: str, case: Case) -> float:
    """Return the MB/s of one measurement."""
    _kernel.choose(form)
    return rate(case.run, case.window) / 1e6


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--form", action="append", choices=_kernel.usable())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    forms = options.form or list(_kernel.usable())
    print(f"{'':44}{''.join(f'{form:>9}' for form in forms)}  MB/s")
    rows = []
    for case in cases(contents(options.paths, LONGEST)):
        ways = {form: partial(measured, form, case) for form in forms}
        rates = in_turns(ways, options.rounds)
        median = {form: statistics.median(found) for form, found in rates.items()}
        name = f"{case.what} {case.content}, {case.window >> 10} KiB, {case.count} of {case.size}"
        print(f"{name:44}{''.join(f'{median[form]:9.0f}' for form in forms)}", flush=True)
        rows.append({"what": case.what, "content": case.content, "window": case.window, "size": case.size,
                     "count": case.count, "mb_per_s": median})  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
