"""A queue of received bytes, taken in other lengths than they arrive in, and copied only across a
boundary."""

from __future__ import annotations

from collections import deque

__all__ = ["ByteQueue"]

JOIN_BELOW = 4096
"""Shorter pieces are joined on arrival, so a sender of single bytes cannot make this side hold an object for
each."""


class ByteQueue:
    """A queue of bytes. `take` may return a view of bytes that were fed, which must not change while the view
    lives."""

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: deque[memoryview] = deque()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def feed(self, data: bytes | memoryview) -> None:
        size = len(data)
        if not size:
            return
        self._size += size
        parts = self._parts
        if size < JOIN_BELOW and parts and len(parts[-1]) < JOIN_BELOW:
            data = b"".join((parts.pop(), data))
        parts.append(memoryview(data))

    def head(self, length: int) -> memoryview | bytes:
        """The first `length` bytes or more; fewer only if the queue holds fewer. They stay in the queue."""
        parts = self._parts
        if not parts:
            return b""
        if len(parts[0]) >= length or len(parts) == 1:
            return parts[0]
        # A few bytes across a boundary; the parts may be as short.
        found = b""
        for part in parts:
            found += part[: length - len(found)]
            if len(found) == length:
                break
        return found

    def skip(self, length: int) -> None:
        """Drop the first `length` bytes. The queue must hold that many."""
        self._size -= length
        parts = self._parts
        while length:
            part = parts.popleft()
            if len(part) > length:
                parts.appendleft(part[length:])
                return
            length -= len(part)

    def take(self, length: int) -> memoryview | bytes:
        """Remove and return the first `length` bytes in one piece. The queue must hold that many."""
        parts = self._parts
        if not length:
            return b""
        first = parts[0]
        if len(first) > length:
            parts[0] = first[length:]
            self._size -= length
            return first[:length]
        if len(first) == length:
            self._size -= length
            return parts.popleft()
        taken, left = [], length
        while left:
            part = parts.popleft()
            if len(part) > left:
                parts.appendleft(part[left:])
                part = part[:left]
            taken.append(part)
            left -= len(part)
        self._size -= length
        return b"".join(taken)
