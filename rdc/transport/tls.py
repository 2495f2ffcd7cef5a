"""TLS 1.3 over TCP as a transport: both sides show a certificate, and each must know the other's beforehand.

Trust is by pin. OpenSSL is given the certificates that are trusted, each as an anchor of its own, and refuses
within the handshake whatever is none of them, not valid yet or expired. What it accepts is then compared byte
for byte with the set once more, before a byte of the protocol is read or written: a trusted certificate might
be one that can sign others, and those were never trusted.

The TLS engine works in memory (ssl.MemoryBIO) and this class moves its bytes: so every wait has one deadline,
every byte on the wire is counted, and a connection whose handshake is done can be handed on by fork.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, RdcError, StreamError, TrustError, printable
from rdc.limits import CONNECT_SECONDS, HANDSHAKE_BYTES
from rdc.transport.base import Exchange, timed_out
from rdc.transport.keys import Certificate, pin_of

if TYPE_CHECKING:
    from rdc.transport.keys import KeyRing

__all__ = ["TlsTransport", "answering_context", "connect", "dialling_context"]

READ_BYTES = 256 << 10
"""One read from the socket, and plaintext handed out at a time at most."""

WRITE_BYTES = 64 << 10
"""Plaintext encrypted at a time: four full records, which then must all leave before anything else."""

UNSENT_BYTES = 256 << 10
"""Encrypted bytes that wait at most: a peer that makes us answer (key updates) and does not read is not read
either."""

CLOSE_SECONDS = 2.0
"""How long to try to get the last bytes out."""


def answering_context(ring: KeyRing) -> ssl.SSLContext:
    """For a server that knows all peers of `ring`. Raises TrustError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, ring, ring.trusted.values())
    # Without tickets nothing is resumed: each connection shows its certificate anew.
    context.num_tickets = 0
    return context


