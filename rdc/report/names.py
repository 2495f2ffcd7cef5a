"""File names for programs: ended by NUL, or as two columns of a table."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from rdc.errors import printable

__all__ = ["csv_name", "null_names", "plain_text"]


def null_names(names: Iterable[bytes]) -> bytes:
    """The bytes of each name followed by NUL. An empty name ends the group."""
    return b"\0".join([*names, b"", b""])


def csv_name(name: bytes) -> str:
    """Two cells: the name as quoted text, and its bytes in base64 if the text differs from the name. It
    differs if it has escapes or the prefix that `plain_text` adds."""
    shown = plain_text(printable(name))
    exact = "" if shown.encode("utf-8") == name else base64.b64encode(name).decode("ascii")
    quoted = shown.replace('"', '""')
    return f'"{quoted}",{exact}'


def plain_text(text: str) -> str:
    """`text` as a cell that a spreadsheet does not execute. File names may begin like a formula.

    Such text gets a prefix, and so does text that begins with the prefix, so that the cell can be decoded.
    """
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "'"} else text
