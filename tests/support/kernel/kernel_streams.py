"""Byte streams that tell kernels apart, and ways to feed them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from rdc.kernel.cut.reference import LEAD_CONSTANT, LEAD_POLYNOMIAL, reflected_table

Result = tuple[list[int], bytes]


def run(cutter: Any, data: bytes, spans: Iterable[int] = ()) -> Result:
    """Feed `data` in spans of the given lengths, then the rest; cuts and traits."""
    cuts, at = [], 0
    for span in spans:
        cuts += cutter.feed(data[at : at + span])
        at += span
    cuts += cutter.feed(data[at:])
    cuts += cutter.finish()
    assert cutter.length == len(data)
    return cuts, cutter.traits()


def random_splits(rng: random.Random, length: int) -> list[int]:
    spans: list[int] = []
    while sum(spans) < length and len(spans) < 400:
        spans.append(rng.choice((0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 1000, 4095, 4096, 4097, 20_000)))
    return spans


_CARRY = reflected_table(LEAD_POLYNOMIAL, 8)
_LEAVING = reflected_table(LEAD_POLYNOMIAL, 128)


def with_leads(start: bytes, leads: Iterable[int]) -> bytes:
    """`start` (16 bytes or more), then a byte for each wanted lead: a window's last byte decides its lead."""
    data, fingerprint = bytearray(start), 0
    for i, byte in enumerate(start):
        fingerprint = _CARRY[fingerprint] ^ byte ^ (_LEAVING[start[i - 16]] if i >= 16 else 0)
    for lead in leads:
        wanted = lead ^ LEAD_CONSTANT
        data.append(_CARRY[fingerprint] ^ wanted ^ _LEAVING[data[-16]])
        fingerprint = wanted
    return bytes(data)


