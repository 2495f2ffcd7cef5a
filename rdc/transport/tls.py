"""A transport over TLS 1.3 and TCP: both sides show a certificate, and each must know the other's in advance.

The TLS engine works in memory (ssl.MemoryBIO) and this class moves its bytes. So each wait has one deadline,
each byte on the wire is counted, and fork can pass on a connection after its handshake.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import ssl
import time
from collections.abc import Iterable

from rdc.errors import ExitCode, RdcError, StreamError, TrustError, printable
from rdc.limits import CONNECT_SECONDS, HANDSHAKE_BYTES
from rdc.transport.base import Exchange, timed_out
from rdc.transport.keys import Certificate, KeyRing, pin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# The certificates that a TLS connection trusts, and the meaning of OpenSSL's errors.
#
# Trust is by pin. OpenSSL receives each trusted certificate as an anchor of its own. It refuses within the
# handshake every other certificate and those not yet valid or expired. An accepted certificate is then
# compared byte for byte with the trusted ones, before any byte of the protocol is read or written. A trusted
# certificate might be able to sign others, and those are not trusted.


def answering_context(ring: KeyRing) -> ssl.SSLContext:
    """Return a context for a server that trusts all peers of `ring`. Raises TrustError."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, ring, ring.certificates)
    # Without tickets no session is resumed: each connection shows its certificate.
    context.num_tickets = 0
    return context


def dialling_context(ring: KeyRing, peers: Iterable[Certificate]) -> ssl.SSLContext:
    """Return a context for a client that trusts only `peers`. Raises TrustError."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, ring, peers)


def _context(protocol: int, ring: KeyRing, trusted: Iterable[Certificate]) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    # A name in a certificate proves nothing here: rdc compares the certificate itself.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    # Each trusted certificate is an anchor, even one that another key signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    try:
        # Never prompt for a passphrase.
        context.load_cert_chain(ring.identity, password=lambda: b"")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
        raise TrustError(
            f"{ring.identity}: expected an unencrypted private key and its certificate, found: {reason}"
        ) from error
    for certificate in trusted:
        try:
            context.load_verify_locations(cadata=certificate.der)
        except (ssl.SSLError, ValueError) as error:
            reason = error.reason if isinstance(error, ssl.SSLError) else str(error)
            raise TrustError(f"{certificate.pin}: not a certificate: {reason}") from error
    return context


def days_until(expiry: float, now: float) -> int | None:
    """Return the whole days from `now` to the expiry of a certificate, both in seconds since 1970; None
    without an expiry."""
    return None if math.isinf(expiry) else int((expiry - now) // 86_400)


def explained(error: OSError | ValueError, *, shaken: bool) -> RdcError:
    """Return the error that a user can act on, for an error of the TLS engine, usually ssl.SSLError. shaken:
    the handshake was complete."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TrustError(_VERIFICATION.get(error.verify_code, _UNKNOWN) + f" ({error.verify_message})")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return StreamError("the remote side ended the connection in the TLS handshake", before_hello=True)
    reason = (error.reason or "").upper() if isinstance(error, ssl.SSLError) else ""
    if "ALERT" in reason:
        for words, text in _ALERTS.items():
            if words in reason:
                return TrustError(text)
    if "PEER_DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return TrustError("the remote side showed no certificate")
    what = "the TLS connection is damaged" if shaken else "the remote side does not speak TLS 1.3 with us"
    return StreamError(f"{what}: {reason.replace('_', ' ').lower() or error}", before_hello=not shaken)


_UNKNOWN = "the remote side's certificate is not one that is trusted"
# X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED of openssl/x509_vfy.h.
_VERIFICATION = {
    9: "the remote side's certificate is not valid yet; check both clocks",
    10: "the remote side's certificate has expired; it needs a new one",
}
_ALERTS = {
    "EXPIRED": "the remote side refused our certificate: it has expired; make a new one (rdc keys new"
    " --force) and have it trusted there",
    "UNKNOWN_CA": "the remote side refused our certificate: it does not know it; have it trusted there"
    " (rdc keys show --pem prints it)",
    "CERTIFICATE": "the remote side refused our certificate; its log says why",
    "PROTOCOL_VERSION": "the remote side does not speak TLS 1.3",
}


READ_BYTES = 256 << 10
"""Bytes per read from the socket, and the most plaintext returned at a time."""

WRITE_BYTES = 64 << 10
"""Bytes of plaintext encrypted at a time: four full records, which must all leave before any other data."""

UNSENT_BYTES = 256 << 10
"""Encrypted bytes that may wait. A peer that causes answers (key updates) and does not read them is not read
either."""

CLOSE_SECONDS = 2.0
"""Seconds for the last bytes to leave."""


