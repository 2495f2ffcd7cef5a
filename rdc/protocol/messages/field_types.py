"""Types of fields that several messages share, each with its codec."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.limits.chunks import TREE_HEIGHT
from rdc.limits.wire import (
    FILES_PER_MESSAGE,
    FURTHER_BYTES,
    MESSAGE_BYTES,
    NODES_PER_MESSAGE,
    ORDINAL_LIMIT,
    TIER_NODES,
)
from rdc.protocol.messages.rows import ALL_GROUPS
from rdc.protocol.wire.column_fields import Gaps
from rdc.protocol.wire.fields import Blob, Integer, Member, Text, Total
from rdc.protocol.wire.time_fields import Time
from rdc.typed import Annotated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = [
    "Code",
    "Count",
    "DIGEST_BYTES",
    "Digest",
    "Failure",
    "Files",
    "Further",
    "GroupSet",
    "Level",
    "Line",
    "Mtime",
    "Nodes",
    "Ordinal",
    "REFERENCE_WIDTHS",
    "ROOT_BYTES",
    "Root",
    "Size",
    "TierNodes",
    "TotalSize",
    "Width",
]


ROOT_BYTES = 32
DIGEST_BYTES = 32
REFERENCE_WIDTHS = (4, 32)

Ordinal: TypeAlias = Annotated[int, Integer(highest=ORDINAL_LIMIT)]
Size: TypeAlias = Annotated[int, Integer()]
TotalSize: TypeAlias = Annotated[int, Total()]
"""Bytes of several files together."""
Count: TypeAlias = Annotated[int, Integer()]
Root: TypeAlias = Annotated[bytes, Blob(ROOT_BYTES, ROOT_BYTES)]
Digest: TypeAlias = Annotated[bytes, Blob(DIGEST_BYTES, DIGEST_BYTES)]
Further: TypeAlias = Annotated[bytes, Blob(0, FURTHER_BYTES)]
"""The first bytes of a digest, or b"" for none."""
Files: TypeAlias = Annotated[tuple[int, ...], Gaps(FILES_PER_MESSAGE, ORDINAL_LIMIT)]
Nodes: TypeAlias = Annotated[tuple[int, ...], Gaps(NODES_PER_MESSAGE, ORDINAL_LIMIT)]
Line: TypeAlias = Annotated[str, Text(MESSAGE_BYTES)]
Code: TypeAlias = Annotated[ExitCode, Member(ExitCode)]
Failure: TypeAlias = Annotated[ExitCode, Member(ExitCode, without=(ExitCode.OK,))]
TierNodes: TypeAlias = Annotated[tuple[int, ...], Gaps(TIER_NODES, ORDINAL_LIMIT)]
GroupSet: TypeAlias = Annotated[int, Integer(1, ALL_GROUPS)]
Width: TypeAlias = Annotated[int, Integer(*REFERENCE_WIDTHS)]
Mtime: TypeAlias = Annotated[int | None, Time(optional=True)]
"""Nanoseconds; None for the listed mtime. A file that changed after its listing is sent with its new
mtime."""
Level: TypeAlias = Annotated[int, Integer(0, TREE_HEIGHT)]