def _words(rng: random.Random, n: int) -> bytes:
    vocabulary = [bytes(rng.choices(b"etaoinshrdlu", k=rng.randint(1, 9))) for _ in range(200)]
    return b" ".join(rng.choices(vocabulary, k=n // 4))[:n]


def _sparse(rng: random.Random, n: int) -> bytes:
    data = bytearray(n)
    for _ in range(n // 500):
        data[rng.randrange(n)] = rng.randrange(256)
    return bytes(data)


def _without_zero_lead(rng: random.Random, n: int) -> bytes:
    return with_leads(rng.randbytes(16), (rng.randint(1, 255) for _ in range(n - 16)))


def _periodic(rng: random.Random, n: int) -> bytes:
    """Runs that are worth hashing a period of and others, some of which end within a period or are broken."""
    found = bytearray()
    while len(found) < n:
        period = rng.randbytes(rng.choice((1, 2, 3, 7, 16, 48, 77, 239, 240, 241, 480)))
        size = rng.choice((300, 2047, 2048, 2112, 2300, 4096, 9_000)) + rng.randrange(3)
        found += (period * size)[:size]
        if rng.randrange(3) == 0:
            found[-rng.randrange(1, min(size, 300))] ^= 1
    return bytes(found[:n])


BLOCK = 4096
"""Positions that the C kernel takes at a time; the first 64 of a span are by themselves."""


def _both_ways(rng: random.Random, i: int) -> int:
    """Long lists at the start of a block, and a dense stretch with many suffix minima after them."""
    return rng.choice((0, 5)) if (i - 64) % BLOCK < 250 else 1 + i % 1000 * 254 // 1000


def _by_turns(rng: random.Random, i: int) -> int:
    """Dense blocks between blocks with candidates far apart and an end without any, left to be summed up."""
    if (i - 64) // BLOCK % 2:
        return 0 if rng.randrange(16) else rng.randrange(1, 256)
    return 1 + rng.randrange(2) if (i - 64) % BLOCK > 3080 or rng.randrange(100) else 0


TWO_OF_THREE = b"\xce\xee\xa7"
"""Repeated, two of three positions have lead 0, and their features are always the same two."""

STREAMS: dict[str, Callable[[random.Random, int], bytes]] = {
    "random": lambda rng, n: rng.randbytes(n),
    "zeros": lambda rng, n: bytes(n),
    "constant": lambda rng, n: bytes([rng.randrange(256)]) * n,
    "constant of lead 0": lambda rng, n: (
        bytes([next(b for b in range(256) if with_leads(bytes([b]) * 16, [0])[-1] == b)]) * n
    ),
    "runs": lambda rng, n: b"".join(
        bytes([rng.randrange(4)]) * rng.choice((1, 60, 64, 130, 700, 5000)) for _ in range(n // 900)
    )[:n],
    "period 2": lambda rng, n: b"ab" * (n // 2),
    "short period": lambda rng, n: (rng.randbytes(rng.randint(3, 90)) * n)[:n],
    "periodic runs": _periodic,
    "period 4080": lambda rng, n: with_leads(rng.randbytes(16), [0] * (n - 16)),
    "words": _words,
    "lines": lambda rng, n: b"".join(b"%d\t%d\n" % (i, rng.randrange(99)) for i in range(n // 8))[:n],
    "sparse": _sparse,
    "no zero lead": _without_zero_lead,
    "one lead": lambda rng, n: with_leads(rng.randbytes(16), [7] * (n - 16)),
    "leads ascend": lambda rng, n: with_leads(rng.randbytes(16), (i * 255 // n for i in range(n - 16))),
    "leads descend": lambda rng, n: with_leads(
        rng.randbytes(16), (255 - i * 255 // n for i in range(n - 16))
    ),
    "leads saw": lambda rng, n: with_leads(rng.randbytes(16), (i % 255 + 1 for i in range(n - 16))),
    "leads mostly 0": lambda rng, n: with_leads(
        rng.randbytes(16), (rng.randrange(1, 256) if rng.randrange(16) == 0 else 0 for _ in range(n - 16))
    ),
    "leads 1 and 2": lambda rng, n: with_leads(
        rng.randbytes(16), (1 + (rng.randrange(4) == 0) for _ in range(n - 16))
    ),
    "leads ramp": lambda rng, n: with_leads(
        rng.randbytes(16), (1 + i % 1500 * 250 // 1500 + rng.randrange(2) for i in range(n - 16))
    ),
    "leads climb": lambda rng, n: with_leads(
        rng.randbytes(16), (1 + i % 1000 * 254 // 1000 for i in range(n - 16))
    ),
    "hardly dense": lambda rng, n: with_leads(
        rng.randbytes(16),
        (rng.randrange(1, 256) if rng.randrange((8, 16, 32)[i // BLOCK % 3]) else 0 for i in range(16, n)),
    ),
    "both ways": lambda rng, n: with_leads(rng.randbytes(16), (_both_ways(rng, i) for i in range(16, n))),
    "by turns": lambda rng, n: with_leads(rng.randbytes(16), (_by_turns(rng, i) for i in range(16, n))),
    "two features": lambda rng, n: (TWO_OF_THREE * n)[:n],
    "leads 0 and 1": lambda rng, n: with_leads(rng.randbytes(16), (rng.randrange(2) for _ in range(n - 16))),
}
"""By name: a stream of about n bytes."""

LIMITS = [(64, 65), (64, 512), (64, 2048), (100, 170), (256, 1024), (1000, 8000), (4096, 16384)]
"""Pairs of min and max: the tightest allowed, ratios to 32, below and above a block."""


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Pieces of all kinds, short enough for the definition in Python."""
    rng = random.Random(draw(st.integers(0, 1 << 32)))
    names = draw(st.lists(st.sampled_from(sorted(STREAMS)), min_size=0, max_size=4))
    return b"".join(STREAMS[name](rng, draw(st.integers(20, 3000))) for name in names) + draw(
        st.binary(max_size=100)
    )