class TlsTransport:
    """Owns `sock`, a connected TCP socket, and closes it. The user first calls `shake` until it returns True,
    then `check_pin`."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool) -> None:
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            # The driver collects the messages of a session, so Nagle's algorithm would only add latency.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=server_side)
        self._server_side = server_side
        self._unsent = memoryview(b"")
        """Encrypted bytes that the kernel has not taken yet."""
        self._encrypted = 0
        """Bytes at the head of the next exchange's `outgoing` that are already encrypted. They count as
        written only after all of `_unsent` has left, so a caller may close after it has written
        everything."""
        self._arrived = b""
        self._shaken = False
        self._far_reads = True
        self._far_ended = False
        self._write_open = True
        self._closed = False
        self._failure: RdcError | None = None
        self.bytes_sent = 0
        """All bytes that the kernel took, with the handshake and the overhead of TLS records."""
        self.bytes_received = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    @property
    def events(self) -> int:
        """The events to poll the socket for, during the handshake and after it: POLLIN, POLLOUT or both.

        Records that TLS itself wants to send (answers to key updates) wait in `_unsent` without a write by
        the user. Above UNSENT_BYTES of them nothing is read, and input would end each wait at once.
        """
        events = select.POLLOUT if self._unsent else 0
        return events | (select.POLLIN if len(self._unsent) < UNSENT_BYTES else 0)

    def descriptors(self, *, reads: bool, writes: bool) -> dict[int, int]:
        # Output that TLS did not take waits behind `_unsent`, for which `events` polls.
        events = self.events if reads else self.events & ~select.POLLIN
        return {self._sock.fileno(): events} if events else {}

    # The handshake

    def shake(self) -> bool:
        """Advance the handshake without waiting. True: it is complete.

        Otherwise call it again after `events`. Raises TrustError if a side refuses the other's certificate,
        StreamError if the remote side is gone or does not speak TLS 1.3.
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
            except (OSError, ValueError) as error:
                # The alert that tells the remote side the reason.
                self._push()
                raise explained(error, shaken=self._shaken) from error
            else:
                self._shaken = True
                self._push()
                return True

    @property
    def peer_pin(self) -> str:
        """The pin of the remote side's certificate."""
        der = self._tls.getpeercert(binary_form=True)
        if der is None:
            raise TrustError("the remote side showed no certificate")
        return pin_of(der)

    @property
    def peer_expires(self) -> float:
        """Expiry of the remote side's certificate, in seconds since 1970."""
        shown = self._tls.getpeercert() or {}
        try:
            return ssl.cert_time_to_seconds(str(shown.get("notAfter")))
        except ValueError:
            return math.inf  # a date that only OpenSSL can read

    def check_pin(self, pins: Iterable[str]) -> str:
        """Return the remote side's pin, which must be one of `pins`. Raises TrustError."""
        pin = self.peer_pin
        if pin not in pins:
            raise TrustError(f"the remote side showed the certificate {pin}, which is not trusted")
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
                # Part of a record arrived: a slow line is not a silent one.
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
        """Write whole records; the number of bytes of `outgoing` that are gone."""
        self._push()
        if not self._far_reads:
            return len(outgoing)
        if self._unsent:
            return 0
        if not self._encrypted and outgoing:
            try:
                self._encrypted = self._tls.write(outgoing[:WRITE_BYTES])
            except (OSError, ValueError):
                # OpenSSL writes nothing after an alert of its own; a read reports that alert.
                self._far_reads = False
                return len(outgoing)
            self._push()
            if self._unsent:
                return 0
        written = min(self._encrypted, len(outgoing))
        self._encrypted -= written
        return written

    def _push(self) -> None:
        """Pass encrypted bytes to the kernel, as many as it takes."""
        if self._out.pending:
            self._unsent = memoryview(bytes(self._unsent) + self._out.read())
        while self._unsent:
            try:
                sent = self._sock.send(self._unsent)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                # EPIPE, ECONNRESET: the remote side has stopped reading.
                self._far_reads = False
                self._unsent = memoryview(b"")
                self._encrypted = 0
                return
            self.bytes_sent += sent
            self._unsent = self._unsent[sent:]

    def _pull(self) -> bool:
        """Take received bytes from the kernel. False: none has arrived."""
        if self._far_ended or len(self._unsent) >= UNSENT_BYTES:
            return False
        try:
            data = self._sock.recv(READ_BYTES if self._shaken else HANDSHAKE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            # A reset connection ends the stream as a close does.
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
        """Plaintext of the complete records. An error is raised only after the data before it is taken."""
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
            # The stream ended without TLS's own notice. The protocol knows whether it is complete.
            self._far_ended = True
        except (OSError, ValueError) as error:
            self._failure = explained(error, shaken=self._shaken)
            self._far_reads = False
        self._push()
        return b"".join(parts)

    def close_write(self) -> None:
        if not self._write_open:
            return
        self._write_open = False
        if self._shaken and self._far_reads and self._failure is None:
            # Undecoded records would make the closing call fail and would be lost.
            while part := self._decrypt():
                self._arrived += part
            with contextlib.suppress(OSError, ValueError):
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
        """End this side's direction and drop incoming bytes for some seconds. A close with unread bytes would
        make the kernel reset the connection, and the remote side might never read the last message."""
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
        """Close this process's descriptor without a message: the connection continues in a child process, or
        must end silently. Raises nothing."""
        self._closed = True
        self._write_open = False
        with contextlib.suppress(OSError):
            self._sock.close()


# Dialling a daemon: a TCP connection and the TLS handshake within one deadline.


def connect(host: str, port: int, ring: KeyRing, peers: Sequence[Certificate]) -> TlsTransport:
    """Return a connection to the rdc daemon at HOST:PORT that has shown one of the certificates `peers`.

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
