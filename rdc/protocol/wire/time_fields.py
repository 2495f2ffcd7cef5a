"""Times on the wire: packed times (rdc.model.times), and after a column of them the times of its stamps.

A time from 1678 to 2261 takes what an integer takes. A distant time is 12 bytes: seconds (i64) and
nanoseconds (u32), from which the receiver computes the stamp.
"""

from __future__ import annotations

from rdc.model.entries import little_endian_integers
from rdc.model.times import END_NS, FIRST_NS, STAMPED_BYTES, is_distant, stamped, time_of_stamped
from rdc.protocol.wire.fields import of_type
from rdc.records import dataclass

__all__ = ["Time", "column_with_times", "column_without_times"]


@dataclass(frozen=True, slots=True)
class Time:
    """A packed time: an integer, or the bytes of a distant time."""

    optional: bool = False

    def pack(self, value: int | None) -> object:
        return value if value is None or not is_distant(value) else stamped(value)

    def unpack(self, raw: object) -> int | None:
        if raw is None and self.optional:
            return None
        if type(raw) is bytes:
            if len(raw) != STAMPED_BYTES:
                raise ValueError(f"a time of {len(raw)} bytes, expected {STAMPED_BYTES}")
            return time_of_stamped(raw)
        value = of_type(raw, int)
        if is_distant(value):
            raise ValueError(f"{value} ns are a distant time, expected its {STAMPED_BYTES} bytes")
        return value


def column_with_times(column: bytes) -> bytes:
    """Return a column of packed times (i64) as it is sent: with the times of its stamps, in order."""
    times = little_endian_integers("q", column)
    if not times or (min(times) >= FIRST_NS and max(times) < END_NS):
        return column
    return column + b"".join([stamped(time) for time in times if is_distant(time)])


def column_without_times(sent: bytes, count: int) -> bytes:
    """Return the column of `count` packed times that was sent, or an empty one.

    Raises ValueError if the bytes are too few or too many for the times of its stamps, or a stamp is not that
    of its time.
    """
    if not sent:
        return sent
    column, rest = sent[: 8 * count], sent[8 * count :]
    if len(column) != 8 * count:
        raise ValueError(f"mtimes of {len(sent)} bytes for {count} rows")
    times = little_endian_integers("q", column)
    if not rest and (not times or (min(times) >= FIRST_NS and max(times) < END_NS)):
        return column
    stamps = [time for time in times if is_distant(time)]
    if len(rest) != STAMPED_BYTES * len(stamps):
        raise ValueError(f"mtimes with {len(rest)} bytes for {len(stamps)} distant times")
    for number, stamp in enumerate(stamps):
        if time_of_stamped(rest[STAMPED_BYTES * number : STAMPED_BYTES * (number + 1)]) != stamp:
            raise ValueError("mtimes: a stamp is not that of its time")
    return column
