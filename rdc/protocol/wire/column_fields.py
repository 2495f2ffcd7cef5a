"""Codecs of message fields with many values: columns of integers and lists of byte strings."""

from __future__ import annotations

from collections.abc import Sequence

from rdc.limits.paths import PATH_BYTES
from rdc.limits.wire import SIZE_LIMIT
from rdc.protocol.wire.columns import pack_column, pack_gaps, unpack_column, unpack_gaps
from rdc.protocol.wire.fields import of_items, of_type
from rdc.records import dataclass

__all__ = ["Column", "Gaps", "Parts", "Strings"]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Strictly increasing integers as a column of gaps; at least one, unless may_be_empty."""

    count: int
    limit: int
    may_be_empty: bool = False

    def pack(self, value: Sequence[int]) -> object:
        at_most(self.count, value)
        return pack_gaps(value)

    def unpack(self, raw: object) -> tuple[int, ...]:
        if raw == b"" and self.may_be_empty:
            return ()
        return unpack_gaps(of_type(raw, bytes), self.count, self.limit)


@dataclass(frozen=True, slots=True)
class Column:
    """Integers in any order."""

    count: int
    lowest: int = 0
    highest: int = SIZE_LIMIT

    def pack(self, value: Sequence[int]) -> object:
        at_most(self.count, value)
        return pack_column(value)

    def unpack(self, raw: object) -> tuple[int, ...]:
        values = tuple(unpack_column(of_type(raw, bytes), self.count))
        if values and not (self.lowest <= min(values) and max(values) <= self.highest):
            raise ValueError(f"an item is not in {self.lowest}..{self.highest}")
        return values


@dataclass(frozen=True, slots=True)
class Parts:
    """Byte strings: a column of their lengths, then the strings without separators."""

    count: int
    longest: int

    def pack(self, value: Sequence[bytes]) -> object:
        at_most(self.count, value)
        return [pack_column([len(part) for part in value]), b"".join(value)]

    def unpack(self, raw: object) -> tuple[bytes, ...]:
        lengths, blob = of_items(raw, bytes, bytes)
        sizes = unpack_column(lengths, self.count)
        if sum(sizes) != len(blob):
            raise ValueError(f"lengths add up to {sum(sizes)}, {len(blob)} bytes are there")
        if sizes and max(sizes) > self.longest:
            raise ValueError(f"an item of {max(sizes)} bytes, the limit is {self.longest}")
        parts = []
        start = 0
        for size in sizes:
            parts.append(blob[start : start + size])
            start += size
        return tuple(parts)


@dataclass(frozen=True, slots=True)
class Strings:
    """Byte strings without NUL, each followed by a NUL. An optional column may be empty."""

    count: int
    total: int
    """Limit in bytes for all strings together. A single string may be longer."""
    longest: int = PATH_BYTES

    def pack(self, value: Sequence[bytes]) -> object:
        at_most(self.count, value)
        return b"".join(part + b"\0" for part in value)

    def unpack(self, raw: object) -> tuple[bytes, ...]:
        blob = of_type(raw, bytes)
        if blob.count(0) > self.count:
            raise ValueError(f"more than {self.count} strings")
        if blob and blob[-1]:
            raise ValueError("the last string does not end in NUL")
        parts = tuple(blob.split(b"\0")[:-1])
        if len(blob) > self.total and len(parts) > 1:
            raise ValueError(f"{len(blob)} bytes, the limit is {self.total}")
        if max(map(len, parts), default=0) > self.longest:
            raise ValueError(f"a string of more than {self.longest} bytes")
        return parts


def at_most(count: int, values: Sequence[object]) -> None:
    # A sender may exceed this limit by mistake; the receiver checks all others.
    if len(values) > count:
        raise ValueError(f"{len(values)} items, the limit is {count}")
