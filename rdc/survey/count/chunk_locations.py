"""ChunkLocations: numbers the directories and types of files, and counts the files in each."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SUFFIX_BYTES", "ChunkLocations", "suffix_of"]

SUFFIX_BYTES = 16
"""Longer suffixes are parts of names, not types."""

_DOT = ord(".")


def suffix_of(name: bytes) -> bytes:
    """The type that a file's name suggests: `.jpg` for `a/B.JPG`, b"" for `README` and `.profile`."""
    base = name.rpartition(b"/")[2]
    stem, dot, suffix = base.rpartition(b".")
    if not dot or not stem.strip(b".") or not suffix or len(suffix) > SUFFIX_BYTES:
        return b""
    return b"." + suffix.lower()


class ChunkLocations:
    """Locations. One is a directory and a suffix; a reference to a chunk stores its number in 4 bytes."""

    def __init__(self) -> None:
        self.directories: list[bytes] = []
        """Paths as the user would type them."""
        self.parents: array[int] = array("q")
        """Number of the parent of each directory; -1 at the top."""
        self.walked: array[int] = array("Q")
        """Position of each directory in the walk over everything, of which a slice keeps a part."""
        self.operands: array[int] = array("I")
        """Number of the path of the scan that led to each directory."""
        self.suffixes: list[bytes] = []
        self.directory_of: array[int] = array("I")
        self.suffix_of: array[int] = array("I")
        """Suffix number of each location."""
        self.files: array[int] = array("Q")
        self.bytes: array[int] = array("Q")
        """Bytes of the files in each location."""
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._suffix_numbers: dict[bytes, int] = {}

    def add_directory(self, path: bytes, parent: int, operand: int = 0, walked: int | None = None) -> int:
        """`walked`: as in the attribute; None if all directories of the walk are added."""
        number = len(self.directories)
        self.directories.append(path)
        self.parents.append(parent)
        self.walked.append(number if walked is None else walked)
        self.operands.append(operand)
        return number

    def location(self, directory: int, suffix: bytes) -> int:
        number = self._numbers.get((directory, suffix))
        if number is None:
            number = self._numbers[directory, suffix] = len(self.directory_of)
            kind = self._suffix_numbers.get(suffix)
            if kind is None:
                kind = self._suffix_numbers[suffix] = len(self.suffixes)
                self.suffixes.append(suffix)
            self.directory_of.append(directory)
            self.suffix_of.append(kind)
            self.files.append(0)
            self.bytes.append(0)
        return number

    def locations_of(self, directory: int, names: Sequence[bytes]) -> list[int]:
        """The location of each file of one directory."""
        known: dict[bytes, int] = {}
        found = []
        for name in names:
            stem, dot, suffix = name.rpartition(b".")
            # Only for a name that begins with a dot does `suffix_of` depend on more than the part after the
            # last dot.
            plain = suffix if stem and stem[0] != _DOT else name if dot else b""
            number = known.get(plain)
            if number is None:
                number = known[plain] = self.location(directory, suffix_of(name))
            found.append(number)
        return found

    def count(self, location: int, size: int) -> None:
        self.files[location] += 1
        self.bytes[location] += size
