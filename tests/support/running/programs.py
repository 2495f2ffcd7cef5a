"""Machine code as it might be linked: functions that call and read each other by distance."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["Function", "functions", "linked"]

Function = list[bytes | int]
"""Bytes as they are, and numbers of functions that are named by their distance, in order."""


def functions(seed: int, count: int) -> list[Function]:
    """Return `count` functions of 100 to 400 bytes, with a distance every 25."""
    rng = random.Random(seed)
    found: list[Function] = []
    for _ in range(count):
        function: Function = []
        for _ in range(rng.randrange(4, 16)):
            function.append(rng.randbytes(rng.randrange(8, 34)) + rng.choice(OPCODES))
            function.append(int(rng.random() ** 2 * count))
        found.append([*function, b"\xc3"])
    return found


OPCODES = (b"\xe8", b"\xe8", b"\xe9", b"\x48\x8b\x05", b"\x48\x8d\x3d")


def linked(program: Sequence[tuple[int, Function]]) -> bytes:
    """The functions, each with its number, one behind the other, where distances are what they are then."""
    places: dict[int, int] = {}
    at = 0
    for number, function in program:
        places[number] = at
        at += sum(4 if isinstance(part, int) else len(part) for part in function)
    code = bytearray()
    for _, function in program:
        for part in function:
            if isinstance(part, int):
                code += (places.get(part, 0) - len(code) - 4).to_bytes(4, "little", signed=True)
            else:
                code += part
    return bytes(code)
