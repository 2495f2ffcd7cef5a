"""The definition of PatternSet: wildcard patterns in order, and the first that matches a path.

A pattern is read as rsync reads it. `*` is any text without '/', `**` any text, `?` one byte but '/', `[...]`
one byte of a class and never '/'; a backslash escapes. A pattern with an unclosed class, an unknown class or
a backslash at its end matches nothing.

A matcher keeps the offsets that it can have reached after each part of a pattern. It takes no longer than the
length of the path times that of the pattern, whatever both are.
"""

from __future__ import annotations

from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

__all__ = [
    "ABSOLUTE",
    "ANYWHERE",
    "COMPONENTS",
    "DIRECTORY",
    "INSIDE",
    "LITERAL",
    "NEGATED",
    "PatternSet",
    "TAIL",
]

LITERAL = 1
"""No byte of the pattern is special."""
ANYWHERE = 2
"""The pattern begins at the start of the path or after any '/'; without it, at the start."""
DIRECTORY = 4
"""Only directories match."""
INSIDE = 8
"""Of a directory, the path with a '/' after it is compared."""
NEGATED = 16
"""The pattern matches where it would not, whatever else is said of it."""
COMPONENTS = 32
"""`**` is special only as a whole component, as in .gitignore: it stands for any number of directories, and
at the end for at least one component. Elsewhere several stars are one."""
ABSOLUTE = 64
"""The prefix of the set stands in front of the path."""
TAIL = 128
"""As many of the last components are compared as the pattern has: one more than it has '/', also in classes,
where none matches. A path with fewer components does not match. For patterns without `**`, and without
INSIDE and ANYWHERE."""

_SLASH = ord("/")
_EVERY = frozenset(range(256))
_NO_SLASH = _EVERY - {_SLASH}


class _Star(Record):
    """Any text; without `slashes` none that has a '/'. `directories`: empty, or a text that ends in '/'."""

    slashes: bool = False
    directories: bool = False


_Part: TypeAlias = "frozenset[int] | _Star"


class PatternSet:
    """Patterns in order. It answers for one path at a time."""

    def __init__(self, patterns: Sequence[bytes], kinds: bytes, prefix: bytes = b"", /) -> None:
        """`kinds`: a byte for each pattern, the sum of what it is. `prefix`: empty, or ends in '/'.

        Raises ValueError for another number of kinds.
        """
        kinds = bytes(kinds)
        if len(kinds) != len(patterns):
            raise ValueError("patterns: one kind is expected for each")
        self._prefix = bytes(prefix)
        self._patterns = [
            (_parts(text, kind), kind, text.count(b"/") + 1)
            for text, kind in zip(map(bytes, patterns), kinds, strict=True)
        ]

    def first(self, path: bytes, is_directory: bool, /) -> int:
        """Return the number of the first pattern that matches, or -1. `path`: relative, without an empty
        component."""
        for number, (parts, kind, components) in enumerate(self._patterns):
            if self._matches(parts, kind, components, path, is_directory) is not bool(kind & NEGATED):
                return number
        return -1

    def _matches(
        self, parts: list[_Part] | None, kind: int, components: int, path: bytes, is_directory: bool
    ) -> bool:
        if parts is None or (kind & DIRECTORY and not is_directory):
            return False
        text = self._prefix + path if kind & ABSOLUTE else path
        if kind & TAIL:
            names = text.split(b"/")
            if len(names) < components:
                return False
            text = b"/".join(names[-components:])
        if kind & INSIDE and is_directory:
            text += b"/"
        reached = {0}
        if kind & ANYWHERE:
            reached |= {at + 1 for at, byte in enumerate(text) if byte == _SLASH}
        for part in parts:
            reached = _after(part, text, reached)
        return len(text) in reached


