"""How a session opens: greetings, what it is about, and how the tree is to be described."""

from __future__ import annotations

from enum import IntEnum

from rdc.limits import SOFTWARE_BYTES
from rdc.model.kept import Kept
from rdc.model.sync import SyncOptions
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.field_types import Failure, Line
from rdc.protocol.fields import Blob, Flag, Integer, KeptCode, Member, Options, Path, Text
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["Describe", "Hello", "Open", "Opened", "PROTOCOL_VERSION", "Refused", "Role"]


PROTOCOL_VERSION = 6
"""Sent in the preamble and in Hello. Any change that an older rdc would not understand raises it."""

PARAMETER_ID_BYTES = 32
SECRET_BYTES = 16


class Role(IntEnum):
    """Which end of the copy a side is."""

    SOURCE = 0
    DESTINATION = 1

    @property
    def other(self) -> Role:
        return Role(1 - self)


@wire(0, keys=("v", "s", "p"))
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Hello(WireMessage):
    """Both sides, first, in the preamble's raw block; unknown keys are ignored."""

    version: Annotated[int, Integer(0, 255)]
    """The protocol's, as in the preamble."""
    software: Annotated[str, Text(SOFTWARE_BYTES)]
    """Name and version of the program, to be shown only."""
    params: Annotated[bytes, Blob(PARAMETER_ID_BYTES, PARAMETER_ID_BYTES)]
    """Id of all chunking and signature parameters: roots and records compare only under the same."""


@wire(1)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Open(WireMessage):
    """Dialler, right after its Hello without waiting: what the session is about."""

    role: Annotated[Role, Member(Role)]
    """The one the answerer takes."""
    path: Annotated[bytes, Path()]
    """The answerer's root, as its user would write it; b'' is the directory it was started in."""
    secret: Annotated[bytes, Blob(SECRET_BYTES, SECRET_BYTES)]
    """Key of the short references in this session."""
    options: Annotated[SyncOptions, Options()]


@wire(2)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Opened(WireMessage):
    """Answerer, after its Hello: it takes the role."""


@wire(3)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refused(WireMessage):
    """Either side, any time: the session is over, for this reason."""

    code: Failure
    message: Line


@wire(24)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Describe(WireMessage):
    """D: how S is to describe its tree; first of all, and once more where the manifest does not pay."""

    whole: Annotated[bool, Flag()]
    """The listing of every directory, as it is walked; otherwise only its Manifest, to be looked into."""
    kept: Annotated[Kept, KeptCode()]
    """What D keeps: what counts in the manifest's digests, less what S says in Start that it has not."""
