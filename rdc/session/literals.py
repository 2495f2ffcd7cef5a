"""The bytes of ranges as they arrive: plain, as machine code or as a table, as the source says."""

from __future__ import annotations

from rdc.errors import ProtocolError
from rdc.protocol.messages import Code, Table
from rdc.session.code import restored
from rdc.session.tables import untabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.protocol.messages import Data
    from rdc.session.code import Places

__all__ = ["literals_of"]


def literals_of(message: Data | Code | Table, places: Places | None) -> bytes | bytearray | memoryview:
    """What the file has there. `places`: where the bytes that come belong, None where none were asked for,
    which is a ProtocolError."""
    if places is None:
        raise ProtocolError(f"literals of file {message.file} that were not asked for")
    if isinstance(message, Code):
        return restored(message.payload, places.take(len(message.payload)))
    if isinstance(message, Table):
        return untabled(message.payload, places.take(len(message.payload)), message.stride)
    places.skip(len(message.payload))
    return message.payload
