"""A table of directories by path that stores each long parent path once."""

from __future__ import annotations

from rdc.files.base.relative_path import join
from rdc.lean.typed import Generic, TypeVar
from rdc.limits.sessions import SHORT_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DirectoryTable"]

V = TypeVar("V")


class DirectoryTable(Generic[V]):
    """Maps relative directory paths to values; b"" is the root. Parents of long paths are stored once.

    Invariant: memory grows with the sum of parent paths and names, not with names times path lengths. A peer
    that announces 20,000 directories below one long path sends that path once; this side stores it once.
    """

    def __init__(self) -> None:
        self._short: dict[bytes, V] = {}
        """Values by path, for paths of at most SHORT_PATH bytes."""
        self._below: dict[bytes, dict[bytes, V]] = {}
        """Values of longer paths by parent, then by name."""

    def __contains__(self, path: object) -> bool:
        return isinstance(path, bytes) and self.get(path) is not None

    def __getitem__(self, path: bytes) -> V:
        """Raises KeyError if the path is not in the table."""
        found = self.get(path)
        if found is None:
            raise KeyError(path)
        return found

    def get(self, path: bytes) -> V | None:
        if len(path) <= SHORT_PATH:
            return self._short.get(path)
        parent, _, name = path.rpartition(b"/")
        found = self._below.get(parent)
        return None if found is None else found.get(name)

    def __setitem__(self, path: bytes, value: V) -> None:
        if len(path) <= SHORT_PATH:
            self._short[path] = value
        else:
            parent, _, name = path.rpartition(b"/")
            self._below.setdefault(parent, {})[name] = value

    def pop(self, path: bytes) -> V:
        """Raises KeyError if the path is not in the table."""
        if len(path) <= SHORT_PATH:
            return self._short.pop(path)
        parent, _, name = path.rpartition(b"/")
        below = self._below[parent]
        value = below.pop(name)
        if not below:
            del self._below[parent]
        return value

    def clear(self) -> None:
        self._short, self._below = {}, {}

    def items(self) -> Iterator[tuple[bytes, V]]:
        """Yields short paths in order of insertion, then long paths grouped by parent."""
        yield from self._short.items()
        for parent, below in self._below.items():
            for name, value in below.items():
                yield join(parent, name), value
