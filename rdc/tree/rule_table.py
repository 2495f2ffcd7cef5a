"""RuleTable: numbered patterns, and the number of the first one that matches a path.

A pattern without wildcards is a look-up by the path or by its last components. All others are one
automaton (rdc.kernel.PatternSet), whose work is linear in the name of the entry. So the order of the
patterns decides what matches, and not what it costs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel import PatternSet

__all__ = ["NO_RULE", "RuleTable", "is_wild"]

NO_RULE = 1 << 62
"""No pattern matches: larger than any number."""


class _Literals:
    """Patterns without wildcards that are compared with the same part of a path, each with its number."""

    __slots__ = ("any_kind", "directories")

    def __init__(self) -> None:
        self.any_kind: dict[bytes, int] = {}
        self.directories: dict[bytes, int] = {}

    def first(self, text: bytes, is_directory: bool) -> int:
        number = self.any_kind.get(text, NO_RULE)
        return min(number, self.directories.get(text, NO_RULE)) if is_directory else number


class RuleTable:
    """Patterns are added in ascending order of their numbers, before the first look-up."""

    def __init__(self, prefix: bytes = b"") -> None:
        """`prefix`: stands in front of each path for patterns that are ABSOLUTE; it is empty or ends in
        '/'."""
        self.prefix = prefix
        self._whole = _Literals()
        self._tails: dict[int, _Literals] = {}
        """By the number of the components that they are compared with."""
        self._counts: list[int] = []
        """These numbers in ascending order."""
        self._numbers: list[int] = []
        self._patterns: list[bytes] = []
        self._kinds = bytearray()
        self._set: PatternSet | None = None

    @property
    def filled(self) -> bool:
        """Whether there is any pattern."""
        return bool(self._whole.any_kind or self._whole.directories or self._tails or self._patterns)

    def add_literal(self, number: int, text: bytes, *, anchored: bool, directory_only: bool) -> None:
        """Add a pattern without wildcards. `anchored`: it is compared with the whole path, else with as many
        of the last components as it has."""
        if anchored:
            literals = self._whole
        else:
            count = text.count(b"/") + 1
            if count not in self._tails:
                self._tails[count] = _Literals()
                self._counts = sorted(self._tails)
            literals = self._tails[count]
        (literals.directories if directory_only else literals.any_kind).setdefault(text, number)

    def add_wild(self, number: int, pattern: bytes, kind: int) -> None:
        """Add a pattern for the automaton. `kind`: a sum of what PatternSet names."""
        self._numbers.append(number)
        self._patterns.append(pattern)
        self._kinds.append(kind)

    def first(self, path: bytes, is_directory: bool) -> int:
        """Return the number of the first pattern that matches, or NO_RULE. `path` is not empty."""
        first = self._whole.first(path, is_directory)
        at, passed = len(path), 0
        for count in self._counts:
            while passed < count and at >= 0:
                at = path.rfind(b"/", 0, at)
                passed += 1
            first = min(first, self._tails[count].first(path[at + 1 :], is_directory))
            if at < 0:
                break  # the path has no more components
        if self._patterns:
            place = (self._set or self._automaton()).first(path, is_directory)
            if place >= 0:
                first = min(first, self._numbers[place])
        return first

    def _automaton(self) -> PatternSet:
        # Imported here: most runs have no wildcards.
        from rdc.kernel import PatternSet

        self._set = PatternSet(self._patterns, self._kinds, self.prefix)
        return self._set


def is_wild(pattern: bytes) -> bool:
    """Return whether rsync treats `pattern` as wildcards. Otherwise even a backslash stands for itself."""
    return b"*" in pattern or b"?" in pattern or b"[" in pattern
