"""Files of which only some blocks have data."""

from __future__ import annotations

from pathlib import Path

__all__ = ["BLOCK", "write_sparse"]

BLOCK = 4096


def write_sparse(path: Path, data: list[int], blocks: int) -> None:
    """A file of so many blocks, of which these have data, and the others are holes."""
    with path.open("wb") as file:
        file.truncate(blocks * BLOCK)
        for block in data:
            file.seek(block * BLOCK)
            file.write(b"x" * BLOCK)
