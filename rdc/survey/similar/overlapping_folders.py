"""Finds overlapping directories, by the bytes that their files have in common.

Files are matched in pairs: identical files first, then files found similar, for the share of their windows
that is common. A matched pair counts for the directories of both files, and for the directories above while
these have the same names. So releases of a package match at their top directories, and copied photographs
in the folders that hold them. Only a few pairs of a file with many similar files are known, so the true
overlap may be larger.
"""

from __future__ import annotations

import os
from collections import defaultdict

from rdc.lean.records import dataclass
from rdc.limits.searches import FOLDER_PAIRS
from rdc.model.similar import SimilarFolders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.similar.similar_files import ReadFiles, Similar

__all__ = ["FolderOverlaps", "folder_overlaps"]

BOILERPLATE_COPIES = 32
"""Contents with at least this many copies are not matched: a licence text in a thousand directories says
nothing about any two of them."""


@dataclass(frozen=True, slots=True)
class FolderOverlaps:
    pairs: tuple[SimilarFolders, ...]
    """Most shared bytes first. No directory contains its partner, and no pair repeats the pair of their
    parents."""
    boilerplate: int
    """Contents left out because they have too many copies."""
    dropped: int
    """Matches left out for lack of memory."""


def folder_overlaps(read: ReadFiles, similar: Similar, threshold: float) -> FolderOverlaps:
    """Pairs of directories that share at least `threshold` of the smaller one's bytes."""
    return _Overlaps(read).found(similar, threshold)


class _Overlaps:
    def __init__(self, read: ReadFiles) -> None:
        self._files = read.files
        self._traits = read.traits
        self._shared: defaultdict[tuple[bytes, bytes], int] = defaultdict(int)
        self._dropped = 0

    def found(self, similar: Similar, threshold: float) -> FolderOverlaps:
        boilerplate = self._match_copies()
        for edge in similar.edges:
            first, second = self._traits.rows[edge.first], self._traits.rows[edge.second]
            shared = round(self._files.sizes[first] * edge.first_in_second)
            for one, other in self._across(first, second):
                self._count(one, other, shared)
        sizes = self._sizes()
        pairs = [
            SimilarFolders(first, second, shared, sizes[first], sizes[second])
            for (first, second), shared in self._shared.items()
        ]
        chosen = {(pair.first, pair.second): pair for pair in pairs if pair.overlap >= threshold}
        # A pair whose parent directories are also a pair is left out.
        tops = [pair for key, pair in chosen.items() if _above(*key) not in chosen]
        tops.sort(key=lambda pair: (-pair.shared, pair.first, pair.second))
        return FolderOverlaps(tuple(tops), boilerplate, self._dropped)

    def _match_copies(self) -> int:
        """Counts identical files. Returns the number of contents with too many copies."""
        boilerplate = 0
        for row in self._traits.rows:
            copies = self._traits.copies.of(row)
            if not copies:
                continue
            if len(copies) >= BOILERPLATE_COPIES:
                boilerplate += 1
                continue
            for one, other in self._matched([row, *copies]):
                self._count(one, other, self._files.sizes[row])
        return boilerplate

    def _across(self, first: int, second: int) -> Iterator[tuple[int, int]]:
        """Pairs two similar files and their copies: those of equal name, and the two files themselves."""
        ones, others = ([row, *self._traits.copies.of(row)] for row in (first, second))
        if max(len(ones), len(others)) > BOILERPLATE_COPIES:
            return
        for one in ones:
            for other in others:
                if self._files.name(one) == self._files.name(other) or (one, other) == (first, second):
                    yield one, other

    def _matched(self, rows: list[int]) -> Iterator[tuple[int, int]]:
        """Pairs these identical files between any two directories, as many as both have."""
        by_folder: dict[bytes, list[int]] = {}
        for row in rows:
            by_folder.setdefault(self._folder(row), []).append(row)
        folders = sorted(by_folder)
        for at, folder in enumerate(folders):
            for other in folders[at + 1 :]:
                yield from zip(by_folder[folder], by_folder[other], strict=False)

    def _count(self, one: int, other: int, shared: int) -> None:
        first, second = sorted((self._folder(one), self._folder(other)))
        while not _nested(first, second):
            if (first, second) in self._shared or len(self._shared) < FOLDER_PAIRS:
                self._shared[first, second] += shared
            else:
                self._dropped += 1
            if os.path.basename(first) != os.path.basename(second):
                return
            first, second = _above(first, second)

    def _folder(self, row: int) -> bytes:
        return self._files.directory(row).shown.rstrip(b"/") or b"."

    def _sizes(self) -> dict[bytes, int]:
        """Total file bytes below each directory that is in a pair."""
        sizes = dict.fromkeys((folder for pair in self._shared for folder in pair), 0)
        for row, size in enumerate(self._files.sizes):
            folder = self._folder(row)
            while True:
                if folder in sizes:
                    sizes[folder] += size
                above = os.path.dirname(folder)
                if above in {folder, b""}:
                    break
                folder = above
        return sizes


def _nested(first: bytes, second: bytes) -> bool:
    """Whether the directories are equal or one contains the other, which is no overlap. `first` must sort
    first."""
    return not first or second == first or second.startswith(first.rstrip(b"/") + b"/")


def _above(first: bytes, second: bytes) -> tuple[bytes, bytes]:
    one, other = sorted((os.path.dirname(first), os.path.dirname(second)))
    return one, other
