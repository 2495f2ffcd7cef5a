"""Selection: which entries take part if several SRC, --relative or --files-from name some paths of a tree."""

from __future__ import annotations

from rdc.files.base.relative_path import join
from rdc.model.selection import split_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rdc.model.selection import SelectedPaths

__all__ = ["Selection"]

_NOTHING: frozenset[bytes] = frozenset()


class Selection:
    """What is selected of a tree, by the names alone: both sides compute the same from the same names.

    A directory *above* a selected path takes part with the selected names only, and nothing is deleted in it.
    A selected directory takes part with everything below it, or, without recursion, only itself.
    """

    def __init__(self, selected: Sequence[SelectedPaths], *, recursive: bool = True) -> None:
        """Raises ValueError for a name that `split_name` refuses."""
        self._recursive = recursive
        self.top_counts = False
        """Whether the root directory itself takes part, with its metadata."""
        self._ends: set[bytes] = set()
        """Selected paths; b"" is the root directory."""
        self._opened: set[bytes] = set()
        """Selected directories whose contents count without recursion."""
        self._names: dict[bytes, set[bytes]] = {b"": set()}
        for paths in selected:
            for name in paths.names:
                self._add(name)
        if recursive:
            self._drop_covered()
        else:
            for path in self._opened:
                self._names.pop(path, None)

    def _add(self, text: bytes) -> None:
        name = split_name(text)
        above = b""
        for component in name.components:
            self._names.setdefault(above, set()).add(component)
            above = join(above, component)
        self._ends.add(above)
        if name.contents:
            self._opened.add(above)
        self.top_counts = self.top_counts or name.with_top

    def _drop_covered(self) -> None:
        """With recursion a selected directory has everything that other names select in it."""
        for path in list(self._names):
            if self._is_covered(path):
                del self._names[path]

    def _is_covered(self, path: bytes) -> bool:
        """Whether `path` or a directory above it is selected."""
        while path not in self._ends:
            if not path:
                return False
            path = path.rpartition(b"/")[0]
        return True

    @property
    def count(self) -> int:
        """Number of entries that are named, or above a named one."""
        return sum(map(len, self._names.values()))

    @property
    def restricted(self) -> Collection[bytes]:
        """The directories that take part with some names only, among those that are named."""
        return self._names

    def names(self, path: bytes) -> Collection[bytes] | None:
        """The names that take part in the directory at `path`; None: all of them."""
        found = self._names.get(path)
        if found is not None or self._recursive:
            return found
        if path in self._opened:
            return None
        return _NOTHING if path in self._ends or path.rpartition(b"/")[0] in self._opened else None

    def is_closed(self, path: bytes) -> bool:
        """Whether the directory at `path` takes part without any entry."""
        names = self.names(path)
        return names is not None and not names

    def takes(self, directory: bytes, name: bytes) -> bool:
        """Whether an entry of a directory that takes part does so itself."""
        names = self.names(directory)
        return names is None or name in names

    def is_above(self, path: bytes) -> bool:
        """Whether the directory at `path` takes part only because something below it is selected."""
        return path in self._names and path not in self._ends
