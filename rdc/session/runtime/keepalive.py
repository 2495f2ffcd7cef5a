"""Sends signs of life while a conversation works without messages, for a far side with a time limit."""

from __future__ import annotations

import contextlib

from rdc.errors import RdcError
from rdc.session.runtime.byte_link import BEATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Keepalive"]


class Keepalive:
    """Calls `beat` from its own thread every quarter of `timeout` seconds, but only inside `working`.

    Code inside `working` must not touch what `beat` touches: connection and transport belong to one thread at
    a time.
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
        """A context in which `beat` may be called."""
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    def stop(self) -> None:
        """Ends the signs of life. Only the thread that made this may call it, outside `working`."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            if not self._turn.acquire(timeout=self._interval):
                continue  # the main thread is moving bytes or waiting for them, so this side is not silent
            try:
                if not self._stopped.is_set():
                    # The next exchange will raise an error of the transport again.
                    with contextlib.suppress(RdcError, OSError, ValueError):
                        self._beat()
            finally:
                self._turn.release()
