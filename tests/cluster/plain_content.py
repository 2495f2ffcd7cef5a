"""What a file says: its bytes, and those of what is packed in it."""

from __future__ import annotations

import contextlib

import zstandard

__all__ = ["plain"]

_ZSTD = b"\x28\xb5\x2f\xfd"


def plain(content: bytes) -> bytes:
    """The content, and behind it that of each zstd frame in it."""
    found = [content]
    at = content.find(_ZSTD)
    while at >= 0:
        with contextlib.suppress(zstandard.ZstdError):  # four bytes that look like one
            found.append(zstandard.ZstdDecompressor().decompressobj().decompress(content[at:]))
        at = content.find(_ZSTD, at + 4)
    return b"".join(found)
