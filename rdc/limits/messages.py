"""Limits of what one message holds."""

from __future__ import annotations

SOFTWARE_BYTES = 64
"""UTF-8 bytes of a peer's name for itself, which is only displayed."""

MESSAGE_BYTES = 4096
"""UTF-8 bytes of a text for a person: one line that names a path of usual length."""

RULES_BYTES = 256 << 10
"""Bytes of all filter rules together: larger than any handwritten or generated list in use."""

DATA_BYTES = 524288
"""Bytes of content per message. A message costs about 10 us, which does not show at this size. Requests and
progress still get a turn between two messages."""

PACKED_BYTES = 128 << 10
"""Bytes of literals compressed with their context, the known bytes around them. For more literals the context
is too small a part to help."""

PACKED_CONTEXT_BYTES = 256 << 10
"""Bytes of that context. Both sides hold it in memory, with tables of about the same size."""

TABLE_STRIDE_MAX = 64
"""Bytes per row of a number table that travels as differences: rows of relocations and symbols have 24."""

FILES_PER_GROUP = 256
"""Files that share one reference. If one of them differs, all of them are asked about again."""

FILES_PER_MESSAGE = 16_384
"""Files per request or answer: 16,384 roots with sizes fill 640 KiB of a 1 MiB frame."""

FILES_PER_BATCH = 1024
"""Small files per message: each file bears a thousandth of a message's cost."""

RECORDS_BYTES = 512 << 10
"""Bytes of signature records per answer: half a frame, the rest is for ordinals and lengths."""

NODE_BYTES = 64 << 10
"""Bytes of one expanded node: 26 children of at most 50 bytes, for several levels at once."""

NODES_PER_MESSAGE = 16_384
"""Nodes per request: one level of the tree of a 4 GiB file in one message."""

NODES_PER_ANSWER = 512
"""Expanded nodes per answer: about 100 KiB with short references, 450 KiB with whole digests."""

RANGES_PER_MESSAGE = 16_384
"""Ranges per request: at worst 16 bytes each, a quarter of a frame."""

BLOCKS_PER_MESSAGE = 65_536
"""Blocks with fingerprints per answer: 512 KiB at 8 bytes each, half a frame."""

CELLS_PER_MESSAGE = 1024
"""Check blocks, of 8 KiB each, that one request claims to match. A source that calls all of them wrong makes
the destination keep that much in memory until it is written. For masked content the positions of masked bytes
take an eighth more."""

CELLS_PER_ANSWER = 64
"""Check blocks corrected per message: 512 KiB, half a frame."""

TIER_NODES = 1024
"""Manifest nodes per request. Their children fit a frame: at most 26 each, with 11 bytes of references."""

TOP_NODES = 64
"""Nodes of the tier that comes with a manifest, 4 bytes each: the cost for trees without a difference."""

TIER_NODES_WHOLE = 65_536
"""Manifest nodes in an answer with a whole tier: 11 bytes of references each, 704 KiB of a frame. A descent
starts far above such tiers."""

ROWS_PER_PART = 4096
"""Manifest entries per answer, about 200 KiB."""

ROWS_TEXT_BYTES = 512 << 10
"""Bytes of paths, names and link targets in an answer with several manifest entries. This is half a frame, so
the other 27 bytes per entry fit. One entry alone has at most 32 KiB of text."""

FURTHER_BYTES = 8
"""Bytes of the digest of links and attributes that a Manifest carries, to compare two trees. A false match
occurs once in 10^19 times; the root, which covers all 32 bytes, reveals it."""

GONE_BYTES = 256 << 10
"""Bytes of names that one Changed lists as gone: with half a frame of entries they fit a frame. More than a
thousand of the longest names fit; the rest comes in the next Changed."""

ITEMS_PER_MESSAGE = 4096
"""Changes reported per message, about 40 bytes each. A message of its own for each would cost both sides as
much as copying a small file."""

ITEMS_BYTES = 256 << 10
"""Bytes of the paths of these changes, and as many of link targets: half a frame together. One item has at
most 32 KiB."""
