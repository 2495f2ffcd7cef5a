"""Compares the descent over manifests with rateless set reconciliation: bytes and exchanges.

Question: would coded symbols of all entries find the entries that differ in fewer bytes or round trips than
the descent over folded nodes does?
Metrics: bytes of requests and answers before compression, and exchanges, until the destination has the
source's manifest. The descent is rdc's own, driven in memory. Symbols are those of Yang, Gilad, Alizadeh,
"Practical Rateless Set Reconciliation" (SIGCOMM 2024): 8 bytes for the sum of 64-bit keys of entries, 8 for
that of their checksums, 2 for their number. A changed entry makes two differences. The source sends 64
symbols, and as many again as were sent before until all differences are decoded; `exact` counts only the
symbols that were needed. Then the destination asks for the new keys, 8 bytes each, and gets their rows. Files
changed in size and mtime.
Command: .venv/bin/python -m bench.reconciliation [DIRECTORIES FILES]
"""

from __future__ import annotations

import math
import random
import sys
from dataclasses import replace

from rdc.kernel.constants import mix
from rdc.limits import TIER_NODES
from rdc.protocol.messages import RowsPart
from rdc.tree.manifest import Entry, Group
from tests.support.trees.manifest_source import SourceModel, descend, start, travelled
from tests.support.trees.manifests import Rows, build, flat_tree

SYMBOL_BYTES, KEY_BYTES, FIRST_SYMBOLS = 18, 8, 64
ALL = Group.NAMES | Group.ATTRIBUTES | Group.MTIMES
WORD = (1 << 64) - 1


def symbols_of(key: int, most: int) -> list[int]:
    """Return the symbols below `most` that have this key: the i-th with probability 1 / (1 + i / 2)."""
    found, at, state = [], 0, mix(key)
    while at < most:
        found.append(at)
        state = mix(state)
        at += math.ceil((at + 1.5) * (2.0**32 / math.sqrt(state + 1) - 1))
    return found


def decodes(keys: list[int], symbols: int) -> bool:
    """Return whether this many symbols give back all differing keys. Keys that both sides have cancel."""
    where = [symbols_of(key, symbols) for key in keys]
    sums, counts = [0] * symbols, [0] * symbols
    for number, ones in enumerate(where):
        for at in ones:
            sums[at] ^= number
            counts[at] += 1
    left, pure = len(keys), [at for at in range(symbols) if counts[at] == 1]
    while pure:
        at = pure.pop()
        if counts[at] != 1:
            continue
        number, left = sums[at], left - 1
        for other in where[number]:
            sums[other] ^= number
            counts[other] -= 1
            if counts[other] == 1:
                pure.append(other)
    return not left


def symbols_needed(keys: list[int]) -> int:
    """Return the smallest number of symbols that suffices, to 1 in 50."""
    low, high = 0, 2 * len(keys) + 8
    while not decodes(keys, high):
        low, high = high, 2 * high
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if decodes(keys, middle) else (middle, high)
    return high


def row_bytes(source: SourceModel, rows: list[int]) -> int:
    """Return the bytes of answers with these single rows, named by their directories as today."""
    total = 0
    for at in range(0, len(rows), TIER_NODES):
        some = [range(row, row + 1) for row in rows[at : at + TIER_NODES]]
        total += travelled(RowsPart((1,) * len(some), True, source.rows(some, ALL)))[1]
    return total


def compare(name: str, old: Rows, new: Rows, rng: random.Random) -> None:
    source = SourceModel(build(new), owner=False)
    driven = descend(start(old, len(new), owner=False), source)
    order = [source.manifest.entry(row).path for row in range(len(new))]
    rows = [row for row, path in enumerate(order) if old.get(path) != new[path]]
    needed = symbols_needed([rng.getrandbits(64) for _ in range(2 * len(rows))])
    sent, exchanges = FIRST_SYMBOLS, 2
    while sent < needed:
        sent, exchanges = 2 * sent, exchanges + 1
    rest = KEY_BYTES * len(rows) + row_bytes(source, rows)
    by_symbols, exact = SYMBOL_BYTES * sent + rest, SYMBOL_BYTES * needed + rest
    print(f"{name}: descent {driven.bytes} bytes, {driven.exchanges} exchanges;", end=" ")
    print(f"symbols {by_symbols} bytes (exact {exact}), {exchanges} exchanges;", end=" ")
    print(f"{needed / (2 * len(rows)):.2f} symbols a difference", flush=True)


def edited(rng: random.Random, old: Entry) -> Entry:
    metadata = replace(old.metadata, mtime_ns=rng.randrange(1 << 60))
    return replace(old, metadata=metadata, size=rng.randrange(1 << 20))


def main() -> None:
    directories, files = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (1000, 30)
    rng = random.Random(1)
    old = flat_tree(directories, files)
    paths = sorted(path for path in old if b"/" in path)
    for count in (1, 10, 100, 1000, len(paths) // 3):
        new = Rows(old)
        for path in rng.sample(paths, count):
            new[path] = edited(rng, old[path])
        compare(f"{count} of {len(paths)} entries, anywhere", old, new, rng)
    for count in (100, 1000):
        begin, new = rng.randrange(len(paths) - count), Rows(old)
        for path in paths[begin : begin + count]:
            new[path] = edited(rng, old[path])
        compare(f"{count} of {len(paths)} entries, side by side", old, new, rng)


if __name__ == "__main__":
    main()
