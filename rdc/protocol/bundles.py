"""Many changed files that are described together, and are one file from then on: a bundle."""

from __future__ import annotations

from rdc.limits import (
    BLOCK_SIZE_MAX,
    BUNDLE_BYTES,
    BUNDLE_CHUNKS,
    BUNDLE_FILES,
    FRAME_BYTES,
    ORDINAL_LIMIT,
)
from rdc.protocol.codec import WireMessage, wire
from rdc.protocol.comparison import LEAF_WIDTH, SHORTEN
from rdc.protocol.field_types import Digest, Ordinal
from rdc.protocol.fields import Blob, Column, Gaps, Integer
from rdc.records import dataclass
from rdc.typed import Annotated

__all__ = ["BUNDLE_BLOCK_MIN", "BundleAnswer", "BundleRequest"]

BUNDLE_BLOCK_MIN = 256
"""Bytes of a block at least: the fingerprints of a whole bundle fit a message then, those of short files,
whose blocks are a quarter of that, too."""

KEYED_WIDTHS = (4, 8)

_FINGERPRINTS = (BUNDLE_BYTES * SHORTEN // BUNDLE_BLOCK_MIN + 2 * BUNDLE_FILES) * LEAF_WIDTH


@wire(44)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BundleRequest(WireMessage):
    """D: these files, as they were listed, are a bundle."""

    bundle: Ordinal
    """How it is named from now on: bundles have the ordinals behind those of all entries."""
    files: Annotated[tuple[int, ...], Gaps(BUNDLE_FILES, ORDINAL_LIMIT)]
    width: Annotated[int, Integer(*KEYED_WIDTHS)]
    """Bytes of the reference of a chunk."""
    block: Annotated[int, Integer(BUNDLE_BLOCK_MIN, BLOCK_SIZE_MAX)]
    """Bytes of a block of files of one chunk."""


@wire(45)
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BundleAnswer(WireMessage):
    """S: the bundle of the oldest BundleRequest."""

    bundle: Ordinal
    without: Annotated[tuple[int, ...], Gaps(BUNDLE_FILES, BUNDLE_FILES - 1, may_be_empty=True)]
    """Of the files asked for those that are not in it, by their place in the request: they are not as they
    were listed, or not to be read."""
    digest: Digest
    """BLAKE3 of all its content."""
    lengths: Annotated[tuple[int, ...], Column(BUNDLE_CHUNKS, lowest=1)]
    """Of the chunks of its longer files."""
    references: Annotated[bytes, Blob(0, FRAME_BYTES // 2)]
    """Keyed, one a chunk."""
    fingerprints: Annotated[bytes, Blob(0, _FINGERPRINTS)]
    """Keyed, LEAF_WIDTH bytes a block of its other files, in order."""
