"""The tables of a scan."""

from __future__ import annotations

from rdc.kernel.count._survey import ChunkTable, Folder, left_after_rows, select_chunks

__all__ = ["ChunkTable", "Folder", "left_after_rows", "select_chunks"]
