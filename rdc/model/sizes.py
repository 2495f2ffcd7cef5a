"""The only reader of sizes and rates that users type: 4096, 500K, 1.5M, 2GB."""

from __future__ import annotations

import re

from rdc.limits.wire import SIZE_LIMIT

__all__ = ["parse_size"]

_SIZE = re.compile(
    r"(\d{1,19}(?:\.\d{0,9})?|\.\d{1,9})(?: ?(?:(b)|([kmgtp])(b|ib)?))?", re.ASCII | re.IGNORECASE
)


def parse_size(text: str, *, unit: int = 1) -> int | None:
    """Bytes, rounded down and at most SIZE_LIMIT; None if `text` is no size.

    K, M, G, T, P (and KiB ...) are powers of 1024; KB, MB ... are powers of 1000; B is a byte; case does not
    matter. unit: the bytes that a number without a letter counts.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    number, byte, letter, ending = found.groups()
    whole, _, decimals = number.partition(".")
    if letter is not None:
        base = 1000 if (ending or "").lower() == "b" else 1024
        unit = base ** ("kmgtp".index(letter.lower()) + 1)
    elif byte is not None:
        unit = 1
    # In integers: a product of floats would lose bytes.
    size: int = int(whole + decimals) * unit // 10 ** len(decimals)
    return min(size, SIZE_LIMIT)
