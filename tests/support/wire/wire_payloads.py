"""Payloads of messages, decoded and encoded without checks."""

from __future__ import annotations

from array import array
from typing import Any

import msgpack

from rdc.limits import FRAME_BYTES
from rdc.model.entries import Kind, Listing
from rdc.protocol import messages
from rdc.protocol.wire.fields import decode_varint, encode_varint

__all__ = ["LISTING", "PART", "joined", "parted"]

LISTING = Listing(
    (b"a", b"b", b"c"),
    bytes((Kind.FILE, Kind.SYMLINK, Kind.DIRECTORY)),
    array("H", (0o644, 0o777, 0o755)),
    array("Q", (5, 0, 0)),
    array("q", (-1, 0, 1)),
    array("I", (0, 1, 2)),
    array("I", (3, 4, 0xFFFF_FFFF)),
    (b"../x",),
)
PART = messages.ListingPart(0, b"", 0, True, LISTING)


def parted(message: messages.Message) -> tuple[Any, bytes | None]:
    """The payload's fields, and the content behind them where there is any."""
    payload = messages.encode(message)
    if not isinstance(
        message,
        messages.Data
        | messages.Code
        | messages.FileBatch
        | messages.Correction
        | messages.Targets
        | messages.Table,
    ):
        return msgpack.unpackb(payload), None
    found = decode_varint(payload, 0, FRAME_BYTES, "a length")
    assert found is not None
    length, start = found
    return msgpack.unpackb(payload[start : start + length]), payload[start + length :]


def joined(fields: object, content: bytes | None) -> bytes:
    """The payload as a sender without checks would make it."""
    head = msgpack.packb(fields)
    return bytes(head) if content is None else encode_varint(len(head)) + head + content
