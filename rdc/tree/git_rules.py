"""GitIgnore: the lines of a .gitignore, which mean what gitignore(5) says."""

from __future__ import annotations

import re

from rdc.errors import UsageError
from rdc.limits.wire import FILTER_PATTERN_BYTES
from rdc.tree.filters import FilterList
from rdc.tree.rule_table import NO_RULE, RuleTable

__all__ = ["GIT_RULE_FILE", "GitIgnore"]

GIT_RULE_FILE = b".gitignore"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Spaces at the end that no backslash escapes.
_TRAILING_SPACES = re.compile(rb"(?<!\\)((?:\\\\)*) +\Z")
_SPECIAL = re.compile(rb"[*?\[\\]")


class GitIgnore(FilterList):
    """The last line that matches an entry decides. Lines are about paths below the file's directory."""

    def __init__(self, data: bytes, directory: bytes) -> None:
        """Raises UsageError for a line that is too long. `data`: at most RULE_FILE_BYTES."""
        self._below = len(directory) + 1 if directory else 0
        self._ignores: list[bool] = []
        self._lines = RuleTable()
        self.wild_bytes = 0
        lines = data.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
        if max(map(len, lines)) > FILTER_PATTERN_BYTES:
            number = next(at for at, text in enumerate(lines, 1) if len(text) > FILTER_PATTERN_BYTES)
            raise UsageError(f"line {number} has {len(lines[number - 1])} bytes; is this a list of patterns?")
        for text in reversed(lines):
            if text and not text.startswith(b"#"):
                self._add(text.removesuffix(b"\r"))

    def __bool__(self) -> bool:
        return bool(self._ignores)

    def excluded(self, path: bytes, is_directory: bool) -> bool:
        return bool(path) and bool(self.decision(path, is_directory))

    def decision(self, path: bytes, is_directory: bool) -> bool | None:
        number = self._lines.first(path[self._below :], is_directory)
        return None if number == NO_RULE else self._ignores[number]

    def _add(self, text: bytes) -> None:
        """Add a line. The later ones of the file were added before it."""
        if text.endswith(b" "):
            text = _TRAILING_SPACES.sub(rb"\1", text)
        ignores = not text.startswith(b"!")
        text = text if ignores else text[1:]
        directory_only = text.endswith(b"/")
        text = text.removesuffix(b"/")
        if not text:
            return
        number = len(self._ignores)
        self._ignores.append(ignores)
        anchored = b"/" in text
        text = text.removeprefix(b"/")
        if _SPECIAL.search(text) is None:
            self._lines.add_literal(number, text, anchored=anchored, directory_only=directory_only)
            return
        from rdc.kernel import PatternSet

        kind = PatternSet.COMPONENTS
        kind |= 0 if anchored else PatternSet.ANYWHERE
        kind |= PatternSet.DIRECTORY if directory_only else 0
        self._lines.add_wild(number, text, kind)
        self.wild_bytes += len(text) + 1
