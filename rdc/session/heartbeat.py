"""Signs of life while a conversation works without messages, for a far side with a time limit."""

from __future__ import annotations

import contextlib

from rdc.errors import RdcError
from rdc.session.byte_link import BEATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Heartbeat"]


class Heartbeat:
    """Calls `beat` from a thread of its own, every quarter of `timeout` seconds, and only inside `working`.

    Whoever is inside `working` touches nothing that `beat` does: connection and transport belong to one
    thread at a time.
    """

    def __init__(self, beat: Callable[[], None], timeout: float) -> None:
        import threading  # few sessions have a time limit

        self._beat = beat
        self._interval = timeout / BEATS
        self._turn = threading.Lock()
        self._stopped = threading.Event()
        self._turn.acquire()
        self._thread = threading.Thread(target=self._run, name="rdc heartbeat", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    def stop(self) -> None:
        """After this no beat comes. For the thread that made it, outside `working`."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            if not self._turn.acquire(timeout=self._interval):
                continue  # bytes are being moved, or waited for: that is not this side's silence
            try:
                if not self._stopped.is_set():
                    # What is wrong with the transport, the next exchange will find.
                    with contextlib.suppress(RdcError, OSError, ValueError):
                        self._beat()
            finally:
                self._turn.release()
