"""Files that resemble each other without being identical, by their traits: hints, not measured overlaps."""

from __future__ import annotations

import os

from rdc.model.scan import SimilarGroup
from rdc.records import dataclass
from rdc.signature.trait_column import traits_at
from rdc.similarity.index import SimilarityIndex
from rdc.similarity.traits import estimate_of
from rdc.survey.disjoint_sets import DisjointSets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Sequence

    from rdc.survey.places import Places

__all__ = ["Candidate", "ResemblingFiles"]

FILES = 1 << 17
"""Different files compared at most, some 250 bytes each; of more, the small ones are left out first."""

MATCHES = 8
"""Traits of twelve that must agree: a resemblance of about two thirds. Unrelated files have so many once in
a million million pairs."""

GROUPS = 100
PATHS = 20
"""Groups in a report, and names of one group: it is read by people."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One file, or the first of several identical ones."""

    size: int
    traits: bytes
    directory: int
    name: bytes


class ResemblingFiles:
    """Remembers one file of each content and groups them in the end."""

    def __init__(self) -> None:
        self.files: dict[int, Candidate] = {}
        """By the key of the file level."""
        self.least = 0
        """Bytes below which files are not compared."""

    def add(self, key: int, file: Candidate) -> None:
        """Files without traits, which are very short or without any variety, resemble nothing."""
        if not file.traits or file.size < self.least:
            return
        known = self.files.get(key)
        # The first by place stands for all identical ones, whichever was read first.
        if known is None or (file.directory, file.name) < (known.directory, known.name):
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
        """`add` for each row; `traits` is a column of the files'."""
        files, least = self.files, self.least
        for row, key in enumerate(keys):
            if sizes[row] < least:
                continue
            known = files.get(key)
            if known is not None and (known.directory, known.name) <= (directories[row], names[row]):
                continue
            own = traits_at(traits, row)
            if own:
                files[key] = Candidate(sizes[row], own, directories[row], names[row])
        self._bound()

    def _bound(self) -> None:
        while len(self.files) > FILES:
            self.drop(max(1024, 2 * self.least))

    def drop(self, least: int) -> None:
        """Compare only files from `least` bytes on."""
        if least > self.least:
            self.least = least
            self.files = {key: file for key, file in self.files.items() if file.size >= least}

    def groups(self, places: Places) -> tuple[SimilarGroup, ...]:
        """Connected components of the pairs that agree in MATCHES traits, most bytes first.

        A group's resemblance is the estimate for its least similar pair that ties it together.
        """
        index = SimilarityIndex()
        files = sorted(self.files.values(), key=lambda file: (file.directory, file.name))
        index.add_many(range(len(files)), [one.traits for one in files], [one.size for one in files])
        sets = DisjointSets()
        fewest: dict[int, int] = {}
        # Best pairs first, so that a group is tied together by what ties it most.
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
            SimilarGroup(
                paths=tuple(
                    os.path.join(places.directories[files[number].directory], files[number].name)
                    for number in found[:PATHS]
                ),
                bytes=sum(files[number].size for number in found),
                resemblance=min(1.0, max(0.0, estimate_of(fewest[first]).jaccard)),
            )
            for first, found in groups[:GROUPS]
        )
