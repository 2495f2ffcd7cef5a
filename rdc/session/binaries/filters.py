"""The interface of the filters for x86 code and number tables; the rest of the session imports only this.

- `looks_like` tells whether a file is x86 code that gains from masking.
- `mask` and its variants overwrite the displacements of x86 branches before blocks are matched. Code that
  only moved is found then, because its displacements no longer differ.
- `masked_blocks`, `cut_displacements` and `Displacements` do this for check blocks, and put the right
  displacements back afterwards.
- `encode` and `decode` transform literals so that they compress better. They are inverses.

`RangeOffsets` tells where in a file the bytes of a message belong: the filters depend on it.
"""

from __future__ import annotations

from rdc.errors import ProtocolError
from rdc.protocol.messages.registry import Code, Data, Table
from rdc.session.binaries.number_tables import decode_table, encode_table
from rdc.session.binaries.range_offsets import RangeOffsets
from rdc.session.binaries.x86_branches import decode_branches, encode_branches
from rdc.session.binaries.x86_check_blocks import (
    MASK_BYTES,
    Displacements,
    cut_displacements,
    displacement_counts,
    masked_blocks,
)
from rdc.session.binaries.x86_masking import (
    LOOK_AHEAD,
    LOOK_BACK,
    looks_like,
    mask,
    mask_ranges,
    mask_ranges_into,
    masked_reader,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

__all__ = [
    "LOOK_AHEAD",
    "LOOK_BACK",
    "MASK_BYTES",
    "Displacements",
    "RangeOffsets",
    "cut_displacements",
    "decode",
    "displacement_counts",
    "encode",
    "looks_like",
    "mask",
    "mask_ranges",
    "mask_ranges_into",
    "masked_blocks",
    "masked_reader",
]


def encode(file: int, content: bytearray, offsets: array[int]) -> Data | Code | Table:
    """Returns literals as the message that compresses best; may change `content` in place.

    `offsets`: rows (offset in the file, length) of the pieces of `content`.
    """
    if encode_branches(content, offsets):
        return Code(file, memoryview(content))
    if stride := encode_table(content, offsets):
        return Table(file, stride, memoryview(content))
    return Data(file, memoryview(content))


def decode(message: Data | Code | Table, offsets: RangeOffsets | None) -> bytes | bytearray | memoryview:
    """Returns the literals of a message as the file has them, and advances `offsets` past them.

    Raises ProtocolError if `offsets` is None: no literals were requested.
    """
    if offsets is None:
        raise ProtocolError(f"literals of file {message.file} that were not asked for")
    if isinstance(message, Code):
        return decode_branches(message.payload, offsets.take(len(message.payload)))
    if isinstance(message, Table):
        return decode_table(message.payload, offsets.take(len(message.payload)), message.stride)
    offsets.skip(len(message.payload))
    return message.payload
