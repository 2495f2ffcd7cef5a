"""Frames: the length, type and round number around every message."""

from __future__ import annotations

from rdc.limits import FRAME_BYTES, ROUND_LIMIT
from rdc.protocol.byte_queue import ByteQueue
from rdc.protocol.varint import decode_varint, encode_varint
from rdc.records import dataclass

__all__ = ["Frame", "FrameReader", "frame_head"]


@dataclass(frozen=True, slots=True)
class Frame:
    kind: int
    """Type byte; whether it is known is for the message registry to say."""
    round: int
    payload: bytes | memoryview
    size: int
    """Bytes of the whole frame, header included."""


def frame_head(kind: int, round_number: int, length: int) -> bytes:
    """The bytes before a payload of `length` bytes: varint length, u8 type, varint round."""
    if length < 0x80 and round_number < 0x80:
        return bytes((length, kind, round_number))
    return b"%b%c%b" % (encode_varint(length), kind, encode_varint(round_number))


SHORT_HEAD_BYTES = 3

HEAD_BYTES = 9
"""Bytes of the longest head that is within the limits: a length of 3, a type of 1, a round of 5."""


class FrameReader:
    """Cuts a byte stream that arrives in any pieces back into frames.

    It holds at most one incomplete frame (FRAME_BYTES and a head) beside what one feed() brought: a length
    past the limit is refused when its header is seen, before its payload is waited for.
    """

    def __init__(self) -> None:
        self._queue = ByteQueue()

    def __len__(self) -> int:
        """Bytes held that are not part of a frame returned."""
        return len(self._queue)

    def feed(self, data: bytes | memoryview) -> None:
        self._queue.feed(data)

    def next(self) -> Frame | None:
        """The next whole frame, or None when more bytes are needed; ProtocolError past a limit."""
        queue = self._queue
        if not len(queue):
            return None
        buffer = queue.head(HEAD_BYTES)
        if len(buffer) > SHORT_HEAD_BYTES:
            # Short frames of the first rounds, which most are.
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
