"""Selection: which entries take part if several SRC, --relative or --files-from name some paths of a tree."""

from __future__ import annotations

from rdc.errors import UsageError
from rdc.files.base.paths import join
from rdc.limits import SELECTED_BYTES, SELECTED_DIRECTORIES
from rdc.model.entries import strings
from rdc.model.selection import SelectedPaths, read_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


_NOTHING: frozenset[bytes] = frozenset()

_REMEMBERED = 8
"""Directories whose names are unpacked at a time: a walk asks about one after another."""


class Selection:
    """The selection from a tree, by names alone: both sides compute the same from the same names.

    A directory *above* a selected path takes part with the selected names only, and nothing is deleted in it.
    A selected directory takes part with everything below it, or, without recursion, only itself.
    """

    def __init__(self, selected: Sequence[SelectedPaths], *, recursive: bool = True) -> None:
        """Take `selected`: names that `check_name` accepts. Raises UsageError for too many directories."""
        self._recursive = recursive
        self.top_counts = False
        """True if the root directory itself takes part, with its metadata."""
        self._selects_top = False
        """True if the root directory is selected."""
        self._opened: set[bytes] = set()
        """Selected directories whose contents count, without recursion."""
        self._growing: dict[bytes, bytearray] = {b"": bytearray()}
        """The future rows of `_packed`."""
        self._packed: dict[bytes, bytes] = {}
        """Each directory above a selected path, with the names that take part, and NUL after each. A name
        that ends in '/' is that of another such directory, without a '/' it is selected; it may have both
        forms. Packed, a name takes its own bytes; a set would take a hundred more."""
        self._unpacked: dict[bytes, tuple[frozenset[bytes], frozenset[bytes]]] = {}
        """The names that take part, and those that are selected, of the last directories."""
        self._bytes = 0
        """The bytes of these directories' paths."""
        for paths in selected:
            for name in paths.names:
                self._add(name)
        self._packed = {path: bytes(packed) for path, packed in self._growing.items()}
        self._growing.clear()
        self._both = set(self._selected_above())
        """Directories above selected paths that are selected themselves."""
        self._whole: set[bytes] = set(self._opened) if not recursive else self._covered()
        """Directories above selected paths of which everything takes part."""

    def _add(self, text: bytes) -> None:
        name = read_name(text)
        path = name.path
        if name.contents and not self._recursive:
            self._opened.add(path)
        self.top_counts = self.top_counts or name.with_top
        if not path:
            self._selects_top = True
            return
        end = b"\0"
        while path:
            above, _, component = path.rpartition(b"/")
            known = self._growing.get(above)
            if known is not None:
                # The directories above it are known, too.
                known += component + end
                return
            self._growing[above] = bytearray(component + end)
            self._check_bounds(above)
            path, end = above, b"/\0"

    def _check_bounds(self, new: bytes) -> None:
        self._bytes += len(new)
        if len(self._growing) > SELECTED_DIRECTORIES or self._bytes > SELECTED_BYTES:
            raise UsageError(
                f"the selected names are in more than {SELECTED_DIRECTORIES:,} directories, or these have"
                f" more than {SELECTED_BYTES:,} bytes of paths; name directories, or sync parts one by one"
            )

    def _selected_above(self) -> Iterator[bytes]:
        if self._selects_top:
            yield b""
        for directory, packed in self._packed.items():
            if b"/\0" in packed:
                names = strings(packed)
                chosen = {name for name in names if not name.endswith(b"/")}
                for name in names:
                    if name[:-1] in chosen and name.endswith(b"/"):
                        yield join(directory, name[:-1])

    def _covered(self) -> set[bytes]:
        """Return the directories whose recursive selection includes everything that other names select in
        them."""
        covered: set[bytes] = set()
        if self._both:
            # A directory comes before those below it.
            for path in sorted(self._packed):
                if path in self._both or (path and path.rpartition(b"/")[0] in covered):
                    covered.add(path)
        return covered

    def _names_in(self, directory: bytes) -> tuple[frozenset[bytes], frozenset[bytes]]:
        """Return the names that take part in a directory above selected paths, and those that are
        selected."""
        found = self._unpacked.get(directory)
        if found is None:
            if len(self._unpacked) >= _REMEMBERED:
                self._unpacked.clear()
            names = strings(self._packed[directory])
            chosen = frozenset(name for name in names if not name.endswith(b"/"))
            above = frozenset(name[:-1] for name in names if name.endswith(b"/"))
            found = self._unpacked[directory] = chosen | above, chosen
        return found

    @property
    def ends(self) -> Iterator[bytes]:
        """The selected paths themselves; b"" is the root directory."""
        if self._selects_top:
            yield b""
        for directory, packed in self._packed.items():
            for name in dict.fromkeys(strings(packed)):
                if not name.endswith(b"/"):
                    yield join(directory, name)

    def is_end(self, path: bytes) -> bool:
        """Return whether the path itself is selected."""
        if not path:
            return self._selects_top
        above, _, name = path.rpartition(b"/")
        return above in self._packed and name in self._names_in(above)[1]

    @property
    def restricted(self) -> Iterator[bytes]:
        """The directories that take part with some names only, among those that are named."""
        return (path for path in self._packed if path not in self._whole)

    def names(self, path: bytes) -> Collection[bytes] | None:
        """Return the names that take part in the directory at `path`; None: all of them."""
        if path in self._packed and path not in self._whole:
            return self._names_in(path)[0]
        if self._recursive or path in self._opened:
            return None
        return _NOTHING if self.is_end(path) or path.rpartition(b"/")[0] in self._opened else None

    def is_closed(self, path: bytes) -> bool:
        """Return whether the directory at `path` takes part without any entry."""
        names = self.names(path)
        return names is not None and not names

    def has_rules(self, directory: bytes) -> bool:
        """Return whether rule files of the directory count.

        As in rsync, they do not count in the directory that the names are below, unless it is selected.
        Without recursion they count where the contents are selected, and below: a directory there that only
        DST has is deleted but for what its rule files protect.
        """
        if not self._recursive:
            while directory and directory not in self._opened:
                directory = directory.rpartition(b"/")[0]
            return directory in self._opened
        return bool(directory) or self._selects_top

    def takes(self, directory: bytes, name: bytes) -> bool:
        """Return whether an entry of a directory that takes part does so itself."""
        names = self.names(directory)
        return names is None or name in names

    def is_above(self, path: bytes) -> bool:
        """Return whether the directory at `path` takes part only because something below it is selected."""
        return path in self._packed and path not in self._whole and path not in self._both
