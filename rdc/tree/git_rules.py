"""GitIgnore: the lines of a .gitignore, matched in linear time.

The lines mean what gitignore(5) says. `**` between slashes stands for any number of directories. The regex
follows rdc.tree.wildcards: what is between two of them is tried once per component of the path.
"""

from __future__ import annotations

import re

from rdc.errors import UsageError
from rdc.limits.paths import FILTER_PATTERN_BYTES, FILTER_WILD_RULES
from rdc.records import dataclass
from rdc.tree.filters import FilterList
from rdc.tree.wildcards import component_regex, with_components

__all__ = ["GIT_RULE_FILE", "GitIgnore"]

GIT_RULE_FILE = b".gitignore"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Spaces at the end that no backslash escapes.
_TRAILING_SPACES = re.compile(rb"(?<!\\)((?:\\\\)*) +\Z")
_STARS = re.compile(rb"\*\*+")


@dataclass(frozen=True, slots=True)
class _Line:
    regex: re.Pattern[bytes]
    name_only: bool
    directory_only: bool
    ignores: bool


class GitIgnore(FilterList):
    """The last line that matches an entry decides. Lines are about paths below the file's directory."""

    def __init__(self, data: bytes, directory: bytes) -> None:
        """Raises UsageError for too many or too long lines."""
        self._below = len(directory) + 1 if directory else 0
        self._lines: list[_Line] = []
        lines = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        for number, text in enumerate(lines, 1):
            if len(text) > FILTER_PATTERN_BYTES:
                raise UsageError(f"line {number} has {len(text)} bytes; is this a list of patterns?")
            line = _line(text.removesuffix(b"\r"))
            if line is not None:
                self._lines.append(line)
        if len(self._lines) > FILTER_WILD_RULES:
            raise UsageError(f"{len(self._lines)} patterns; rdc takes at most {FILTER_WILD_RULES}")
        self._lines.reverse()

    def __bool__(self) -> bool:
        return bool(self._lines)

    @property
    def wild_rules(self) -> int:
        return len(self._lines)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return bool(path) and bool(self.decision(path, is_directory))

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        inside = path[self._below :]
        name = inside[inside.rfind(b"/") + 1 :]
        for line in self._lines:
            if line.directory_only and not is_directory:
                continue
            if line.regex.fullmatch(name if line.name_only else inside):
                return line.ignores
        return None


def _line(text: bytes) -> _Line | None:
    """What a line says; None for a comment or an empty line."""
    if text.startswith(b"#"):
        return None
    text = _TRAILING_SPACES.sub(rb"\1", text)
    ignores = not text.startswith(b"!")
    text = text.removeprefix(b"!") if not ignores else text
    directory_only = text.endswith(b"/")
    text = text.removesuffix(b"/")
    if not text:
        return None
    if b"/" not in text:
        regex = component_regex(_STARS.sub(b"*", text))
        return _Line(_compiled(regex), True, directory_only, ignores)
    return _Line(_compiled(_path_regex(text.removeprefix(b"/"))), False, directory_only, ignores)


def _path_regex(text: bytes) -> bytes | None:
    """The regex of a pattern with slashes; None if it matches nothing."""
    parts = [part if part == b"**" else _STARS.sub(b"*", part) for part in text.split(b"/")]
    regex, run, crosses = b"", [], False
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part != b"**":
            run.append(part)
            continue
        if run:
            found = component_regex(b"/".join(run) + b"/", last=False)
            if found is None:
                return None
            regex += with_components(found, crosses=crosses)
        run, crosses = [], True
        if last:
            # A `**` at the end stands for at least one component.
            return regex + b".+"
    found = component_regex(b"/".join(run))
    return None if found is None else regex + with_components(found, crosses=crosses, last=True)


def _compiled(regex: bytes | None) -> re.Pattern[bytes]:
    return re.compile(rb"(?!)" if regex is None else regex, re.DOTALL)
