"""Every message of the protocol: its fields, their form on the wire, and its type number.

A field's annotation carries its codec; decode() checks everything once and returns a frozen value that the
rest of rdc trusts. "S" is the source's side, "D" the destination's, whoever of them dialled. The messages
are declared by phase: opening, description, comparison, bundles, content, account, turns.
"""

from __future__ import annotations

from rdc.protocol.account import Done, Items, Notice, Plan, Progress
from rdc.protocol.bundles import BundleAnswer, BundleRequest
from rdc.protocol.codec import decode_payload, encode_parts, encode_payload, registered
from rdc.protocol.comparison import (
    BlockAnswer,
    BlockRequest,
    NodeAnswer,
    NodeRequest,
    RootAnswer,
    RootRequest,
    TreeAnswer,
    TreeRequest,
)
from rdc.protocol.content import (
    Code,
    Correction,
    Data,
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Literals,
    RangeRequest,
    Table,
    Targets,
)
from rdc.protocol.description import (
    EntryAttributes,
    HardLinks,
    ListingEnd,
    ListingPart,
    Manifest,
    MountPoints,
    RowsPart,
    RowsRequest,
    Start,
    TierAnswer,
    TierRequest,
    TopTier,
)
from rdc.protocol.opening import PROTOCOL_VERSION, Describe, Hello, Open, Opened, Refused, Role
from rdc.protocol.origins import NO_TRAITS, DigestAnswer, DigestRequest, TraitsAnswer, TraitsRequest
from rdc.protocol.turns import Changed, Condition, Follow, Renamed, SourceState, Turn, TurnEnd, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    import msgpack

__all__ = [
    "NO_TRAITS",
    "PROTOCOL_VERSION",
    "BlockAnswer",
    "BlockRequest",
    "BundleAnswer",
    "BundleRequest",
    "Changed",
    "Code",
    "Condition",
    "Correction",
    "Data",
    "Describe",
    "DigestAnswer",
    "DigestRequest",
    "Done",
    "EntryAttributes",
    "FileBatch",
    "FileEnd",
    "FileFailed",
    "FileRequest",
    "Follow",
    "HardLinks",
    "Hello",
    "Items",
    "ListingEnd",
    "ListingPart",
    "Literals",
    "Manifest",
    "Message",
    "MountPoints",
    "NodeAnswer",
    "NodeRequest",
    "Notice",
    "Open",
    "Opened",
    "Plan",
    "Progress",
    "RangeRequest",
    "Refused",
    "Renamed",
    "Role",
    "RootAnswer",
    "RootRequest",
    "RowsPart",
    "RowsRequest",
    "SourceState",
    "Start",
    "Table",
    "Targets",
    "TierAnswer",
    "TierRequest",
    "TraitsAnswer",
    "TraitsRequest",
    "TopTier",
    "TreeAnswer",
    "TreeRequest",
    "Turn",
    "TurnEnd",
    "Watch",
    "decode",
    "encode",
    "encode_parts",
    "message_kinds",
]

Message: TypeAlias = (
    Hello
    | FileBatch
    | BlockRequest
    | BlockAnswer
    | BundleRequest
    | BundleAnswer
    | Describe
    | Manifest
    | MountPoints
    | HardLinks
    | EntryAttributes
    | Literals
    | Correction
    | Targets
    | Table
    | Code
    | TierRequest
    | TierAnswer
    | TopTier
    | RowsRequest
    | RowsPart
    | Open
    | Opened
    | Refused
    | ListingPart
    | ListingEnd
    | RootRequest
    | RootAnswer
    | TreeRequest
    | DigestRequest
    | DigestAnswer
    | TraitsRequest
    | TraitsAnswer
    | TreeAnswer
    | NodeRequest
    | NodeAnswer
    | RangeRequest
    | FileRequest
    | Data
    | FileEnd
    | FileFailed
    | Notice
    | Items
    | Progress
    | Plan
    | Done
    | Start
    | Watch
    | Turn
    | Renamed
    | Changed
    | TurnEnd
    | Follow
    | Condition
)


def message_kinds() -> dict[int, type[Message]]:
    """Type number to class, for every message."""
    return registered()  # type: ignore[return-value] # all that are declared are Messages


def encode(message: Message, packer: msgpack.Packer | None = None) -> bytes:
    """The payload. ValueError when the message breaks the protocol's bounds: the caller's mistake."""
    return encode_payload(message, packer)


def decode(kind: int, payload: bytes | memoryview) -> Message:
    """The message, every field checked. Raises ProtocolError that names message and field."""
    return decode_payload(kind, payload)  # type: ignore[return-value] # as above
