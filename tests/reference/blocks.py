"""Block fingerprints and their search in plain Python: the definition for match.c and match_near.c."""

from __future__ import annotations

import struct
from functools import lru_cache

from rdc.rabin import byte_table, power_of_x, remainder_of_product
from tests.reference.rabin import is_irreducible
from tests.reference.siphash import siphash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["BlockHash", "block_fingerprints", "match_blocks", "match_runs"]

NOWHERE = (1 << 64) - 1


def _drawn(key: bytes, number: int) -> int:
    return siphash(key, number.to_bytes(8, "little"))


def block_polynomial(key: bytes) -> int:
    """Returns the irreducible polynomial of degree 64 for block fingerprints under a key of 16 bytes.

    It is the first irreducible one among candidates drawn from the key. All candidates have a constant term
    and an odd number of terms, like every irreducible polynomial but x and x + 1. About one in 16 of these is
    irreducible.
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
    """f(d) = a * (d[0] x^(8(s-1)) + ... + d[s-1]) mod p over GF(2). The key determines a and p, irreducible
    of degree 64 (M. O. Rabin, "Fingerprinting by Random Polynomials", 1981).

    Let D be the sum of two different blocks of s bytes, chosen without knowledge of the key. D has a degree
    below 8 s, so it has at most s / 8 factors of degree 64. There are 2^58 irreducible polynomials of that
    degree, so p is a factor with a probability of at most s * 2^-61. If p is no factor, D mod p is not 0, and
    a makes every non-zero value equally likely. Then w low bytes are 0 with a probability of at most 2^-8w.
    So two blocks match falsely with a probability of at most s * 2^-61 + 2^-8w.

    The bound holds for every pair, whatever its content: zeros, periods, one differing bit, swapped rows. But
    the function is linear: pairs with the same difference match or differ together. A block of zeros has the
    value 0.
    """

    __slots__ = ("_carry", "_entering", "_factor", "_polynomial")

    def __init__(self, key: bytes) -> None:
        self._polynomial = block_polynomial(key)
        self._factor = _drawn(key, 0) or 1
        self._carry = byte_table(power_of_x(64, self._polynomial), self._polynomial)
        self._entering = byte_table(self._factor, self._polynomial)

    def values(self, data: bytes, size: int) -> list[int]:
        """Returns the 64-bit values of the windows of `size` bytes at every offset."""
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
        """Returns the part of a value that is compared."""
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
    """Returns keyed fingerprints of the blocks of `size` bytes in `data`, `width` (1 to 8) bytes each.

    A last shorter block gets the fingerprint of its own length. Only fingerprints of equally long blocks are
    comparable. `lengths` (native 64 bits) divides `data` into parts with blocks of their own. ValueError for
    a key that has not 16 bytes, or for lengths that do not add up.
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
    """Searches `base` at every offset for blocks of exactly `size` bytes, as zsync does.

    `fingerprints` are those of `block_fingerprints`. Returns a little-endian 64-bit offset per block. The
    offset that continues the last match wins if it fits, because unchanged content stays in sequence.
    Otherwise the first offset that fits is returned, or 2^64 - 1.
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
    """Searches for the blocks of unmatched runs at or near the offsets their neighbours predict.

    Numbers are little-endian with 64 bits. `windows` has four per part of the base in `base`: number of runs
    to search in it, offset in the base, offset in `base`, length. `runs` has four per run: offset in the
    file, length, `before` and `behind` (2^64 - 1: unknown). `before` is where the base continues from the
    content before the run; `behind` is where the content after the run begins there. `fingerprints` has those
    of the blocks of each run; the last block may be shorter.

    A block is tried at the offset that continues the last match, then at the one before `behind`. A whole
    block is then tried at every offset up to `reach` from the two predictions, lowest first. Returns three
    numbers per match: offset in the file, offset in the base, length. Neighbours of one window that continue
    in both are joined. ValueError if counts do not add up.
    """
    data, packed, prints = bytes(base), bytes(runs), bytes(fingerprints)
    _check_blocks(key, size, width, len(prints))
    if not 0 <= reach <= 1 << 20 or len(packed) % 32:
        raise ValueError("runs: rows of 32 bytes, a reach of 0 to 2^20")
    rows = list(struct.iter_unpack("<4Q", packed))
    parts = _windows(bytes(windows), len(rows), data)
    if any(
        offset > 1 << 63
        or length > 1 << 32
        or any(1 << 63 < base_offset != NOWHERE for base_offset in predicted)
        for offset, length, *predicted in rows
    ):
        raise ValueError("runs: of at most 2^32 bytes, at offsets up to 2^63")
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
    """Returns for each part of the base: the number of runs to search in it, its offset in the base, its
    bytes."""
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
    """Does the work of match_runs for one part of the base: `data`, which begins at offset `origin`."""
    # long because the definition stands in one piece, to be compared with the C form

    def fits(base_offset: int, length: int, value: int) -> bool:
        start = base_offset - origin
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
            tried = [
                base_offset
                for base_offset in (None if shift is None else shift + at, back)
                if base_offset is not None
            ]
            if take == size and reach:
                for base_offset in (ahead, back):
                    if base_offset is not None:
                        tried += range(max(0, base_offset - reach), base_offset + reach + 1)
            base_offset = next((base_offset for base_offset in tried if fits(base_offset, take, value)), None)
            if base_offset is None:
                continue
            shift = base_offset - at
            last = found[-1] if found else [0, 0, 0]
            if found and last[0] + last[2] == offset + at and last[1] + last[2] == base_offset:
                last[2] += take
            else:
                found.append([offset + at, base_offset, take])
    return b"".join(struct.pack("<3Q", *match) for match in found)
