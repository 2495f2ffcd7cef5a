"""Two ends of a TLS connection in one process, or as far as their handshake comes."""

from __future__ import annotations

import functools
import shutil
import socket
import tempfile
from pathlib import Path

from rdc.transport.keys import KeyRing
from rdc.transport.tls import TlsTransport, answering_context, dialling_context
from tests.support.daemon.daemons import certificate, key_directory

__all__ = ["ring", "shake_hands", "tls_ends", "tls_pair"]


@functools.cache
def ring(own: str, *trusted: str) -> KeyRing:
    """Keys of `own`, who trusts others, each under the own name."""
    place = Path(tempfile.mkdtemp(prefix="rdc-ring-"))
    try:
        keys = key_directory(place / "keys", own, {name: name for name in trusted})
        return KeyRing.read(keys)
    finally:
        import atexit

        atexit.register(shutil.rmtree, place, ignore_errors=True)


def tls_ends(near: KeyRing, far: KeyRing, expected: str = "server") -> tuple[TlsTransport, TlsTransport]:
    """A client that expects `expected`, and a server, over a socket pair; nothing was said yet."""
    one, other = socket.socketpair()
    return (
        TlsTransport(one, dialling_context(near, [certificate(expected)]), server_side=False),
        TlsTransport(other, answering_context(far), server_side=True),
    )


def shake_hands(near: TlsTransport, far: TlsTransport) -> None:
    """Both handshakes, in turns; raises what either side raises."""
    done = [False, False]
    for _ in range(20):
        for number, end in enumerate((near, far)):
            done[number] = done[number] or end.shake()
        if all(done):
            return
    raise AssertionError("the handshake does not end")


def tls_pair() -> tuple[TlsTransport, TlsTransport]:
    """Two ends that know each other."""
    near, far = tls_ends(ring("alice"), ring("server", "alice"))
    shake_hands(near, far)
    return near, far
