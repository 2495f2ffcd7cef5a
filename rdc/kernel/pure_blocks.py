"""What block_match.c and block_runs.c compute, in plain Python, which defines the truth."""

from __future__ import annotations

import struct
from functools import lru_cache

from rdc.kernel.pure_siphash import siphash
from rdc.rabin import byte_table, is_irreducible, power_of_x, remainder_of_product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["BlockHash", "block_fingerprints", "match_blocks", "match_runs"]

NOWHERE = (1 << 64) - 1


def _drawn(key: bytes, number: int) -> int:
    return siphash(key, number.to_bytes(8, "little"))


def block_polynomial(key: bytes) -> int:
    """The irreducible polynomial of degree 64 that blocks are hashed by under a key of 16 bytes.

    The first among candidates drawn from the key. All have a constant term and an odd number of terms, as
    every irreducible polynomial but x and x + 1; of these one in 16 or so is irreducible.
    """
    number = 1
    while True:
        candidate = 1 << 64 | _drawn(key, number) >> 2 << 2 | 1
        if candidate.bit_count() % 2 == 0:
            candidate |= 2
        if is_irreducible(candidate):
            return candidate
        number += 1


class BlockHash:
    """f(d) = a * (d[0] x^(8(s-1)) + ... + d[s-1]) mod p over GF(2); a and p, irreducible of degree 64, come
    from the key (M. O. Rabin, "Fingerprinting by Random Polynomials", 1981).

    Let D be the sum of two blocks of s bytes that differ, for whoever does not know the key when he chooses
    them. D has a degree below 8 s, so at most s / 8 factors of degree 64, of the 2^58 irreducible
    polynomials there are: p is one of them with a probability of at most s * 2^-61. If it is not, D mod p
    is not 0, and a makes every other value of it equally likely: w low bytes of it are 0 with a
    probability of at most 2^-8w. A wrong match takes luck, s * 2^-61 + 2^-8w a pair.

    That holds for every pair, whatever its content: zeros, periods, one bit that differs, rows that changed
    places. But the function is linear: pairs with one difference between them agree or differ together. A
    block of zeros has the value 0.
    """

    __slots__ = ("_carry", "_entering", "_factor", "_polynomial")

    def __init__(self, key: bytes) -> None:
        self._polynomial = block_polynomial(key)
        self._factor = _drawn(key, 0) or 1
        self._carry = byte_table(power_of_x(64, self._polynomial), self._polynomial)
        self._entering = byte_table(self._factor, self._polynomial)

    def values(self, data: bytes, size: int) -> list[int]:
        """Those of the windows of `size` bytes at every offset; of 64 bits."""
        carry, entering, p = self._carry, self._entering, self._polynomial
        leaving: tuple[int, ...] = ()
        if len(data) > size:
            leaving = byte_table(remainder_of_product(self._factor, power_of_x(8 * size, p), p), p)
        value, found = 0, []
        for i, byte in enumerate(data):
            value = (value << 8 & NOWHERE) ^ carry[value >> 56] ^ entering[byte]
            if i >= size:
                value ^= leaving[data[i - size]]
            if i + 1 >= size:
                found.append(value)
        return found

    @staticmethod
    def fingerprint(value: int, width: int) -> int:
        """The part of a value that is compared."""
        return value & ((1 << 8 * width) - 1)


@lru_cache(maxsize=64)
def _hashed(key: bytes) -> BlockHash:
    return BlockHash(key)


def _check_blocks(key: bytes, size: int, width: int, fingerprints: int) -> None:
    if len(key) != 16 or size < 1 or not 1 <= width <= 8 or fingerprints % width:
        raise ValueError(
            f"blocks: a key of 16 bytes (found {len(key)}), a size of >= 1 ({size}), a width of 1 to 8 "
            f"({width}), fingerprints without a rest ({fingerprints} bytes)"
        )


def _lengths(packed: ReadableBuffer, total: int) -> list[int]:
    rows = memoryview(packed).cast("B")
    lengths = rows.cast("Q").tolist() if len(rows) % 8 == 0 else [-1]
    if sum(lengths) != total:
        raise ValueError(f"blocks: lengths, 8 bytes each, that add up to {total} bytes")
    return lengths


def block_fingerprints(
    key: bytes,
    data: ReadableBuffer,
    size: int,
    width: int,
    lengths: ReadableBuffer | None = None,
    /,
) -> bytes:
    """Keyed fingerprints of the blocks of `size` bytes that `data` is made of, `width` (1 to 8) bytes each.

    A last shorter block has the fingerprint of its own length. Only fingerprints of equally long blocks can
    be compared. `lengths`, 64 bits each: of the parts that `data` has one behind the other, each with blocks
    of its own. ValueError for a key that has not 16 bytes, and for lengths that do not add up.
    """
    _check_blocks(key, size, width, 0)
    packed, hashed = bytes(data), _hashed(key)
    sizes = [len(packed)] if lengths is None else _lengths(lengths, len(packed))
    blocks = []
    start = 0
    for length in sizes:
        part = packed[start : start + length]
        blocks += [part[at : at + size] for at in range(0, length, size)]
        start += length
    return b"".join(
        hashed.fingerprint(hashed.values(block, len(block))[0], width).to_bytes(width, "little")
        for block in blocks
    )


