"""The connection to a watch's far side, dialled for each session: a child process, a remote shell, or TLS."""

from __future__ import annotations

import os
import sys

from rdc.errors import RdcError, StreamError, TrustError
from rdc.model.location import DEFAULT_PORT
from rdc.records import dataclass
from rdc.session.runtime.runner import RefusedError
from rdc.typed import Protocol
from rdc.watching.follower import Meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from rdc.model.location import Location, RemoteShell
    from rdc.protocol.connection import Connection
    from rdc.transport.stdio import ChildTransport
    from rdc.transport.tls import TlsTransport

    Wire: TypeAlias = ChildTransport | TlsTransport

__all__ = ["Line", "line_to"]


class Line(Protocol):
    def dial(self) -> Wire:
        """Connect. The caller closes the result. Raises RdcError."""

    def explained(self, error: RdcError, wire: Wire, *, first: bool) -> RdcError:
        """`error`, which ended a session, or a clearer one. first: the first comparison was not complete."""

    def meter(self, connection: Connection, wire: Wire) -> Meter:
        """Counts the bytes on the connection."""


def line_to(far: Location, shell: RemoteShell, keys: str | os.PathLike[str] | None) -> Line:
    """The connection to the far side on `far`. On this machine the far side is also a process of its own: the
    session is the same, and its I/O does not slow this process."""
    if far.host is None:
        return _Here((*_own_program(), "serve", "--stdio"))
    if far.port is not None:
        return _Daemon(far.host, far.port, keys)
    from rdc.transport.remote import remote_argv

    return _There(tuple(remote_argv(far.host, shell)), far.host, shell)


def _own_program() -> tuple[str, ...]:
    """Starts this rdc again. Its directory may be private, so that no other Python finds it: the child
    searches for modules where this process does, but not in a working directory."""
    start = "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); from rdc.__main__ import main; main()"
    return (sys.executable, "-P", "-c", start, "\n".join(filter(os.path.isabs, sys.path)))


@dataclass(frozen=True, slots=True)
class _Child:
    argv: tuple[str, ...]

    def dial(self) -> Wire:
        from rdc.transport.stdio import ChildTransport

        return ChildTransport(self.argv)

    def meter(self, connection: Connection, wire: Wire) -> Meter:
        return Meter(connection.bytes_sent, connection.bytes_received)


@dataclass(frozen=True, slots=True)
class _Here(_Child):
    """A process on this machine, of which the user knows nothing."""

    def explained(self, error: RdcError, wire: Wire, *, first: bool) -> RdcError:
        if isinstance(error, RefusedError):
            return RdcError(error.reason, code=error.code)
        if type(error) is StreamError:
            return StreamError("the process that writes to DST ended")
        return error


@dataclass(frozen=True, slots=True)
class _There(_Child):
    """A remote shell."""

    host: str
    shell: RemoteShell

    def explained(self, error: RdcError, wire: Wire, *, first: bool) -> RdcError:
        from rdc.session.far.far_errors import explained_end
        from rdc.transport.stdio import ChildTransport

        if not first or not isinstance(error, StreamError) or not error.before_hello:
            return error
        # If the far side never spoke, its exit status explains the error.
        status = None
        if isinstance(wire, ChildTransport):
            wire.close_write()
            status = wire.wait()
        return explained_end(error, self.host, self.shell, status)


@dataclass(frozen=True, slots=True)
class _Daemon:
    host: str
    port: int
    keys: str | os.PathLike[str] | None

    def dial(self) -> Wire:
        """Connect with the current keys, which are read each time."""
        from pathlib import Path

        from rdc.transport.keys import KeyRing, key_directory
        from rdc.transport.tls_dial import connect

        ring = KeyRing.read(key_directory(os.environ) if self.keys is None else Path(self.keys))
        return connect(
            self.host, self.port, ring, ring.peers(self.host, self.port, default_port=DEFAULT_PORT)
        )

    def explained(self, error: RdcError, wire: Wire, *, first: bool) -> RdcError:
        return TrustError(f"{self.host}: {error}") if first and isinstance(error, TrustError) else error

    def meter(self, connection: Connection, wire: Wire) -> Meter:
        """Counts bytes with the overhead of TLS."""
        return Meter(getattr(wire, "bytes_sent", 0), getattr(wire, "bytes_received", 0))
