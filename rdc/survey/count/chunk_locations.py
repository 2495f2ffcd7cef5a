"""The places of chunks, and files that resemble each other: the common content of directories and types of
files.
"""

from __future__ import annotations

import os
import re
from array import array
from itertools import compress

from rdc.kernel import select_chunks
from rdc.kernel.constants import TRAIT_COUNT
from rdc.lean.records import Record
from rdc.model.scan import SimilarFiles
from rdc.signature.tree import traits_at
from rdc.similarity.index import SimilarityIndex, UnionFind
from rdc.survey.walk.file_columns import Groups, equal_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# ChunkLocations: numbers the directories and types of files, and counts the files in each.

SUFFIX_BYTES = 16
"""Longer suffixes are parts of names, not types."""

_DOT = ord(".")
_LIBRARY = re.compile(rb"(.+\.so)(?:\.[0-9]+)+\Z", re.IGNORECASE | re.DOTALL)
"""A shared library with its version: its type is `.so`."""


def suffix_of(name: bytes) -> bytes:
    """Return the type that a file's name suggests: `.jpg` for `a/B.JPG`, `.so` for `libx.so.1.2`, b"" for
    `README` and `.profile`."""
    base = name.rpartition(b"/")[2]
    if base[-1:].isdigit() and (library := _LIBRARY.match(base)):
        base = library[1]
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
        """Add a directory and return its number. `walked`: as in the attribute; None if all directories of
        the walk are added."""
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
        """Return the location of each file of one directory."""
        known: dict[bytes, int] = {}
        found = []
        for name in names:
            stem, dot, suffix = name.rpartition(b".")
            # `suffix_of` depends on more than the part after the last dot only if the name begins with a dot,
            # or if that part may be a version.
            whole = not stem or stem[0] == _DOT or suffix.isdigit()
            plain = (name if dot else b"") if whole else suffix
            number = known.get(plain)
            if number is None:
                number = known[plain] = self.location(directory, suffix_of(name))
            found.append(number)
        return found

    def count(self, location: int, size: int) -> None:
        self.files[location] += 1
        self.bytes[location] += size


# ChunkReferences: where chunks occur, to attribute duplicate bytes to directories and to find overlapping
# ones.

REFERENCES = 1 << 19
"""Most references stored, 20 bytes each: all of 8 GB at 16 KiB. In more data, one chunk in 2, 4, 8 ... is
followed. That still tells directories of some megabytes apart."""

SALT = 0x7265_6673_0000_0001
"""Makes this selection independent of the samples of tables and compression."""


class ChunkReferences:
    """(chunk, location) for every occurrence of the followed chunks. A chunk is followed at all its
    occurrences or at none."""

    def __init__(self) -> None:
        self.keys: array[int] = array("Q")
        self.sizes: array[int] = array("Q")
        self.locations: array[int] = array("I")
        self.shift = 0
        """One chunk in 2^shift is followed."""
        self._groups: Groups | None = None
        """Rows of equal keys, until rows change: a report asks three times."""

    def add(self, keys: bytes, sizes: bytes, locations: array[int]) -> None:
        """Add occurrences as columns."""
        self._groups = None
        if self.shift:
            rows = array("Q", select_chunks(keys, SALT, self.shift))
            if not rows:
                return
            column, lengths = memoryview(keys).cast("Q"), memoryview(sizes).cast("Q")
            self.keys.extend(column[row] for row in rows)
            self.sizes.extend(lengths[row] for row in rows)
            self.locations.extend(locations[row] for row in rows)
        else:
            self.keys.frombytes(keys)
            self.sizes.frombytes(sizes)
            self.locations.extend(locations)
        while len(self.keys) > REFERENCES and self.shift < 63:
            self.thin(self.shift + 1)

    def thin(self, shift: int) -> None:
        """Follow only one chunk in 2^shift from now on."""
        if shift <= self.shift:
            return
        self.shift, self._groups = shift, None
        selected = bytearray(len(self.keys))
        for row in array("Q", select_chunks(self.keys, SALT, shift)):
            selected[row] = 1
        self.keys = array("Q", compress(self.keys, selected))
        self.sizes = array("Q", compress(self.sizes, selected))
        self.locations = array("I", compress(self.locations, selected))

    def thinned(self, shift: int) -> ChunkReferences:
        """Return a copy that follows one chunk in 2^shift."""
        copy = ChunkReferences()
        copy.keys, copy.sizes, copy.locations = self.keys[:], self.sizes[:], self.locations[:]
        copy.shift = self.shift
        copy.thin(shift)
        return copy

    def repeated(self) -> Iterator[tuple[int, list[int]]]:
        """Yield every chunk that occurs twice or more, in an order of their keys: its bytes, and the location
        of every occurrence."""
        if self._groups is None:
            self._groups = equal_groups(self.keys, 8)
        for rows in self._groups:
            yield self.sizes[rows[0]], [self.locations[row] for row in rows]


