"""Where the content of new files may already be: many roots in one digest, and traits to find kin by."""

from __future__ import annotations

from typing import Annotated

from rdc.limits import FILES_PER_MESSAGE
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.field_types import Files, Root
from rdc.protocol.fields import Blob, Column
from rdc.records import dataclass

__all__ = ["DigestAnswer", "DigestRequest", "TraitsAnswer", "TraitsRequest"]

SHORT_ROOT_BYTES = 8
TRAITS_BYTES = 9


@wire(40)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DigestRequest(WireMessage):
    """D: one digest over the roots of these files."""

    files: Files


@wire(41)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DigestAnswer(WireMessage):
    """S: the oldest DigestRequest's files but those that failed, which came as FileFailed before."""

    digest: Root
    """BLAKE3 of their 32-byte roots, one behind the other in the order of the request."""


@wire(42)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraitsRequest(WireMessage):
    """D: short references of the roots, and the traits, of these files."""

    files: Files


@wire(43)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraitsAnswer(WireMessage):
    """S: some or all files of the oldest TraitsRequest; those that failed come as FileFailed."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    roots: Annotated[bytes, Blob(SHORT_ROOT_BYTES, SHORT_ROOT_BYTES * FILES_PER_MESSAGE)]
    """8 bytes a file under the session's key."""
    traits: Annotated[bytes, Blob(TRAITS_BYTES, TRAITS_BYTES * FILES_PER_MESSAGE)]
    """9 bytes a file; all ones for a file without features."""

    def root(self, row: int) -> bytes:
        return self.roots[row * SHORT_ROOT_BYTES : (row + 1) * SHORT_ROOT_BYTES]

    def traits_of(self, row: int) -> bytes:
        """b'' for a file without features."""
        traits = self.traits[row * TRAITS_BYTES : (row + 1) * TRAITS_BYTES]
        return b"" if traits == NO_TRAITS else traits

    def check(self) -> str | None:
        count = len(self.files)
        if (len(self.sizes), len(self.roots), len(self.traits)) != (
            count,
            count * SHORT_ROOT_BYTES,
            count * TRAITS_BYTES,
        ):
            return f"columns: they are not of {count} files"
        return None


NO_TRAITS = b"\xff" * TRAITS_BYTES
