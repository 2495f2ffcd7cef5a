"""Texts of JSON lines in plain Python: the definition for json_lines.c."""

from __future__ import annotations

import json
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["json_texts"]


ZEROS = 64
"""Bytes of the column of texts beyond those of all lines."""


def json_texts(block: ReadableBuffer, field: ReadableBuffer, most: int, /) -> tuple[bytes, bytes, bytes]:
    """Finds the text in the field of each line that is a JSON object.

    Lines are what newlines separate, so there is one more than newlines. The result is three columns: the
    texts in UTF-8 one after another, with zeros behind them; where each begins, and where the last one ends
    (i64); and a byte for each line: 1 if it is left to the caller, and its text is empty. Left is a line that
    Python's module json does not take, one without a text in the field, and one whose text has half of a
    surrogate pair or more than `most` bytes. The C form leaves some more, which are rare: keys with escapes,
    a field that comes twice, deep values and long numbers. ValueError for a negative `most`.
    """
    if most < 0:
        raise ValueError("most: 0 or more bytes are expected")
    name = bytes(field).decode("utf-8", "surrogatepass")
    texts, bounds, left = bytearray(), array("q", [0]), bytearray()
    for line in bytes(block).split(b"\n"):
        try:
            text = json.JSONDecoder().decode(line.decode())[name].encode()
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
            text = None
        taken = text is not None and len(text) <= most
        if taken:
            texts += text
        bounds.append(len(texts))
        left.append(not taken)
    return bytes(texts).ljust(len(bytes(block)) + ZEROS, b"\0"), bounds.tobytes(), bytes(left)
