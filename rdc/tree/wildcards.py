"""Compiles wildcard patterns to regular expressions that never backtrack past one path component.

Patterns come from users and from peers, so matching must be linear in the path for every pattern.
`a[^/]*b[^/]*c` for `a*b*c` takes time exponential in the number of stars. fnmatch shows the remedy. Between
two stars the earliest occurrence of the literal part is as good as any later one, since the next star absorbs
the difference. An atomic group, (?>...), tells the engine to keep it. '*' stops at '/', so the argument holds
per component:

- A part without '/' between two stars lies in one component. Its earliest occurrence leaves most to the next
  star.
- A part with '/' after a star is bound to the next '/' of the path, so only one place fits.
- The text after '**' begins in some component. A match from an earlier component ends no later than one from
  a later component, because both cross the same number of '/'. So the first component in which it matches is
  enough.
- The part before the end of the pattern is bound to the path's end instead. It is tried once per component.
"""

from __future__ import annotations

import re

__all__ = ["compile_wildcards", "component_regex", "with_components"]

_ANY = b"[^/]"
# Zero or more whole components. '/' delimits them, so each number of them matches in only one way.
_COMPONENTS = rb"(?:[^/]*/)*?"


def compile_wildcards(pattern: bytes, *, floating: bool = False) -> re.Pattern[bytes]:
    """Return a regex for fullmatch(). '*', '?' and [classes] stop at '/', '**' does not; a backslash escapes.

    With `floating`, the pattern may begin after any '/' as well as at the start. An invalid pattern (an
    unclosed class, a backslash at the end) matches nothing, as in rsync.
    """
    segments = _parse(pattern)
    if segments is None:
        return re.compile(rb"(?!)")
    out = []
    for number, parts in enumerate(segments):
        last = number == len(segments) - 1
        if last and number and parts == [b""]:
            out.append(b".*")
            continue
        body = _segment(parts, crosses=number > 0, last=last)
        if number or floating:
            body = _COMPONENTS + body
        # Atomic: the text after '**' never makes the text before it start later.
        out.append(body if last else b"(?>" + body + b")")
    return re.compile(b"".join(out), re.DOTALL)


def component_regex(pattern: bytes, *, last: bool = True) -> bytes | None:
    """Return the regex of a pattern in which no star crosses '/'; None for an invalid one.

    `last`: nothing follows. Otherwise the pattern ends in '/', which binds its last part.
    """
    segments = _parse(pattern)
    if segments is None or len(segments) != 1:
        return None
    return _segment(segments[0], crosses=False, last=last)


def with_components(regex: bytes, *, crosses: bool, last: bool = False) -> bytes:
    """Return `regex` behind any number of whole components if it `crosses` them. Only the first place where
    it matches counts, unless it is the `last`."""
    regex = _COMPONENTS + regex if crosses else regex
    return regex if last else b"(?>" + regex + b")"


def _segment(parts: list[bytes], *, crosses: bool, last: bool) -> bytes:
    """Return the regex of the text between two '**': star-free parts with a star before each but the first.

    `crosses` says that a '**' precedes; within the first component it acts as another star.
    """
    out = []
    for number, part in enumerate(parts):
        if number == 0 and not crosses:
            out.append(part)
        elif last and number == len(parts) - 1:
            out.append(b"[^/]*" + part)
        else:
            out.append(b"(?>[^/]*?" + part + b")")
    return b"".join(out)


def _parse(pattern: bytes) -> list[list[bytes]] | None:
    """Split `pattern` at '**' and each segment at '*'. Each part is a regex of fixed length. None means
    invalid."""
    segments = [[b""]]
    at = 0
    while at < len(pattern):
        ch = pattern[at : at + 1]
        if ch == b"*":
            end = at
            while pattern[end : end + 1] == b"*":
                end += 1
            if end - at == 1:
                segments[-1].append(b"")
            else:
                segments.append([b""])
            at = end
            continue
        if ch == b"[":
            parsed = _bracket(pattern, at + 1)
            if parsed is None:
                return None
            regex, at = parsed
        elif ch == b"\\":
            if at + 1 == len(pattern):
                return None
            regex, at = re.escape(pattern[at + 1 : at + 2]), at + 2
        else:
            regex, at = (_ANY if ch == b"?" else re.escape(ch)), at + 1
        segments[-1][-1] += regex
    return segments


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
"""POSIX character classes in the C locale: paths are bytes, and both ends must read a pattern alike."""


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """Return the class that begins before `at` as a regex, and the offset after it. None means invalid."""
    # long because a bracket expression is read in one pass, whose state every case changes
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
    members = members | {ord("/")} if negated else members - {ord("/")}
    if not members:
        return b"(?!)", at + 1
    escaped = b"".join(b"\\x%02x" % c for c in sorted(members))
    return (b"[^" if negated else b"[") + escaped + b"]", at + 1