# ResemblingFiles: groups files that are similar but not identical, by traits. The result is a hint, not a
# measurement.

FILES = 1 << 17
"""Most distinct files compared, some 250 bytes each. If there are more, the smallest are left out first."""

MATCHES = 8
"""Traits of twelve that must agree: a resemblance of about two thirds. Unrelated files agree in 8 once in a
million million pairs."""

GROUPS = 100
PATHS = 20
"""Limits of a report: groups, and names per group. More would not be read."""


class Candidate(Record):
    """One file, or that of the least path among several identical ones."""

    size: int
    traits: bytes
    directory: int
    name: bytes


def likely_resemblance(matches: int) -> float:
    """Estimated resemblance, 0 to 1, of files that are not identical and agree in `matches` traits.

    It is the mean over all resemblances that give this number (Laplace's rule of succession): agreement of
    all twelve traits does not prove that all content is equal. SURVEY.md has its error.
    """
    return (matches + 1) / (TRAIT_COUNT + 2)


class ResemblingFiles:
    """Collects one file of each content, and groups them at the end."""

    def __init__(self, directories: Sequence[bytes]) -> None:
        """`directories`: the paths that the numbers of candidates refer to; more may be appended later."""
        self._directories = directories
        self.files: dict[int, Candidate] = {}
        """By key of the file level."""
        self.least = 0
        """Files with fewer bytes are not compared."""

    def add(self, key: int, file: Candidate) -> None:
        """Add a file. A file without traits, which is very short or uniform, is not similar to anything."""
        if not file.traits or file.size < self.least:
            return
        known = self.files.get(key)
        # The least path represents all identical files, in whatever order they were read or merged.
        if known is None or self._before(file.directory, file.name, known):
            self.files[key] = file
        self._bound()

    def add_column(
        self,
        keys: array[int],
        sizes: array[int],
        traits: bytes,
        directories: Sequence[int],
        names: Sequence[bytes],
    ) -> None:
        """Call `add` for each row. `traits` is a column of the files' traits."""
        files, least = self.files, self.least
        for row, key in enumerate(keys):
            if sizes[row] < least:
                continue
            known = files.get(key)
            if known is not None and not self._before(directories[row], names[row], known):
                continue
            own = traits_at(traits, row)
            if own:
                files[key] = Candidate(sizes[row], own, directories[row], names[row])
        self._bound()

    def _before(self, directory: int, name: bytes, other: Candidate) -> bool:
        return (self._directories[directory], name) < (self._directories[other.directory], other.name)

    def _bound(self) -> None:
        while len(self.files) > FILES:
            self.drop(max(1024, 2 * self.least))

    def drop(self, least: int) -> None:
        """Compare only files of at least `least` bytes from now on."""
        if least > self.least:
            self.least = least
            self.files = {key: file for key, file in self.files.items() if file.size >= least}

    def groups(self) -> tuple[SimilarFiles, ...]:
        """Return the connected components of the pairs that agree in MATCHES traits, most bytes first.

        A group's resemblance is the estimate of the weakest pair needed to connect it.
        """
        index = SimilarityIndex()
        files = sorted(self.files.values(), key=lambda file: (self._directories[file.directory], file.name))
        index.add_many(range(len(files)), [one.traits for one in files], [one.size for one in files])
        sets = UnionFind()
        fewest: dict[int, int] = {}
        # The best pairs come first, so each group is connected by its strongest pairs.
        pairs = sorted(index.pairs(MATCHES, spanning=True), key=lambda pair: -pair.matches)
        for pair in pairs:
            if sets.join(pair.first, pair.second):
                fewest[sets.top(pair.first)] = pair.matches
        members: dict[int, list[int]] = {}
        for number in range(len(files)):
            members.setdefault(sets.top(number), []).append(number)
        groups = [(first, found) for first, found in members.items() if len(found) > 1]
        groups.sort(key=lambda group: -sum(files[number].size for number in group[1]))
        return tuple(
            SimilarFiles(
                paths_bytes=tuple(
                    os.path.join(self._directories[files[number].directory], files[number].name)
                    for number in found[:PATHS]
                ),
                bytes=sum(files[number].size for number in found),
                resemblance=likely_resemblance(fewest[first]),
            )
            for first, found in groups[:GROUPS]
        )
