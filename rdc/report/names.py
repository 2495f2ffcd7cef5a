"""Names in the forms that programs read: ended by NUL, and as two columns of a table."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from rdc.errors import printable

__all__ = ["csv_name", "null_names", "plain_text"]


def null_names(names: Iterable[bytes]) -> bytes:
    """The bytes of each name followed by NUL; then an empty name, which ends the group."""
    return b"\0".join([*names, b"", b""])


def csv_name(name: bytes) -> str:
    """Two cells: the name as quoted text, and its bytes in base64 where that is not the name: it has escapes,
    or a sign before what begins like a formula."""
    shown = plain_text(printable(name))
    exact = "" if shown.encode("utf-8") == name else base64.b64encode(name).decode("ascii")
    quoted = shown.replace('"', '""')
    return f'"{quoted}",{exact}'


def plain_text(text: str) -> str:
    """`text` as a cell. A spreadsheet runs what begins like a formula, and file names are anybody's."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text
