"""Selection: which entries take part if several SRC, --relative or --files-from name some paths of a tree."""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.limits.paths import SELECTED_BYTES, SELECTED_DIRECTORIES
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
        """Raises ValueError for a name that `split_name` refuses, UsageError for too many directories."""
        self._recursive = recursive
        self.top_counts = False
        """Whether the root directory itself takes part, with its metadata."""
        self._ends: set[bytes] = set()
        """Selected paths; b"" is the root directory."""
        self._opened: set[bytes] = set()
        """Selected directories whose contents count without recursion."""
        self._names: dict[bytes, set[bytes]] = {b"": set()}
        """Each directory above a selected path, with the names that take part. Its own name is among those of
        the directory above it."""
        self._bytes = 0
        """The bytes of these directories' paths."""
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
        path = name.path
        self._ends.add(path)
        if name.contents:
            self._opened.add(path)
        self.top_counts = self.top_counts or name.with_top
        while path:
            above, _, component = path.rpartition(b"/")
            known = self._names.get(above)
            if known is not None:
                # The directories above it are known, too.
                known.add(component)
                return
            self._names[above] = {component}
            self._check_bounds(above)
            path = above

    def _check_bounds(self, new: bytes) -> None:
        self._bytes += len(new)
        if len(self._names) > SELECTED_DIRECTORIES or self._bytes > SELECTED_BYTES:
            raise UsageError(
                f"the selected names are in more than {SELECTED_DIRECTORIES:,} directories, or these have"
                f" more than {SELECTED_BYTES:,} bytes of paths; name directories, or sync parts one by one"
            )

    def _drop_covered(self) -> None:
        """With recursion a selected directory has everything that other names select in it."""
        covered: set[bytes] = set()
        # A directory comes before those below it.
        for path in sorted(self._names):
            if path in self._ends or (path and path.rpartition(b"/")[0] in covered):
                covered.add(path)
        for path in covered:
            del self._names[path]

    @property
    def ends(self) -> Collection[bytes]:
        """The selected paths themselves; b"" is the root directory."""
        return self._ends

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

    def has_rules(self, directory: bytes) -> bool:
        """Whether rule files of the directory count.

        As in rsync, they do not count in the directory that the names are below, unless it is selected.
        Without recursion they count where the contents are selected, and below: a directory there that only
        DST has is deleted but for what its rule files protect.
        """
        if not self._recursive:
            while directory and directory not in self._opened:
                directory = directory.rpartition(b"/")[0]
            return directory in self._opened
        return bool(directory) or b"" in self._ends

    def takes(self, directory: bytes, name: bytes) -> bool:
        """Whether an entry of a directory that takes part does so itself."""
        names = self.names(directory)
        return names is None or name in names

    def is_above(self, path: bytes) -> bool:
        """Whether the directory at `path` takes part only because something below it is selected."""
        return path in self._names and path not in self._ends
