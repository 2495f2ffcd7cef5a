"""TLS 1.3 over TCP as a transport: both sides show a certificate, and each must know the other's beforehand.

The TLS engine works in memory (ssl.MemoryBIO) and this class moves its bytes: so every wait has one deadline,
every byte on the wire is counted, and a connection whose handshake is done can be handed on by fork.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import ssl
import time
from collections.abc import Iterable

from rdc.errors import RdcError, StreamError, TrustError
from rdc.limits import HANDSHAKE_BYTES
from rdc.transport.base import Exchange, timed_out
from rdc.transport.keys import pin_of
from rdc.transport.tls_trust import explained

__all__ = ["TlsTransport"]

READ_BYTES = 256 << 10
"""One read from the socket, and plaintext handed out at a time at most."""

WRITE_BYTES = 64 << 10
"""Plaintext encrypted at a time: four full records, which then must all leave before anything else."""

UNSENT_BYTES = 256 << 10
"""Encrypted bytes that wait at most: a peer that makes us answer (key updates) and does not read is not read
either."""

CLOSE_SECONDS = 2.0
"""How long to try to get the last bytes out."""


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
                raise explained(error, shaken=self._shaken) from error
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

    @property
    def peer_expires(self) -> float:
        """When the certificate that the far side has shown expires, in seconds since 1970."""
        shown = self._tls.getpeercert() or {}
        try:
            return ssl.cert_time_to_seconds(str(shown.get("notAfter")))
        except ValueError:
            return math.inf  # a date that only OpenSSL can read

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
            self._failure = explained(error, shaken=self._shaken)
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
