"""Listings of a source that claims to have many entries."""

from __future__ import annotations

from array import array

from rdc.limits import PATH_BYTES
from rdc.model.entries import Kind, Listing
from rdc.protocol import messages


def names(count: int, first: int = 0) -> tuple[bytes, ...]:
    return tuple(b"%06x" % number for number in range(first, first + count))


def listing(entries: tuple[bytes, ...], kind: Kind, size: int = 0) -> Listing:
    count = len(entries)
    return Listing(
        entries,
        bytes((kind,)) * count,
        array("H", [0o755]) * count,
        array("Q", [size]) * count,
        array("q", [10**18]) * count,
        array("I", [0]) * count,
        array("I", [0]) * count,
        (b"to",) * count if kind is Kind.SYMLINK else (),
    )


def chain() -> tuple[list[messages.Message], bytes, int]:
    """Listings of directories in each other, down to one whose path is nearly as long as can be; that path,
    and how many directories lead to it."""
    parts: list[messages.Message] = []
    path, name = b"", b"x" * 250
    levels = (PATH_BYTES - 500) // 251
    for level in range(levels):
        parts.append(messages.ListingPart(level, path, level, True, listing((name,), Kind.DIRECTORY)))
        path = path + b"/" + name if path else name
    return parts, path, levels


def below(kind: Kind, count: int, size: int = 0) -> list[messages.Message]:
    """Return the messages that claim `count` entries in the deepest directory."""
    parts, path, levels = chain()
    return [*parts, messages.ListingPart(levels, path, levels, True, listing(names(count), kind, size))]
