"""The host of a remote side: how it is dialled, what its errors mean, and which bytes count."""

from __future__ import annotations

import os
import sys
import time

from rdc.errors import CommandMissingError, ExitCode, ProtocolError, RdcError, StreamError, TrustError
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.limits import EXPIRY_NOTICE_DAYS
from rdc.model.location import DEFAULT_PORT, Location, RemoteShell
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from rdc.protocol.connection import Connection
    from rdc.transport.keys import Certificate, KeyRing
    from rdc.transport.pipes import ChildTransport, PipeTransport
    from rdc.transport.tls import TlsTransport


def explained_end(error: StreamError, host: str, shell: RemoteShell, status: int | None) -> RdcError:
    """Return the error to show for an ended stream. `status`: the remote shell's exit status, if known."""
    if error.before_hello and status in {126, 127}:
        return CommandMissingError(
            f"no {shell.program} on {host}: install it there (rdc install {host})"
            " or name its path with --remote-path"
        )
    if error.before_hello and status:
        return StreamError(
            f"{shell.command[0]} {host} ended with status {status} before rdc answered;"
            " its message, if any, is above",
            before_hello=True,
        )
    if status and type(error) is StreamError and error.code is ExitCode.STREAM:
        signal = f" (signal {-status})" if status < 0 else ""
        error.args = (f"{error} ({shell.command[0]} {host} ended with status {status}{signal})",)
    return error


STATUS_SECONDS = 1.0
"""The longest wait for the exit status of a remote shell whose stream has ended."""


def resumable(error: RdcError, *, dry_run: bool) -> RdcError:
    """`error`; that of a cut line says that nothing of what arrived is lost."""
    if not isinstance(error, StreamError) or isinstance(error, ProtocolError):
        return error
    if error.before_hello or dry_run:
        return error
    said = StreamError(f"{error}; the next run resumes where this one ended")
    said.code = error.code
    return said


if TYPE_CHECKING:
    Wire: TypeAlias = PipeTransport | TlsTransport


class Traffic(Record):
    """Bytes on a connection, with framing and, for a daemon, TLS."""

    sent: int
    received: int


class FarHost(Protocol):
    name: str
    """The text as the user wrote it."""
    asks: bool
    """True if the dial may ask a person for a password."""

    def dial(self) -> Wire:
        """Return a connection, which the caller closes. Raises RdcError."""

    def explained(self, error: RdcError, wire: Wire) -> RdcError:
        """Return `error`, which ended the session on `wire`, or a clearer one."""

    def traffic(self, connection: Connection, wire: Wire) -> Traffic:
        """Return the bytes so far."""


def far_host(
    location: Location,
    shell: RemoteShell,
    keys: str | os.PathLike[str] | None,
    report: Callable[[Problem], None],
) -> FarHost:
    """Return the host of `location`. `keys`: as for rdc.sync. `report`: hears that a certificate expires
    soon.

    Raises RdcError for a wrong command of the remote shell and for keys that cannot be read.
    """
    if location.host is None:
        return ThisHost()
    if location.port is None:
        return ShellHost(location.host, shell)
    return DaemonHost(location.host, location.port, keys, report)


def dial_early(far: Location, near: Sequence[Location], shell: RemoteShell) -> ChildTransport | None:
    """Start the remote shell of `far`, which `near` is synced with, before this end loads its session.

    The shell, the remote rdc and this end then start side by side. Returns None where the session is to dial:
    in one process; to a daemon, since that connection takes modules of this end; and for a place in `near`
    that is not there, which must be reported before anybody is asked for a password. Raises RdcError if
    the shell cannot be started. The caller closes the connection.
    """
    if far.host is None or far.port is not None:
        return None
    if not all(os.path.lexists(place.path or b".") for place in near):
        return None
    return ShellHost(far.host, shell).dial()


class ThisHost:
    """This machine, where a remote side is a process of its own, of which the user knows nothing."""

    name = ""
    asks = False

    @property
    def argv(self) -> tuple[str, ...]:
        """Start this rdc again. Its directory may be private, so that no other Python finds it: the child
        searches for modules where this process does, but not in a working directory."""
        start = (
            "import sys; sys.path[:] = sys.argv.pop(1).split('\\n'); from rdc.__main__ import main; main()"
        )
        path = "\n".join(filter(os.path.isabs, sys.path))
        return (sys.executable, "-P", "-c", start, path, "serve", "--stdio")

    def dial(self) -> ChildTransport:
        from rdc.transport.pipes import ChildTransport

        return ChildTransport(self.argv)

    def explained(self, error: RdcError, wire: Wire) -> RdcError:
        from rdc.session.runtime.driver import RefusedError

        if isinstance(error, RefusedError):
            return RdcError(error.reason, code=error.code)
        return StreamError("the process that writes to DST ended") if type(error) is StreamError else error

    def traffic(self, connection: Connection, wire: Wire) -> Traffic:
        return Traffic(connection.bytes_sent, connection.bytes_received)


class ShellHost:
    """A host that a remote shell leads to, which starts rdc there."""

    asks = True

    def __init__(self, host: str, shell: RemoteShell) -> None:
        from rdc.transport.pipes import remote_argv

        self.name = host
        self._shell = shell
        self._argv = remote_argv(host, shell)

    def dial(self) -> ChildTransport:
        from rdc.transport.pipes import ChildTransport

        return ChildTransport(self._argv)

    def explained(self, error: RdcError, wire: Wire) -> RdcError:
        from rdc.transport.pipes import ChildTransport

        if not isinstance(error, StreamError) or not isinstance(wire, ChildTransport):
            return error
        # A remote shell that has ended says why by its exit status. One that has not is not waited for long:
        # it may not know that the line is cut.
        wire.close_write()
        status = wire.wait(None if error.before_hello else STATUS_SECONDS)
        return explained_end(error, self.name, self._shell, status)

    def traffic(self, connection: Connection, wire: Wire) -> Traffic:
        return Traffic(connection.bytes_sent, connection.bytes_received)


class DaemonHost:
    """A host where a daemon listens."""

    asks = False

    def __init__(
        self,
        host: str,
        port: int,
        keys: str | os.PathLike[str] | None,
        report: Callable[[Problem], None],
    ) -> None:
        from pathlib import Path

        from rdc.transport.keys import KeyRing, key_directory

        self.name = host
        self._port = port
        self._report = report
        self._ring: KeyRing = KeyRing.read(key_directory(os.environ) if keys is None else Path(keys))
        self._peers: tuple[Certificate, ...] = tuple(self._ring.peers(host, port, default_port=DEFAULT_PORT))

    def dial(self) -> TlsTransport:
        from rdc.transport.tls import connect, days_until

        wire = connect(self.name, self._port, self._ring, self._peers)
        days = days_until(wire.peer_expires, time.time())
        if days is not None and days < EXPIRY_NOTICE_DAYS:
            line = f"{self.name}: its certificate expires in {days} days; it needs a new one, trusted here"
            self._report(Problem(ExitCode.OK, b"", line))
        return wire

    def explained(self, error: RdcError, wire: Wire) -> RdcError:
        return TrustError(f"{self.name}: {error}") if isinstance(error, TrustError) else error

    def traffic(self, connection: Connection, wire: Wire) -> Traffic:
        """Count all bytes of the TCP stream."""
        return Traffic(getattr(wire, "bytes_sent", 0), getattr(wire, "bytes_received", 0))
