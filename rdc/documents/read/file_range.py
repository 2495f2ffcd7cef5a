"""FileRange: bytes of a JSONL or Parquet file that one slice reads."""

from __future__ import annotations

from rdc.lean.records import dataclass

__all__ = ["FileRange"]


@dataclass(frozen=True, slots=True)
class FileRange:
    """One of the ranges of bytes that a file is divided into.

    What begins in the range belongs to it: lines of a JSONL file, row groups of a Parquet file.
    """

    number: int
    """From 0."""
    of: int
    start: int
    end: int
    size: int
    """Bytes of the whole file when it was listed."""

    @classmethod
    def of_file(cls, number: int, of: int, size: int) -> FileRange:
        return cls(number, of, size * number // of, size * (number + 1) // of, size)