def match_blocks(
    key: bytes, base: ReadableBuffer, size: int, width: int, fingerprints: ReadableBuffer, /
) -> bytes:
    """Where in `base` blocks of exactly `size` bytes are: every offset is looked at, as zsync does.

    `fingerprints` as `block_fingerprints` makes them. The answer has a little-endian 64-bit offset for each:
    as far behind the block found last as it is in the file, where it fits there (what only changed here and
    there stays in one place); else the first that fits; else 2^64 - 1.
    """
    packed = bytes(fingerprints)
    _check_blocks(key, size, width, len(packed))
    hashed = _hashed(key)
    values = [hashed.fingerprint(value, width) for value in hashed.values(bytes(base), size)]
    first: dict[int, int] = {}
    for offset, value in enumerate(values):
        first.setdefault(value, offset)
    found: list[int] = []
    shift: int | None = None
    for row in range(len(packed) // width):
        value = int.from_bytes(packed[row * width : (row + 1) * width], "little")
        offset = first.get(value, NOWHERE)
        if offset != NOWHERE:
            after = -1 if shift is None else shift + row * size
            if 0 <= after < len(values) and values[after] == value:
                offset = after
            shift = offset - row * size
        found.append(offset)
    return struct.pack(f"<{len(found)}Q", *found)


def match_runs(
    key: bytes,
    base: ReadableBuffer,
    windows: ReadableBuffer,
    size: int,
    width: int,
    reach: int,
    runs: ReadableBuffer,
    fingerprints: ReadableBuffer,
    /,
) -> bytes:
    """Which blocks of `size` bytes are in the base where their neighbours say, or near it.

    `windows`: little-endian 64-bit numbers, four for each part of the base that `base` has: how many of the
    runs are looked for in it, its offset in the base, where in `base` it is, its length. `runs`: four such
    numbers a run: its offset in the file, its length, where in the base what precedes it goes on, where what
    follows it begins (2^64 - 1: unknown). `fingerprints`: of the blocks of each run, the last of which may be
    shorter. A block is tried behind the piece found last, as far behind as it is in the file, or before what
    follows; a whole one then at every offset up to `reach` from where what precedes the run, and what follows
    it, would have it, the lowest first. The answer has three such numbers a piece: offset in the file, place
    in the base, length; neighbours found in one part of the base that go on in both are one. ValueError where
    counts do not add up.
    """
    data, packed, prints = bytes(base), bytes(runs), bytes(fingerprints)
    _check_blocks(key, size, width, len(prints))
    if not 0 <= reach <= 1 << 20 or len(packed) % 32:
        raise ValueError("runs: rows of 32 bytes, a reach of 0 to 2^20")
    rows = list(struct.iter_unpack("<4Q", packed))
    parts = _windows(bytes(windows), len(rows), data)
    if any(
        offset > 1 << 63 or length > 1 << 32 or any(1 << 63 < place != NOWHERE for place in places)
        for offset, length, *places in rows
    ):
        raise ValueError("runs: of at most 2^32 bytes, at places up to 2^63")
    blocks = sum(-(-length // size) for _, length, _, _ in rows)
    if blocks != len(prints) // width:
        raise ValueError(f"runs of {blocks} blocks, {len(prints) // width} fingerprints")
    hashed, found, at_print = _hashed(key), b"", 0
    for count, origin, part in parts:
        some, rows = rows[:count], rows[count:]
        taken = width * sum(-(-length // size) for _, length, _, _ in some)
        found += _match_runs(
            hashed, part, origin, size, width, reach, some, prints[at_print : at_print + taken]
        )
        at_print += taken
    return found


def _windows(packed: bytes, runs: int, data: bytes) -> list[tuple[int, int, bytes]]:
    """Of each part of the base how many runs are looked for in it, its offset in the base, and its bytes."""
    windows = list(struct.iter_unpack("<4Q", packed)) if len(packed) % 32 == 0 else [(runs + 1, 0, 0, 0)]
    inside = all(start + length <= len(data) and origin <= 1 << 63 for _, origin, start, length in windows)
    if not inside or sum(count for count, _, _, _ in windows) != runs:
        raise ValueError(f"runs: windows inside {len(data)} bytes for {runs} of them")
    return [(count, origin, data[start : start + length]) for count, origin, start, length in windows]


def _match_runs(
    hashed: BlockHash,
    data: bytes,
    origin: int,
    size: int,
    width: int,
    reach: int,
    rows: list[tuple[int, ...]],
    prints: bytes,
) -> bytes:
    """The same for one part of the base, `data` from `origin` on."""

    def fits(place: int, length: int, value: int) -> bool:
        start = place - origin
        block = data[start : start + length] if start >= 0 else b""
        return len(block) == length and hashed.fingerprint(hashed.values(block, length)[0], width) == value

    found: list[list[int]] = []
    at_print = 0
    for offset, length, before, behind in rows:
        shift = None if before == NOWHERE else before
        for at in range(0, length, size):
            value = int.from_bytes(prints[at_print : at_print + width], "little")
            at_print += width
            left, take = length - at, min(size, length - at)
            ahead = None if before == NOWHERE else before + at
            back = None if behind == NOWHERE or behind < left else behind - left
            tried = [place for place in (None if shift is None else shift + at, back) if place is not None]
            if take == size and reach:
                for place in (ahead, back):
                    if place is not None:
                        tried += range(max(0, place - reach), place + reach + 1)
            place = next((place for place in tried if fits(place, take, value)), None)
            if place is None:
                continue
            shift = place - at
            last = found[-1] if found else [0, 0, 0]
            if found and last[0] + last[2] == offset + at and last[1] + last[2] == place:
                last[2] += take
            else:
                found.append([offset + at, place, take])
    return b"".join(struct.pack("<3Q", *piece) for piece in found)
