"""Sizes, counts, durations and names as text: for people, for programs and for tables."""

from __future__ import annotations

from rdc.errors import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB")


def size_text(count: int) -> str:
    """`count` bytes with three or four digits and a decimal unit: `999 B`, `48.0 KB`, `1.2 GB`."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1000
        # 999.95 would be rounded to 1000.0.
        if value < 999.95 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit}"
    raise AssertionError("unreachable")


def binary_text(count: int) -> str:
    """`count` bytes with a binary unit: `999 B`, `46.9 KiB`, `1.1 GiB`."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1024
        if value < 1023.95 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit[0]}iB"
    raise AssertionError("unreachable")


def exact_text(count: int) -> str:
    """The exact number of bytes: `1,234,567 bytes`."""
    return f"{count:,} byte" if count == 1 else f"{count:,} bytes"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 round trip`, `1,204 round trips`, `2 entries`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration_text(seconds: float) -> str:
    """`0:07`, `12:34`, `1:02:03`."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def elapsed_text(seconds: float) -> str:
    """`0.04 s`, `7.2 s`, then as duration_text."""
    if seconds < 1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 59.95 else duration_text(seconds)


def rate_text(count: int, seconds: float) -> str:
    """`24.6 KB/s`. `seconds` is more than 0."""
    return f"{size_text(int(count / seconds))}/s"


def null_names(names: Iterable[bytes]) -> bytes:
    """The bytes of each name followed by NUL. An empty name ends the group."""
    return b"\0".join([*names, b"", b""])


def csv_name(name: bytes) -> str:
    """Two cells: the name as quoted text, and its bytes in base64 if the text differs from the name. It
    differs if it has escapes or the prefix that `plain_text` adds."""
    import base64

    shown = plain_text(printable(name))
    exact = "" if shown.encode("utf-8") == name else base64.b64encode(name).decode("ascii")
    quoted = shown.replace('"', '""')
    return f'"{quoted}",{exact}'


def plain_text(text: str) -> str:
    """`text` as a cell that a spreadsheet does not execute. File names may begin like a formula.

    Such text gets a prefix, and so does text that begins with the prefix, so that the cell can be decoded.
    """
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "'"} else text
