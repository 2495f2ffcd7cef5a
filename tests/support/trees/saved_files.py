"""Files as tests of links make them, and as programs save them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CONTENT", "TIME", "replace"]

CONTENT = bytes(range(256)) * 40
TIME = 1_234_567_890_123_456_789


def replace(path: Path, content: bytes) -> None:
    """As programs save a file."""
    beside = path.with_name("saved")
    beside.write_bytes(content)
    beside.rename(path)
