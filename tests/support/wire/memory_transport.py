"""A transport within one process: two bounded queues, safe between threads."""

from __future__ import annotations

from collections import deque
from threading import Condition

from rdc.transport.base import Exchange, Transport, timed_out

__all__ = ["pair"]

CAPACITY = 4 << 20
"""Bytes under way per direction: large enough that an end need not wait for the other's thread at each
message."""


class _Queue:
    """One direction. The caller of each method holds the pair's condition."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._parts: deque[bytes] = deque()
        self._size = 0
        self.ended = False
        """True if the writer has ended the stream."""
        self.abandoned = False
        """True if the reader has stopped reading."""

    def __len__(self) -> int:
        return self._size

    @property
    def room(self) -> int:
        return self._capacity - self._size

    def put(self, data: memoryview) -> int:
        if self.abandoned:
            return len(data)
        part = bytes(data[: self.room])
        if part:
            self._parts.append(part)
            self._size += len(part)
        return len(part)

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return data


class _MemoryTransport:
    def __init__(self, changed: Condition, inward: _Queue, outward: _Queue) -> None:
        self._changed = changed
        self._inward = inward
        self._outward = outward

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        with self._changed:
            done = self._changed.wait_for(lambda: self._movable(outgoing, want_input), timeout)
            if not done and timeout:
                raise timed_out(timeout)
            received = self._inward.take() if want_input else b""
            written = self._outward.put(outgoing)
            if received or written:
                self._changed.notify_all()
            return Exchange(written, received, want_input and not received and self._inward.ended)

    def _movable(self, outgoing: memoryview, want_input: bool) -> bool:
        if want_input and (len(self._inward) or self._inward.ended):
            return True
        return len(outgoing) > 0 and (self._outward.abandoned or self._outward.room > 0)

    def close_write(self) -> None:
        with self._changed:
            self._outward.ended = True
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._outward.ended = True
            self._inward.abandoned = True
            self._inward.take()
            self._changed.notify_all()


def pair(capacity: int = CAPACITY) -> tuple[Transport, Transport]:
    """Two connected ends. capacity: bytes that a direction holds before its writer waits."""
    changed = Condition()
    there, back = _Queue(capacity), _Queue(capacity)
    return _MemoryTransport(changed, back, there), _MemoryTransport(changed, there, back)
