"""Packed times: any time that a file system can hold, as one 64-bit integer.

A time from 1678 to 2261 is packed as its nanoseconds since the epoch. File systems hold others, too: signed
64-bit seconds, and nanoseconds. Such a *distant* time is packed as a **stamp**: 52 bits of a digest of it,
below all nanoseconds for the past, above them for the future. So columns keep their width. Equal times have
equal stamps, different times have different ones but for one pair in 2^52, and a stamp compares rightly with
nanoseconds. Two stamps say nothing about the order of their times: take `real_time` of both.

The time of a stamp is looked up among those that this process has packed. A message that has stamps has their
times, too (rdc/protocol/wire/fields.py).
"""

from __future__ import annotations

from struct import Struct

__all__ = [
    "END_NS",
    "FIRST_NS",
    "REMEMBERED_TIMES",
    "STAMPED_BYTES",
    "is_distant",
    "packed_time",
    "packed_times",
    "real_time",
    "stamped",
    "stamped_form",
    "time_of_stamped",
]

FIRST_NS = -9_214_560_000 * 10**9
"""1678-01-01: the first time that is packed as nanoseconds."""

END_NS = 9_214_646_400 * 10**9
"""2262-01-01: the first time after them."""

REMEMBERED_TIMES = 1 << 20
"""Distant times that a process remembers. A further one is packed as the nearest time that is not distant."""

_INT64_MIN = -(1 << 63)
_STAMP_BITS = 52
_SECOND = 1_000_000_000
_STAMPED = Struct("<qI")
STAMPED_BYTES = _STAMPED.size
"""Bytes of a distant time in a message: seconds (i64, rounded down) and nanoseconds (u32)."""

_times: dict[int, int] = {}


def is_distant(packed: int) -> bool:
    """Return whether a packed time is a stamp."""
    return not FIRST_NS <= packed < END_NS


def packed_time(nanoseconds: int) -> int:
    """Return the packed form of a time, given as nanoseconds since the epoch."""
    if FIRST_NS <= nanoseconds < END_NS:
        return nanoseconds
    from blake3 import blake3

    digest = int.from_bytes(blake3(stamped_form(nanoseconds)).digest(8), "little")
    digest &= (1 << _STAMP_BITS) - 1
    # The least and the greatest integers of 64 bits are no stamps: the C code has them for any distant time.
    stamp = _INT64_MIN + 1 + digest if nanoseconds < 0 else END_NS + digest
    if stamp not in _times:
        if len(_times) >= REMEMBERED_TIMES:
            return FIRST_NS if nanoseconds < 0 else END_NS - 1
        _times[stamp] = nanoseconds
    return stamp


def packed_times(nanoseconds: list[int]) -> list[int]:
    """Return the packed forms of times."""
    if not nanoseconds or (min(nanoseconds) >= FIRST_NS and max(nanoseconds) < END_NS):
        return nanoseconds
    return [packed_time(one) for one in nanoseconds]


def real_time(packed: int) -> int:
    """Return the nanoseconds since the epoch of a packed time. Raises KeyError for a stamp that this process
    has not made."""
    if FIRST_NS <= packed < END_NS:
        return packed
    return _times[packed]


def stamped_form(nanoseconds: int) -> bytes:
    """Return the STAMPED_BYTES of a time in messages."""
    return _STAMPED.pack(*divmod(nanoseconds, _SECOND))


def stamped(packed: int) -> bytes:
    """Return the STAMPED_BYTES of the time of a stamp."""
    return stamped_form(real_time(packed))


def time_of_stamped(form: bytes) -> int:
    """Return the stamp of a distant time in a message. Raises ValueError for bytes that are none."""
    seconds, rest = _STAMPED.unpack(form)
    nanoseconds: int = seconds * _SECOND + rest
    if rest >= _SECOND or FIRST_NS <= nanoseconds < END_NS:
        raise ValueError(f"{seconds} s and {rest} ns are no distant time")
    return packed_time(nanoseconds)
