"""ResemblingFiles: groups files that are similar but not identical, by traits. The result is a hint, not a
measurement."""

from __future__ import annotations

import os

from rdc.kernel.constants import TRAIT_COUNT
from rdc.lean.records import dataclass
from rdc.model.scan import SimilarFiles
from rdc.signature.tree import traits_at
from rdc.similarity.index import SimilarityIndex
from rdc.similarity.union_find import UnionFind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

__all__ = ["FILES", "Candidate", "ResemblingFiles", "likely_resemblance"]

FILES = 1 << 17
"""Most distinct files compared, some 250 bytes each. If there are more, the smallest are left out first."""

MATCHES = 8
"""Traits of twelve that must agree: a resemblance of about two thirds. Unrelated files agree in 8 once in a
million million pairs."""

GROUPS = 100
PATHS = 20
"""Limits of a report: groups, and names per group. More would not be read."""


@dataclass(frozen=True, slots=True)
class Candidate:
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
        """Adds a file. A file without traits, which is very short or uniform, is not similar to anything."""
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
        """Calls `add` for each row. `traits` is a column of the files' traits."""
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
        """Compares only files of at least `least` bytes from now on."""
        if least > self.least:
            self.least = least
            self.files = {key: file for key, file in self.files.items() if file.size >= least}

    def groups(self) -> tuple[SimilarFiles, ...]:
        """Connected components of the pairs that agree in MATCHES traits, most bytes first.

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
                paths=tuple(
                    os.path.join(self._directories[files[number].directory], files[number].name)
                    for number in found[:PATHS]
                ),
                bytes=sum(files[number].size for number in found),
                resemblance=likely_resemblance(fewest[first]),
            )
            for first, found in groups[:GROUPS]
        )
