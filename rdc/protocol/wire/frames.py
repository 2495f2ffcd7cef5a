"""Frames: a length, a type and a round number before each message."""

from __future__ import annotations

from rdc.limits.wire import FRAME_BYTES, ROUND_LIMIT
from rdc.protocol.wire.byte_queue import ByteQueue
from rdc.protocol.wire.varint import decode_varint, encode_varint
from rdc.records import dataclass

__all__ = ["Frame", "FrameReader", "frame_head"]


@dataclass(frozen=True, slots=True)
class Frame:
    kind: int
    """Type byte; the message registry decides whether it is known."""
    round: int
    payload: bytes | memoryview
    size: int
    """Bytes of the whole frame, with its head."""


def frame_head(kind: int, round_number: int, length: int) -> bytes:
    """The head of a payload of `length` bytes: varint length, u8 type, varint round."""
    if length < 0x80 and round_number < 0x80:
        return bytes((length, kind, round_number))
    return b"%b%c%b" % (encode_varint(length), kind, encode_varint(round_number))


SHORT_HEAD_BYTES = 3

HEAD_BYTES = 9
"""Bytes of the longest head within the limits: 3 of length, 1 of type, 5 of round."""


class FrameReader:
    """Splits a byte stream, which arrives in any pieces, into frames.

    It holds at most one incomplete frame (FRAME_BYTES and a head) besides the last feed(). A length above the
    limit is refused as soon as its head is complete.
    """

    def __init__(self) -> None:
        self._queue = ByteQueue()

    def __len__(self) -> int:
        """Bytes held that belong to no returned frame."""
        return len(self._queue)

    def feed(self, data: bytes | memoryview) -> None:
        self._queue.feed(data)

    def next(self) -> Frame | None:
        """The next whole frame, or None if more bytes are needed. ProtocolError above a limit."""
        queue = self._queue
        if not len(queue):
            return None
        buffer = queue.head(HEAD_BYTES)
        if len(buffer) > SHORT_HEAD_BYTES:
            # The fast path: short frames of early rounds, which are the most frequent.
            length, kind, round_number = buffer[0], buffer[1], buffer[2]
            end = SHORT_HEAD_BYTES + length
            if length < 0x80 and round_number < 0x80 and end <= len(queue):
                return Frame(kind, round_number, memoryview(queue.take(end))[SHORT_HEAD_BYTES:], end)
        head = decode_varint(buffer, 0, FRAME_BYTES, "a frame length")
        if head is None:
            return None
        length, position = head
        if position == len(buffer):
            return None
        kind = buffer[position]
        head = decode_varint(buffer, position + 1, ROUND_LIMIT, "a round number")
        if head is None:
            return None
        round_number, position = head
        end = position + length
        if len(queue) < end:
            return None
        return Frame(kind, round_number, memoryview(queue.take(end))[position:], end)