def dialling_context(ring: KeyRing, peer: Certificate) -> ssl.SSLContext:
    """For a client that wants to speak with `peer` and nobody else. Raises TrustError."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, ring, [peer])


def _context(protocol: int, ring: KeyRing, trusted: Iterable[Certificate]) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    # A name in a certificate proves nothing here: the certificate itself is what is known.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    # Each trusted certificate is an anchor, also one that somebody else signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    try:
        # Never ask on a terminal for a passphrase.
        context.load_cert_chain(ring.identity, password=lambda: b"")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise TrustError(
            f"{ring.identity}: expected an unencrypted private key and its certificate, found: {reason}"
        ) from error
    for certificate in trusted:
        try:
            context.load_verify_locations(cadata=certificate.der)
        except ssl.SSLError as error:
            raise TrustError(f"{certificate.pin}: not a certificate: {error.reason}") from error
    return context


class TlsTransport:
    """Owns `sock`, a connected TCP socket, and closes it. Before anything else, `shake` until it is true and
    `check_pin`."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool) -> None:
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            # A session's messages are gathered by the driver; waiting for more to come only adds latency.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=server_side)
        self._server_side = server_side
        self._unsent = memoryview(b"")
        """Encrypted, not yet taken by the kernel."""
        self._encrypted = 0
        """Bytes at the head of the next exchange's `outgoing` that are encrypted already. They count as
        written only once all of `_unsent` left, so that a caller who is told so may close."""
        self._arrived = b""
        self._shaken = False
        self._far_reads = True
        self._far_ended = False
        self._write_open = True
        self._closed = False
        self._failure: RdcError | None = None
        self.bytes_sent = 0
        """Every byte the kernel took: the handshake's, and what TLS adds to each record, included."""
        self.bytes_received = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def events(self) -> int:
        """What to poll the socket for, in the handshake and after it: POLLIN, POLLOUT or both.

        Records that TLS itself wants to send (answers to key updates) wait in `_unsent` though nobody wrote
        anything. Past UNSENT_BYTES of them nothing is read, and input would end every wait at once.
        """
        events = select.POLLOUT if self._unsent else 0
        return events | (select.POLLIN if len(self._unsent) < UNSENT_BYTES else 0)

    # The handshake

    def shake(self) -> bool:
        """What can be done of the handshake without waiting; True when it is complete.

        Until then call it again when `events` are. Raises TrustError where one side refuses the other's
        certificate, StreamError where the far side is gone or speaks no TLS 1.3.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._push()
                if self.bytes_received > HANDSHAKE_BYTES:
                    raise StreamError(
                        f"more than {HANDSHAKE_BYTES} bytes in the TLS handshake", before_hello=True
                    ) from None
                if not self._pull():
                    return False
            except ssl.SSLError as error:
                # The alert that tells the far side why.
                self._push()
                raise self._explained(error) from error
            else:
                self._shaken = True
                self._push()
                return True

    @property
    def peer_pin(self) -> str:
        """The pin of the certificate that the far side has shown."""
        der = self._tls.getpeercert(binary_form=True)
        if der is None:
            raise TrustError("the far side showed no certificate")
        return pin_of(der)

    def check_pin(self, pins: Iterable[str]) -> str:
        """The far side's pin, which is one of `pins`. Raises TrustError."""
        pin = self.peer_pin
        if pin not in pins:
            raise TrustError(f"the far side showed the certificate {pin}, which is not trusted")
        return pin

    # The transport

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        moved = self.bytes_sent + self.bytes_received
        began = time.monotonic()
        while True:
            written = self._write(outgoing)
            received = self._read() if want_input else b""
            eof = want_input and not received and self._far_ended
            if written or received or eof:
                return Exchange(written, received, eof)
            if timeout == 0:
                return Exchange(0, b"", False)
            if moved != self.bytes_sent + self.bytes_received:
                # Part of a record: a slow line is not a silent one.
                moved, began = self.bytes_sent + self.bytes_received, time.monotonic()
            left = None if timeout is None else began + timeout - time.monotonic()
            if left is not None and left <= 0:
                raise timed_out(timeout or 0)
            self._poll(want_input, left)

    def _poll(self, want_input: bool, seconds: float | None) -> None:
        poll = select.poll()
        poll.register(self._sock, self.events if want_input else self.events & ~select.POLLIN)
        poll.poll(None if seconds is None else max(1, int(seconds * 1000)))

    def _write(self, outgoing: memoryview) -> int:
        """How much of `outgoing` is gone, whole records at a time."""
        self._push()
        if not self._far_reads:
            return len(outgoing)
        if self._unsent:
            return 0
        if not self._encrypted and outgoing:
            try:
                self._encrypted = self._tls.write(outgoing[:WRITE_BYTES])
            except ssl.SSLError:
                # After an alert of its own OpenSSL writes no more; what it was, reading tells.
                self._far_reads = False
                return len(outgoing)
            self._push()
            if self._unsent:
                return 0
        written = min(self._encrypted, len(outgoing))
        self._encrypted -= written
        return written

    def _push(self) -> None:
        """Give the kernel what is encrypted, as far as it takes it."""
        if self._out.pending:
            self._unsent = memoryview(bytes(self._unsent) + self._out.read())
        while self._unsent:
            try:
                sent = self._sock.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # EPIPE, ECONNRESET: nobody reads any more.
                self._far_reads = False
                self._unsent = memoryview(b"")
                self._encrypted = 0
                return
            self.bytes_sent += sent
            self._unsent = self._unsent[sent:]

    def _pull(self) -> bool:
        """Take from the kernel what has come; False when that is nothing yet."""
        if self._far_ended or len(self._unsent) >= UNSENT_BYTES:
            return False
        try:
            data = self._sock.recv(READ_BYTES if self._shaken else HANDSHAKE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            # A reset connection has ended as surely as a closed one.
            data = b""
        self.bytes_received += len(data)
        if data:
            self._in.write(data)
        else:
            self._far_ended = True
            self._in.write_eof()
        return True

    def _read(self) -> bytes:
        data, self._arrived = self._arrived, b""
        if data:
            return data
        data = self._decrypt()
        if not data and self._pull():
            data = self._decrypt()
        if not data and self._failure is not None:
            raise self._failure
        return data

    def _decrypt(self) -> bytes:
        """Plaintext of the records that are here. An error waits until what came before it is taken."""
        parts: list[bytes] = []
        size = 0
        try:
            while size < READ_BYTES:
                part = self._tls.read(READ_BYTES - size)
                if not part:
                    break
                parts.append(part)
                size += len(part)
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            # An end without TLS's own notice: the protocol knows by itself whether all was said.
            self._far_ended = True
        except ssl.SSLError as error:
            self._failure = self._explained(error)
            self._far_reads = False
        self._push()
        return b"".join(parts)

    def close_write(self) -> None:
        if not self._write_open:
            return
        self._write_open = False
        if self._shaken and self._far_reads and self._failure is None:
            # Whatever is still undecoded would be an error to the closing call, and lost.
            while part := self._decrypt():
                self._arrived += part
            with contextlib.suppress(ssl.SSLError, ValueError):
                self._tls.unwrap()
        self._flush(CLOSE_SECONDS)
        self._far_reads = False
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)

    def _flush(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self._push()
        while self._unsent and (left := deadline - time.monotonic()) > 0:
            self._poll(False, left)
            self._push()

    def linger(self, seconds: float) -> None:
        """End our side and drop what still comes, for a while: closing with bytes unread would make the
        kernel reset the connection, and the last thing we said might never be read."""
        self.close_write()
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        with contextlib.suppress(OSError):
            while (left := deadline - time.monotonic()) > 0 and poll.poll(max(1, int(left * 1000))):
                if not self._sock.recv(READ_BYTES):
                    return

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.close_write()
            self._sock.close()

    def forsake(self) -> None:
        """Close this process's descriptor and say nothing: the connection lives on in a child."""
        self._closed = True
        self._write_open = False
        self._sock.close()

    def _explained(self, error: ssl.SSLError) -> RdcError:
        """What an error of OpenSSL's means to whoever has to do something about it."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return TrustError(_VERIFICATION.get(error.verify_code, _UNKNOWN) + f" ({error.verify_message})")
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return StreamError("the far side ended the connection in the TLS handshake", before_hello=True)
        reason = (error.reason or "").upper()
        if "ALERT" in reason:
            for words, text in _ALERTS.items():
                if words in reason:
                    return TrustError(text)
        if "PEER_DID_NOT_RETURN_A_CERTIFICATE" in reason:
            return TrustError("the far side showed no certificate")
        what = (
            "the TLS connection is damaged" if self._shaken else "the far side does not speak TLS 1.3 with us"
        )
        return StreamError(
            f"{what}: {reason.replace('_', ' ').lower() or error}", before_hello=not self._shaken
        )


_UNKNOWN = "the far side's certificate is not one that is trusted"
# X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of openssl/x509_vfy.h.
_VERIFICATION = {
    9: "the far side's certificate is not valid yet; check both clocks",
    10: "the far side's certificate has expired; it needs a new one",
}
_ALERTS = {
    "EXPIRED": "the far side refused our certificate: it has expired; make a new one (rdc keys new --force)"
    " and have it trusted there",
    "UNKNOWN_CA": "the far side refused our certificate: it does not know it; have it trusted there"
    " (rdc keys show --pem prints it)",
    "CERTIFICATE": "the far side refused our certificate; its log says why",
    "PROTOCOL_VERSION": "the far side does not speak TLS 1.3",
}


def connect(host: str, port: int, ring: KeyRing, peer: Certificate) -> TlsTransport:
    """A connection to the rdc daemon at HOST:PORT, which has shown the certificate `peer`.

    Raises TrustError (exit code 5), RdcError for a host that is not there (10) or does not answer within
    CONNECT_SECONDS (35), StreamError for one that does not speak TLS 1.3.
    """
    name = printable(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    context = dialling_context(ring, peer)
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
        transport.check_pin((peer.pin,))
    except (TrustError, StreamError) as error:
        transport.close()
        if isinstance(error, StreamError):
            raise StreamError(f"{name}: {error}", before_hello=True) from error
        raise TrustError(f"{name}: {error}; expected {peer.pin}") from error
    except BaseException:
        transport.close()
        raise
    return transport


def _late(name: str) -> RdcError:
    return RdcError(f"{name}: no answer within {CONNECT_SECONDS} seconds", code=ExitCode.CONNECT_TIMEOUT)
