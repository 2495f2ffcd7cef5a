"""The descriptors that the daemon waits for, and the handlers of their events.

One wait returns a batch of events. The handler of the first may close the connection of the next, and a new
connection may get that descriptor's number at once. So an event is delivered only if its registration still
exists.
"""

from __future__ import annotations

import selectors
from collections.abc import Callable

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.daemon.log import Log

__all__ = ["EventLoop", "WAIT_SECONDS"]

WAIT_SECONDS = 3_600.0
"""Longest wait in seconds. epoll counts milliseconds in 31 bits and refuses more; deadlines may be years
away."""


@dataclass(eq=False, slots=True)
class _Registration:
    """The identity of this object distinguishes successive uses of a descriptor number."""

    handle: Callable[[int], None]


class EventLoop:
    """Invariant: a descriptor is in the selector exactly while it is in `_registered`."""

    def __init__(self, selector: selectors.BaseSelector, log: Log) -> None:
        self._selector = selector
        self._log = log
        self._registered: dict[int, _Registration] = {}

    def watch(self, fd: int, handle: Callable[[int], None]) -> None:
        """Deliver events of `fd` to `handle`, only input until `change`.

        OSError if the kernel has no memory for it, KeyError if `fd` is already watched.
        """
        registration = _Registration(handle)
        self._selector.register(fd, selectors.EVENT_READ, registration)
        self._registered[fd] = registration

    def change(self, fd: int, events: int) -> None:
        """Set the events of a watched `fd`: EVENT_READ, EVENT_WRITE or both."""
        if self._selector.get_key(fd).events != events:
            self._selector.modify(fd, events, self._registered[fd])

    def unwatch(self, fd: int) -> None:
        """Stop watching `fd`, before its close. Undelivered events of this batch are dropped. Harmless for an
        unwatched descriptor."""
        if self._registered.pop(fd, None) is not None and fd in self._selector.get_map():
            self._selector.unregister(fd)

    def turn(self, seconds: float | None) -> None:
        """Wait for one batch, at most `seconds`, and deliver it.

        An exception of a handler is logged and ends the watch of that descriptor, nothing else.
        """
        bound = WAIT_SECONDS if seconds is None else min(max(seconds, 0.0), WAIT_SECONDS)
        for key, events in self._selector.select(bound):
            registration = self._registered.get(key.fd)
            if registration is None or registration is not key.data:
                continue
            try:
                registration.handle(events)
            except Exception as error:  # noqa: BLE001 - one descriptor must not cost the daemon all others
                self._log.internal(error)
                if self._registered.get(key.fd) is registration:
                    self.unwatch(key.fd)

    def close(self) -> None:
        """Close the selector. In a session's process this changes nothing for the daemon."""
        self._registered.clear()
        self._selector.close()
