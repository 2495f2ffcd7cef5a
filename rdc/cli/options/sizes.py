"""Reads sizes from option values."""

from __future__ import annotations

from rdc.errors import UsageError

__all__ = ["read_share", "read_size"]


def read_size(option: str, text: str) -> int:
    """Returns the bytes that `text` means, as in rdc.model.sizes. Raises UsageError."""
    from rdc.model.sizes import parse_size

    size = parse_size(text)
    if size is None:
        raise UsageError(f"{option}={text}: a size such as 500M or 2G is expected")
    return size


def read_share(name: str, text: str) -> int:
    """The per cent of a share such as 50%. Raises UsageError."""
    number = text.removesuffix("%")
    known = number.isascii() and number.isdigit() and len(number) <= 3 and int(number) <= 100
    if number == text or not known:
        raise UsageError(f"{name}={text}: a share from 0% to 100% is expected")
    return int(number)
