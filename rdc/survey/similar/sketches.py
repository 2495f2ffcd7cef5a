"""Sketches: tells files apart that differ too much, without reading them again."""

from __future__ import annotations

from operator import eq

from rdc.kernel.constants import SKETCH_BYTES
from rdc.similarity.estimate import probability_of_matches
from rdc.survey.similar.file_traits import NO_SKETCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.similar.file_traits import FileTraits
    from rdc.survey.similar.window_sets import WindowSets
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["Sketches", "least_agreeing"]

RECALL = 0.99
"""Part of the pairs at the threshold whose sketches agree in enough samples, or more."""


def least_agreeing(threshold: float) -> int:
    """Samples of two sketches that must agree, for files that resemble each other by `threshold`."""
    least = 0
    while probability_of_matches(threshold, least + 1, SKETCH_BYTES, 8) >= RECALL:
        least += 1
    return least


class Sketches:
    """The sketches of all files of a search. Those that reading did not give are made from windows, and
    kept."""

    def __init__(self, files: FileColumns, traits: FileTraits, sets: WindowSets, threshold: float) -> None:
        self.least = least_agreeing(threshold)
        self._files = files
        self._traits = traits
        self._sets = sets
        self._made: dict[int, bytes] = {}
        """By position in FileTraits.rows."""

    def differ(self, first: int, second: int) -> bool:
        """Whether the files at two positions of FileTraits.rows agree in too few samples, or one of them
        cannot be read any more."""
        agreeing: int = sum(map(eq, self._of(first), self._of(second)))
        return agreeing < self.least

    def _of(self, position: int) -> bytes:
        at = position * SKETCH_BYTES
        known = bytes(self._traits.sketches[at : at + SKETCH_BYTES])
        if known != NO_SKETCH:
            return known
        if position not in self._made:
            made = self._sets.of(self._files, self._traits.rows[position])
            if made is None:
                return b""
            self._made[position] = made.sketch()
        return self._made[position]