def _after(part: _Part, text: bytes, reached: set[int]) -> set[int]:
    """The offsets after `part`, from any of those that are reached."""
    if not isinstance(part, _Star):
        return {at + 1 for at in reached if at < len(text) and text[at] in part}
    if not reached:
        return reached
    found = set(reached)
    for at in range(min(reached), len(text)):
        if part.directories:
            if text[at] == _SLASH:
                found.add(at + 1)
        elif at in found and (part.slashes or text[at] != _SLASH):
            found.add(at + 1)
    return found


def _parts(pattern: bytes, kind: int) -> list[_Part] | None:
    """Read a pattern; None if it is invalid."""
    if kind & LITERAL:
        return [frozenset({byte}) for byte in pattern]
    parts: list[_Part] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at : at + 1]
        if byte == b"*":
            end = len(pattern) - len(pattern[at:].lstrip(b"*"))
            found, at = _stars(pattern, at, end, kind)
            parts += found
        elif byte == b"[":
            parsed = _class(pattern, at + 1)
            if parsed is None:
                return None
            parts.append(parsed[0])
            at = parsed[1]
        elif byte == b"\\":
            if at + 1 == len(pattern):
                return None
            parts.append(frozenset(pattern[at + 1 : at + 2]))
            at += 2
        else:
            parts.append(_NO_SLASH if byte == b"?" else frozenset(byte))
            at += 1
    return parts


def _stars(pattern: bytes, at: int, end: int, kind: int) -> tuple[list[_Part], int]:
    """What the stars from `at` to `end` are, and the offset after them."""
    if not kind & COMPONENTS:
        return [_Star(slashes=end - at > 1)], end
    begins = at == 0 or pattern[at - 1] == _SLASH
    ends = end == len(pattern) or pattern[end] == _SLASH
    if end - at != 2 or not (begins and ends) or len(pattern) == 2:
        return [_Star()], end
    if end == len(pattern):
        return [_EVERY, _Star(slashes=True)], end
    return [_Star(directories=True)], end + 1


_ALNUM = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_NAMED: dict[bytes, frozenset[int]] = {
    b"alnum": _ALNUM,
    b"alpha": frozenset(c for c in _ALNUM if chr(c).isalpha()),
    b"blank": frozenset(b" \t"),
    b"cntrl": frozenset([*range(32), 127]),
    b"digit": frozenset(b"0123456789"),
    b"graph": frozenset(range(33, 127)),
    b"lower": frozenset(c for c in _ALNUM if chr(c).islower()),
    b"print": frozenset(range(32, 127)),
    b"punct": frozenset(range(33, 127)) - _ALNUM,
    b"space": frozenset(b" \t\n\v\f\r"),
    b"upper": frozenset(c for c in _ALNUM if chr(c).isupper()),
    b"xdigit": frozenset(b"0123456789abcdefABCDEF"),
}
"""POSIX character classes in the C locale: paths are bytes, and both sides must read a pattern alike."""


def _class(pattern: bytes, at: int) -> tuple[frozenset[int], int] | None:
    """Return the class that begins before `at`, and the offset after it. None means invalid."""
    # long because a class is read in one pass, whose state every case changes
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    members: set[int] = set()
    low: int | None = None
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        if at >= len(pattern):
            return None
        if pattern[at : at + 2] == b"[:" and (end := pattern.find(b"]", at + 2)) != at + 2:
            if end < 0:
                return None
            if pattern[end - 1 : end] == b":" and end - 1 >= at + 2:
                named = _NAMED.get(pattern[at + 2 : end - 1])
                if named is None:
                    return None
                members |= named
                low, at = None, end + 1
                continue
        is_range = (
            low is not None and pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in (b"", b"]")
        )
        at += is_range
        if pattern[at : at + 1] == b"\\":
            at += 1
            if at >= len(pattern):
                return None
        if is_range:
            members.update(range(low or 0, pattern[at] + 1))
            low = None
        else:
            low = pattern[at]
            members.add(low)
        at += 1
    # A class never matches '/', whether it names '/' or is negated.
    return frozenset(_EVERY - members if negated else members) - {_SLASH}, at + 1
