"""Limits of the frame stream: frames, compressed blocks and the numbers in them."""

from __future__ import annotations

FRAME_BYTES = 1 << 20
"""Bytes of one frame's payload: what a peer can make this side hold before any field is checked."""

PIECE_BYTES = 128 << 10
"""Decompressed bytes of frame stream in one block: zstd's own block size, so a piece fills one block of it.
Together with FRAME_BYTES this limit bounds the output of a decompression bomb."""

BLOCK_BYTES = PIECE_BYTES + 1024
"""Bytes of one block on the wire. zstd adds 3 bytes per block and at most 18 per frame to data that it cannot
shrink; the rest is room for the end of one zstd frame and the head of the next."""

RAW_BLOCK_BYTES = FRAME_BYTES + 16
"""Bytes of one uncompressed block: any frame with its head, so content is never split."""

WINDOW_LOG = 24
"""log2 of the zstd window: both ends hold the last 16 MiB of each direction. With half as much, a tree with
many similar files took 4 % more bytes (measured)."""

INBOUND_BYTES = 4 << 20
"""Bytes received but not yet decoded: 40 ms of a link with 100 MB/s, so the link stays busy while this side
works. Beyond this limit the transport is not read. It is small beside the 250 MB that a side may use."""

SIZE_LIMIT = (1 << 63) - 1
"""Bytes of a file, and any offset or total: off_t is signed."""

ROUND_LIMIT = (1 << 32) - 1
"""Round number of a frame. A session that uses one round per second lasts 136 years."""

ORDINAL_LIMIT = (1 << 32) - 1
"""Running number of an entry or a directory in one session, or of a node in a tree: four bytes per column
row, 4,000 times the million entries that rdc is measured with."""
