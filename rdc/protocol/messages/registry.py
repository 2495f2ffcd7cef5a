"""Every message of the protocol with its type number.

The annotation of a field carries its codec. decode() checks everything once and returns a frozen value that
the rest of rdc trusts. S is the source's side and D the destination's, whichever of them dialled. The modules
declare the messages by phase: opening, description, comparison, bundles, content, account, turns.
"""

from __future__ import annotations

from rdc.protocol.messages.account import Done, Items, Landed, Notice, Plan, Progress, Removed
from rdc.protocol.messages.bundles import BundleAnswer, BundleRequest
from rdc.protocol.messages.comparison import (
    BlockAnswer,
    BlockRequest,
    NodeAnswer,
    NodeRequest,
    RootAnswer,
    RootRequest,
    TreeAnswer,
    TreeRequest,
)
from rdc.protocol.messages.content import (
    Code,
    Correction,
    Data,
    FileBatch,
    FileEnd,
    FileFailed,
    FileRequest,
    Holes,
    Literals,
    RangeRequest,
    Resized,
    Table,
    Targets,
)
from rdc.protocol.messages.description import (
    EntryAttributes,
    HardLinks,
    ListingEnd,
    ListingPart,
    Manifest,
    MountPoints,
    Owners,
    RowsPart,
    RowsRequest,
    Start,
    TierAnswer,
    TierRequest,
    TopTier,
)
from rdc.protocol.messages.opening import Describe, Hello, Open, Opened, Refused, Role, Rules, Selected
from rdc.protocol.messages.origins import NO_TRAITS, DigestAnswer, DigestRequest, TraitsAnswer, TraitsRequest
from rdc.protocol.messages.turns import Changed, Condition, Follow, Renamed, SourceState, Turn, TurnEnd, Watch
from rdc.protocol.wire.codec import decode_payload, encode_parts, encode_payload, registered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    import msgpack

__all__ = [
    "NO_TRAITS",
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
    "Holes",
    "Items",
    "Landed",
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
    "Owners",
    "Plan",
    "Progress",
    "RangeRequest",
    "Refused",
    "Removed",
    "Renamed",
    "Resized",
    "Role",
    "RootAnswer",
    "RootRequest",
    "RowsPart",
    "RowsRequest",
    "Rules",
    "Selected",
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
    | Owners
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
    | Rules
    | Selected
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
    | Resized
    | Holes
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
    | Landed
    | Removed
)


def message_kinds() -> dict[int, type[Message]]:
    """Type number to class, for every message."""
    return registered()  # type: ignore[return-value] # all that are declared are Messages


def encode(message: Message, packer: msgpack.Packer | None = None) -> bytes:
    """The payload. ValueError if the message exceeds the protocol's limits, which is the caller's mistake."""
    return encode_payload(message, packer)


def decode(kind: int, payload: bytes | memoryview) -> Message:
    """The message, with every field checked. ProtocolError names the message and the field."""
    return decode_payload(kind, payload)  # type: ignore[return-value] # as above
