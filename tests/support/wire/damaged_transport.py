"""A transport that damages one end's input: it ends the input early, or changes single bits."""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError
from rdc.transport.base import Exchange, Transport

__all__ = ["DamagedTransport"]

PATIENCE = 0.1
"""Seconds without a byte after which a stream with changed bits is given up: a changed length can make both
ends wait for the other."""


class DamagedTransport:
    """A transport that behaves as `inner` until the damage. `cut`: bytes received before the stream ends both
    ways; `flip`: number of a received bit that arrives changed."""

    def __init__(self, inner: Transport, *, cut: int | None = None, flip: int | None = None) -> None:
        self.received = 0
        self.damaged = False
        """True if a byte was damaged."""
        self._inner = inner
        self._cut = cut
        self._flip = flip
        self._ended = False

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        if self._ended:
            return Exchange(len(outgoing), b"", want_input)
        patience = PATIENCE if timeout is None and self._flip is not None else timeout
        try:
            moved = self._inner.exchange(outgoing, want_input, patience)
        except RdcError as error:
            if error.code is not ExitCode.TIMEOUT:
                raise
            return self._end(len(outgoing))
        data, start = moved.received, self.received
        self.received += len(data)
        if self._cut is not None and self.received >= self._cut:
            data = data[: self._cut - start]
            end = self._end(moved.written)
            return Exchange(end.written, data, end.eof and not data)
        if self._flip is not None and start <= self._flip // 8 < self.received:
            self.damaged = True
            changed = bytearray(data)
            changed[self._flip // 8 - start] ^= 1 << self._flip % 8
            data = bytes(changed)
        return Exchange(moved.written, data, moved.eof)

    def _end(self, written: int) -> Exchange:
        self._ended = self.damaged = True
        self._inner.close()
        return Exchange(written, b"", True)

    def close_write(self) -> None:
        self._inner.close_write()

    def close(self) -> None:
        self._inner.close()
