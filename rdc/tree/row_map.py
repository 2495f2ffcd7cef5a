"""RowMap: where the rows of one manifest are in another, by path."""

from __future__ import annotations

from collections import OrderedDict

from rdc.lean.records import dataclass
from rdc.model.entries import strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.tree.manifest import Manifest

__all__ = ["RowMap"]

MAPPED_DIRECTORIES = 64
"""Directories cached. Rows come in walk order, and related rows are mostly near."""


@dataclass(frozen=True, slots=True)
class _CachedDirectory:
    first: int
    """The directory's first row in the new manifest."""
    names: Sequence[bytes] | None
    """Names in the old manifest; None if both have the same names."""
    rows: Mapping[bytes, int]
    """Rows in the new manifest, by name."""


class RowMap:
    """Maps rows of `old` to rows of `new`. Both manifests are complete."""

    def __init__(self, old: Manifest, new: Manifest) -> None:
        self._old = old
        self._new = new
        self._cached: OrderedDict[int, _CachedDirectory] = OrderedDict()

    def row(self, row: int) -> int | None:
        """Return the row in `new` with the path of `row` in `old`, or None."""
        directory = self._old.directory_of(row)
        cached = self._cached.get(directory)
        if cached is None:
            cached = self._cached[directory] = self._open(directory)
            if len(self._cached) > MAPPED_DIRECTORIES:
                self._cached.popitem(last=False)
        at = row - self._old.firsts[directory]
        return cached.first + at if cached.names is None else cached.rows.get(cached.names[at])

    def _open(self, directory: int) -> _CachedDirectory:
        old, new = self._old, self._new
        number, names = new.number(old.directories[directory]), old.names(directory)
        if number is None:
            return _CachedDirectory(0, strings(names), {})
        first, new_names = new.firsts[number], new.names(number)
        if names == new_names:
            return _CachedDirectory(first, None, {})
        return _CachedDirectory(
            first, strings(names), {name: first + at for at, name in enumerate(strings(new_names))}
        )
