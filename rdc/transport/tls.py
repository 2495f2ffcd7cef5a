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

from rdc.errors import RdcError, StreamError, TrustError
from rdc.limits.sessions import HANDSHAKE_BYTES
from rdc.transport.base import Exchange, timed_out
from rdc.transport.keys import pin_of
from rdc.transport.tls_trust import explained

__all__ = ["TlsTransport"]

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

        Otherwise call it again after `events`. TrustError if a side refuses the other's certificate,
        StreamError if the far side is gone or does not speak TLS 1.3.
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
                # The alert that tells the far side the reason.
                self._push()
                raise explained(error, shaken=self._shaken) from error
            else:
                self._shaken = True
                self._push()
                return True

    @property
    def peer_pin(self) -> str:
        """The pin of the far side's certificate."""
        der = self._tls.getpeercert(binary_form=True)
        if der is None:
            raise TrustError("the far side showed no certificate")
        return pin_of(der)

    @property
    def peer_expires(self) -> float:
        """Expiry of the far side's certificate, in seconds since 1970."""
        shown = self._tls.getpeercert() or {}
        try:
            return ssl.cert_time_to_seconds(str(shown.get("notAfter")))
        except ValueError:
            return math.inf  # a date that only OpenSSL can read

    def check_pin(self, pins: Iterable[str]) -> str:
        """The far side's pin, which must be one of `pins`. Raises TrustError."""
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
                # EPIPE, ECONNRESET: the far side has stopped reading.
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
        make the kernel reset the connection, and the far side might never read the last message."""
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
