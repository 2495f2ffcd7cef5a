"""Bundles: many changed files that are described together and compared as one file."""

from __future__ import annotations

from rdc.limits.chunks import BLOCK_SIZE_MAX
from rdc.limits.sessions import BUNDLE_BYTES, BUNDLE_CHUNKS, BUNDLE_FILES
from rdc.limits.wire import FRAME_BYTES, ORDINAL_LIMIT
from rdc.protocol.messages.comparison import LEAF_WIDTH, SHORTEN
from rdc.protocol.messages.field_types import Digest, Ordinal
from rdc.protocol.wire.codec import WireMessage, wire
from rdc.protocol.wire.column_fields import Column, Gaps
from rdc.protocol.wire.fields import Blob, Integer
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["BUNDLE_BLOCK_MIN", "BundleAnswer", "BundleRequest"]

BUNDLE_BLOCK_MIN = 256
"""Bytes of the smallest block. The fingerprints of a whole bundle then fit one message, even those of short
files, whose blocks are a quarter as long."""

KEYED_WIDTHS = (4, 8)

_FINGERPRINTS = (BUNDLE_BYTES * SHORTEN // BUNDLE_BLOCK_MIN + 2 * BUNDLE_FILES) * LEAF_WIDTH


@wire(44)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BundleRequest(WireMessage):
    """D: asks for the description of these files, as listed, as one bundle."""

    bundle: Ordinal
    """The bundle's number from now on: bundles are numbered after all entries."""
    files: Annotated[tuple[int, ...], Gaps(BUNDLE_FILES, ORDINAL_LIMIT)]
    width: Annotated[int, Integer(*KEYED_WIDTHS)]
    """Bytes of a chunk's reference."""
    block: Annotated[int, Integer(BUNDLE_BLOCK_MIN, BLOCK_SIZE_MAX)]
    """Bytes of a block in files of one chunk."""


@wire(45)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BundleAnswer(WireMessage):
    """S: the answer to the oldest BundleRequest."""

    bundle: Ordinal
    without: Annotated[tuple[int, ...], Gaps(BUNDLE_FILES, BUNDLE_FILES - 1, may_be_empty=True)]
    """Files left out of the bundle, by their position in the request: they are unreadable or differ from
    their listing."""
    digest: Digest
    """BLAKE3 of the bundle's whole content."""
    lengths: Annotated[tuple[int, ...], Column(BUNDLE_CHUNKS, lowest=1)]
    """Lengths of the chunks of its longer files."""
    references: Annotated[bytes, Blob(0, FRAME_BYTES // 2)]
    """Keyed references, one per chunk."""
    fingerprints: Annotated[bytes, Blob(0, _FINGERPRINTS)]
    """Keyed fingerprints of the blocks of its other files, LEAF_WIDTH bytes per block, in order."""
