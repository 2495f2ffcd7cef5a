"""What every transport offers: one step of two-way I/O at a time."""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError
from rdc.records import dataclass
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Exchange", "Transport", "Waitable", "timed_out", "waitable"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What one step moved."""

    written: int
    """Bytes of the outgoing data that are gone."""
    received: bytes
    eof: bool
    """The far side will send no more. Only with `received` empty: what came before the end comes first."""


class Transport(Protocol):
    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        """Write what fits of `outgoing`, read what is there, block until one of both is possible.

        timeout: seconds; None waits without end, 0 looks once and may return an empty Exchange; otherwise
        RdcError (exit code 30) when nothing moved for so long. One of the two directions must be asked for,
        or nothing could ever end the wait. After the far side has closed its input, outgoing bytes count as
        written and are dropped: what it still says (such as why) must be read, and the end shows as `eof`.
        """

    def close_write(self) -> None:
        """Send the end of the stream; reading goes on."""

    def close(self) -> None:
        """Give everything back; idempotent."""


class Waitable(Protocol):
    """A transport that can be waited for together with other things."""

    def fileno(self) -> int:
        """The descriptor to poll, for `events`, once `exchange` has returned nothing: until then input may be
        here that the kernel knows nothing of, such as records of TLS that were read and not yet asked for."""

    @property
    def events(self) -> int:
        """What `fileno()` has to be polled for now, POLLIN, POLLOUT or both. When one of them comes, an
        `exchange` that wants input gets on: a wait neither misses bytes nor turns in vain."""


def waitable(transport: Transport) -> Waitable | None:
    """The transport itself, if it can be waited for."""
    asked: Any = transport
    able: Waitable | None = asked if hasattr(asked, "fileno") and hasattr(asked, "events") else None
    return able


def timed_out(timeout: float) -> RdcError:
    return RdcError(f"the far side was silent for {timeout:g} seconds", code=ExitCode.TIMEOUT)
