"""Texts and edited versions of them, whose chunks mostly agree."""

from __future__ import annotations

import random

WORDS = [bytes(random.Random(n).choices(b"abcdefghijklmnopqrstuvwxyz", k=2 + n % 9)) for n in range(3_000)]


def text(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    out = b""
    while len(out) < size:
        out += b" ".join(rng.choices(WORDS, k=12)) + b"\n"
    return out[:size]


def edited(data: bytes, seed: int, edits: int) -> bytes:
    rng = random.Random(seed)
    changed = bytearray(data)
    for _ in range(edits):
        at = rng.randrange(len(changed))
        changed[at : at + 10] = rng.choice(WORDS)
    return bytes(changed)
