"""Sizes as people type them: 4096, 500K, 1.5M, 2GB."""

from __future__ import annotations

import re

from rdc.errors import UsageError
from rdc.limits import SIZE_LIMIT

__all__ = ["read_size"]

_SIZE = r"(\d{1,19}(?:\.\d{0,9})?)(?:b|([kmgtp])(b|ib)?)?"


def read_size(option: str, text: str) -> int:
    """Bytes: k, m, g, t, p (also kib ...) are powers of 1024, kb, mb ... of 1000. Raises UsageError."""
    found = re.fullmatch(_SIZE, text, re.ASCII | re.IGNORECASE)
    if found is None:
        raise UsageError(f"{option}={text}: a size such as 500M or 2G is expected")
    number, unit, ending = found.groups()
    whole, _, decimals = number.partition(".")
    base = 1000 if (ending or "").lower() == "b" else 1024
    exponent = "kmgtp".index(unit.lower()) + 1 if unit else 0
    size: int = int(whole + decimals) * base**exponent // 10 ** len(decimals)
    return min(size, SIZE_LIMIT)
