"""Names in the forms that programs read: ended by NUL, and as two columns of a table."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from rdc.errors import printable

__all__ = ["csv_name", "null_names"]


def null_names(names: Iterable[bytes]) -> bytes:
    """The bytes of each name followed by NUL; then an empty name, which ends the group."""
    return b"\0".join([*names, b"", b""])


def csv_name(name: bytes) -> str:
    """Two cells: the name as quoted text, and its bytes in base64 where that has escapes."""
    shown = printable(name)
    exact = "" if shown.encode("utf-8") == name else base64.b64encode(name).decode("ascii")
    quoted = shown.replace('"', '""')
    return f'"{quoted}",{exact}'
