"""Messages that find local copies of new files: one digest over many roots, and traits to find similar
files."""

from __future__ import annotations

from rdc.limits.wire import FILES_PER_MESSAGE
from rdc.protocol.messages.field_types import Files, Root
from rdc.protocol.wire.codec import WireMessage, wire
from rdc.protocol.wire.column_fields import Column
from rdc.protocol.wire.fields import Blob
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["COARSE_BELOW", "COARSE_FROM", "DigestAnswer", "DigestRequest", "TraitsAnswer", "TraitsRequest"]

SHORT_ROOT_BYTES = 8
TRAITS_BYTES = 9

COARSE_FROM, COARSE_BELOW = 24 << 10, 64 << 10
"""Sizes of files with coarse traits: from COARSE_FROM to below COARSE_BELOW. Larger files have other
features. Smaller ones are at most three eighths of such a larger file."""


@wire(40)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DigestRequest(WireMessage):
    """D: asks for one digest over the roots of these files."""

    files: Files


@wire(41)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DigestAnswer(WireMessage):
    """S: the digest of the oldest DigestRequest's files, except those that failed in a FileFailed before."""

    digest: Root
    """BLAKE3 of their 32-byte roots, concatenated in the order of the request."""


@wire(42)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraitsRequest(WireMessage):
    """D: asks for short references of the roots of these files, and for their traits."""

    files: Files


@wire(43)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraitsAnswer(WireMessage):
    """S: some or all files of the oldest TraitsRequest. A file that failed comes as FileFailed instead."""

    files: Files
    sizes: Annotated[tuple[int, ...], Column(FILES_PER_MESSAGE)]
    roots: Annotated[bytes, Blob(SHORT_ROOT_BYTES, SHORT_ROOT_BYTES * FILES_PER_MESSAGE)]
    """8 bytes per file under the session's key."""
    traits: Annotated[bytes, Blob(TRAITS_BYTES, TRAITS_BYTES * FILES_PER_MESSAGE)]
    """9 bytes per file; all ones for a file without features."""
    coarse: Annotated[bytes, Blob(0, TRAITS_BYTES * FILES_PER_MESSAGE)] = b""
    """Traits in the form of a larger file, for each file of COARSE_FROM to COARSE_BELOW - 1 bytes."""

    def root(self, row: int) -> bytes:
        return self.roots[row * SHORT_ROOT_BYTES : (row + 1) * SHORT_ROOT_BYTES]

    def traits_of(self, row: int) -> bytes:
        """The traits of a file; b'' for a file without features."""
        traits = self.traits[row * TRAITS_BYTES : (row + 1) * TRAITS_BYTES]
        return b"" if traits == NO_TRAITS else traits

    def coarse_traits(self) -> dict[int, bytes]:
        """Coarse traits by row, for rows that have them."""
        rows = [row for row, size in enumerate(self.sizes) if COARSE_FROM <= size < COARSE_BELOW]
        cut = (self.coarse[at : at + TRAITS_BYTES] for at in range(0, len(self.coarse), TRAITS_BYTES))
        return {row: traits for row, traits in zip(rows, cut, strict=True) if traits != NO_TRAITS}

    def check(self) -> str | None:
        count = len(self.files)
        if (len(self.sizes), len(self.roots), len(self.traits)) != (
            count,
            count * SHORT_ROOT_BYTES,
            count * TRAITS_BYTES,
        ):
            return f"columns: they are not of {count} files"
        near = sum(COARSE_FROM <= size < COARSE_BELOW for size in self.sizes)
        if len(self.coarse) != near * TRAITS_BYTES:
            return f"coarse: {len(self.coarse)} bytes for {near} files"
        return None


NO_TRAITS = b"\xff" * TRAITS_BYTES
