"""Finds names that a file system may take for one, because it folds case, normalises, or drops what it calls
insignificant.

No table can tell what a file system does. So the keys here are equal too often rather than too seldom, and
the file system is asked about the names with equal keys.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["name_clashes"]

_IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Code points that Unicode calls Default_Ignorable, as a set of a regular expression."""


def name_clashes(names: Sequence[bytes]) -> list[list[int]]:
    """Return the groups of rows, two or more each, whose names some file system may take for one.

    `names` differ. Nearly all directories have no such names, so nothing is done per name before that is
    known.
    """
    joined = b"\0".join(names)
    if joined.isascii() and b".\0" not in joined and b" \0" not in joined and joined[-1:] not in b". ":
        folded = joined.lower()
        if folded == joined:
            return []
        keys: Sequence[bytes | str] = folded.split(b"\0")
    else:
        keys = _keys(joined)
    if len(set(keys)) == len(names):
        return []
    groups: dict[bytes | str, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def _keys(joined: bytes) -> list[str]:
    """What is equal for names that may be one. NUL separates the names before and after each step."""
    import re
    from unicodedata import normalize

    text = normalize("NFKD", joined.decode("utf-8", "surrogateescape"))
    # Dotless i has an i as its capital, sharp s two: so capitals first, then what stands for both cases.
    text = normalize("NFKD", text.upper().casefold())
    text = re.sub(f"[{_IGNORABLE}]+", "", text)
    # FAT drops dots and spaces at the end.
    return re.sub(r"[. ]+(?=\0|\Z)", "", text).split("\0")
