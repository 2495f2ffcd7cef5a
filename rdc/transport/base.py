"""The interface of every transport: one step of two-way I/O at a time."""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError
from rdc.lean.records import Record
from rdc.lean.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Exchange(Record):
    """The result of one step."""

    written: int
    """Bytes of the outgoing data that are written."""
    received: bytes
    eof: bool
    """The remote side has closed its direction. Set only with an empty `received`: data before the end comes
    first."""


class Transport(Protocol):
    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        """Write what fits of `outgoing`, read available input, and block until either is possible.

        timeout: seconds; None waits without limit, 0 never waits and may return an empty Exchange. With any
        other value RdcError (exit code 30) reports that nothing moved for that long. The caller must request
        at least one direction, or nothing could end the wait.

        After the remote side has closed its input, outgoing bytes count as written and are dropped. Its last
        messages, such as the reason, must still be read; the end then shows as `eof`.
        """

    def close_write(self) -> None:
        """Send the end of the stream. Reading continues."""

    def close(self) -> None:
        """Release everything; idempotent."""


class Waitable(Protocol):
    """A transport that can be polled together with other descriptors."""

    def fileno(self) -> int:
        """Return the descriptor to poll for `events` after `exchange` has returned nothing. Before that,
        input may be here that the kernel does not know of, such as decrypted TLS records."""

    @property
    def events(self) -> int:
        """The events to poll `fileno()` for now: POLLIN, POLLOUT or both. After one of them, an `exchange`
        that wants input makes progress: a wait neither misses bytes nor spins."""

    def descriptors(self, *, reads: bool, writes: bool) -> dict[int, int]:
        """Return what to poll, and for which events, until an `exchange` makes progress that wants input or
        not, and has output or not."""


def waitable(transport: Transport) -> Waitable | None:
    """Return the transport itself if it can be polled, or None."""
    asked: Any = transport
    able: Waitable | None = asked if hasattr(asked, "fileno") and hasattr(asked, "events") else None
    return able


def timed_out(timeout: float) -> RdcError:
    return RdcError(f"the remote side was silent for {timeout:g} seconds", code=ExitCode.TIMEOUT)
