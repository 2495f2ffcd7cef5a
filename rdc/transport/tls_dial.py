"""Dialling a daemon: a TCP connection and the TLS handshake within one deadline."""

from __future__ import annotations

import select
import socket
import time

from rdc.errors import ExitCode, RdcError, StreamError, TrustError, printable
from rdc.limits.sessions import CONNECT_SECONDS
from rdc.transport.tls import TlsTransport
from rdc.transport.tls_trust import dialling_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.transport.keys import Certificate, KeyRing

__all__ = ["connect"]


def connect(host: str, port: int, ring: KeyRing, peers: Sequence[Certificate]) -> TlsTransport:
    """A connection to the rdc daemon at HOST:PORT that has shown one of the certificates `peers`.

    TrustError (exit code 5) for another certificate; RdcError for an unreachable host (10) or no answer
    within CONNECT_SECONDS (35); StreamError for a host without TLS 1.3.
    """
    name = printable(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    context = dialling_context(ring, peers)
    deadline = time.monotonic() + CONNECT_SECONDS
    try:
        sock = socket.create_connection((host, port), CONNECT_SECONDS)
    except TimeoutError as error:
        raise _late(name) from error
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise RdcError(
            f"{name}: cannot connect: {reason}; check the name, and that `rdc serve` listens there",
            code=ExitCode.UNREACHABLE,
        ) from error
    transport = TlsTransport(sock, context, server_side=False)
    try:
        while not transport.shake():
            left = deadline - time.monotonic()
            poll = select.poll()
            poll.register(sock, transport.events)
            if left <= 0 or not poll.poll(left * 1000):
                raise _late(name)
        transport.check_pin([peer.pin for peer in peers])
    except (TrustError, StreamError) as error:
        transport.close()
        if isinstance(error, StreamError):
            raise StreamError(f"{name}: {error}", before_hello=True) from error
        raise TrustError(f"{name}: {error}; expected {' or '.join(peer.pin for peer in peers)}") from error
    except BaseException:
        transport.close()
        raise
    return transport


def _late(name: str) -> RdcError:
    return RdcError(f"{name}: no answer within {CONNECT_SECONDS} seconds", code=ExitCode.CONNECT_TIMEOUT)
