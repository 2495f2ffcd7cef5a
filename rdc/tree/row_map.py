"""Where the rows of one manifest are in another, by path."""

from __future__ import annotations

from collections import OrderedDict

from rdc.model.entries import strings
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rdc.tree.manifest import Manifest

__all__ = ["RowMap"]

OPENED_DIRECTORIES = 64
"""Directories whose names are kept: rows come in the order of the walk, and what they refer to is mostly
near."""


@dataclass(frozen=True, slots=True)
class _Opened:
    first: int
    """Of the directory, in the new manifest."""
    names: Sequence[bytes] | None
    """In the old one; None: both have the same names."""
    rows: Mapping[bytes, int]
    """In the new one, by name."""


class RowMap:
    """Looks rows of `old` up in `new`; both are complete."""

    def __init__(self, old: Manifest, new: Manifest) -> None:
        self._old = old
        self._new = new
        self._opened: OrderedDict[int, _Opened] = OrderedDict()

    def row(self, row: int) -> int | None:
        """None: nothing has that path there."""
        directory = self._old.directory_of(row)
        opened = self._opened.get(directory)
        if opened is None:
            opened = self._opened[directory] = self._open(directory)
            if len(self._opened) > OPENED_DIRECTORIES:
                self._opened.popitem(last=False)
        at = row - self._old.firsts[directory]
        return opened.first + at if opened.names is None else opened.rows.get(opened.names[at])

    def _open(self, directory: int) -> _Opened:
        old, new = self._old, self._new
        number, names = new.number(old.directories[directory]), old.names(directory)
        if number is None:
            return _Opened(0, strings(names), {})
        first, theirs = new.firsts[number], new.names(number)
        if names == theirs:
            return _Opened(first, None, {})
        return _Opened(first, strings(names), {name: first + at for at, name in enumerate(strings(theirs))})
