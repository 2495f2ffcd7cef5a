"""Signals that ask a long job to end between two steps."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["stop_requests"]


@contextlib.contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Delays the first SIGINT, SIGTERM or SIGHUP, so that a job ends between two steps.

    Yields the event that a signal sets. The earlier handlers take the second signal.
    """
    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)

    def note(_number: int, _frame: FrameType | None) -> None:
        requested.set()
        restore()

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield requested
    finally:
        restore()
