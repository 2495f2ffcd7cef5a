"""Directories of a search as packed columns: what each contains beside files with content, and whether all
of it was met. Some ninety bytes a directory, and its name.
"""

from __future__ import annotations

import os
from array import array

from blake3 import blake3

from rdc.model.entries import Kind, little_endian_integers, strings
from rdc.progress import Event, Problem, Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.tree.walk import WalkedDirectory

DIGEST_BYTES = 32
NO_PARENT = -1
_COMPARED = frozenset((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK))


class DirectoryRows:
    """Directories in the order of the walk, so that each follows its parent."""

    def __init__(self) -> None:
        self.parents = array("q")
        self.operands = array("I")
        """Number of the PATH below which each was found."""
        self.files = array("Q")
        """Files with content directly in each."""
        self.subdirectories = array("Q")
        """Directories listed in each, whether the walk entered them or not."""
        self.others = bytearray()
        """DIGEST_BYTES of the names of empty files and of the names and targets of symlinks in each."""
        self.incomplete = bytearray()
        """1 where an entry is of a kind that has no content to compare, or could not be looked at."""
        self._names: list[bytes] = []
        """The name below the parent; at the top the PATH as shown."""
        self._above: list[tuple[bytes, int]] = []
        """Paths and numbers of the directories above the last one added, and itself."""
        self._lacking: set[bytes] = set()
        """Directories as shown, without slashes at the end, which lack an entry in their listing."""

    def __len__(self) -> int:
        return len(self.parents)

    def noting(self, reporter: Reporter) -> Reporter:
        """Return a reporter that also notes which directories lack an entry in their listing. The walk
        reports such an entry before it yields the directory."""

        def report(event: Event, /) -> None:
            if isinstance(event, Problem):
                self._lacking.add(os.path.dirname(event.path_bytes).rstrip(b"/"))
            reporter(event)

        return report

    def add(self, operand: int, root: Root, found: WalkedDirectory) -> int:
        """Add a directory of the walk below a PATH, which is open as `root`, and return its number."""
        number, path = len(self), found.path
        lacking = bool(self._lacking) and root.shown(path).rstrip(b"/") in self._lacking
        if not path:
            self._above = []
        while self._above and not path.startswith(self._above[-1][0]):
            self._above.pop()
        above, parent = self._above[-1] if self._above else (b"", NO_PARENT)
        self._above.append((path + b"/" if path else b"", number))
        listing = found.listing
        kinds, names = listing.kinds, strings(listing.names)
        sizes = little_endian_integers("Q", listing.sizes)
        full = sum([1 for kind, size in zip(kinds, sizes, strict=True) if kind == Kind.FILE and size])
        hasher = blake3()
        for row in listing.rows_of(Kind.FILE):
            if not sizes[row]:
                hasher.update(b"f" + names[row] + b"\0")
        for row, target in zip(listing.rows_of(Kind.SYMLINK), strings(listing.targets), strict=True):
            hasher.update(b"l" + names[row] + b"\0" + target + b"\0")
        self.parents.append(parent)
        self.operands.append(operand)
        self.files.append(full)
        self.subdirectories.append(kinds.count(Kind.DIRECTORY))
        self.others += hasher.digest(DIGEST_BYTES)
        self.incomplete.append(lacking or not _COMPARED.issuperset(kinds))
        self._names.append(path[len(above) :] if path else root.shown(b""))
        return number

    def name(self, number: int) -> bytes:
        return self._names[number]

    def shown(self, number: int) -> bytes:
        """Return the path as the user would type it, without a slash at its end."""
        parts = []
        while number != NO_PARENT:
            parts.append(self._names[number])
            number = self.parents[number]
        path = os.path.join(*reversed(parts))
        return path.rstrip(b"/") or path[:1]
