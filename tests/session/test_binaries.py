"""The forms of filtered content on the wire are inverse to each other."""

from __future__ import annotations

import random
from array import array

import pytest

from rdc.errors import ProtocolError
from rdc.protocol.messages import Code, Data, Table
from rdc.session.binaries import RangeOffsets, decode, encode

CALLS = b"\xe8\x01\0\0\0" * 100
TABLE = b"".join((0x2A3410 + 16 * row).to_bytes(8, "little") for row in range(200))


@pytest.mark.parametrize(
    ("content", "kind"), [(CALLS, Code), (TABLE, Table), (random.Random(1).randbytes(500), Data)]
)
def test_what_is_encoded_is_decoded(content: bytes, kind: type) -> None:
    rows = array("Q", (16, 200, 1_000, len(content) - 200))
    message = encode(3, bytearray(content), rows)
    assert type(message) is kind
    assert message.file == 3
    assert bytes(decode(message, RangeOffsets(rows))) == content


def test_literals_that_nobody_requested_are_refused() -> None:
    with pytest.raises(ProtocolError, match="file 3 that were not asked for"):
        decode(Data(3, b"content"), None)
