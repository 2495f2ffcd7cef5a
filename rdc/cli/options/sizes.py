"""Reads sizes from option values."""

from __future__ import annotations

from rdc.errors import UsageError

__all__ = ["read_size"]


def read_size(option: str, text: str) -> int:
    """Returns the bytes that `text` means, as in rdc.model.sizes. Raises UsageError."""
    from rdc.model.sizes import parse_size

    size = parse_size(text)
    if size is None:
        raise UsageError(f"{option}={text}: a size such as 500M or 2G is expected")
    return size
