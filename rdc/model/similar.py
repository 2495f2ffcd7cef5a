"""Files and folders that are alike without being identical: what is asked, and what is found."""

from __future__ import annotations

from rdc.model.sync import FilterRule
from rdc.records import dataclass

__all__ = [
    "Resemblance",
    "SimilarFile",
    "SimilarFolders",
    "SimilarGroup",
    "SimilarOptions",
    "SimilarSummary",
]


@dataclass(frozen=True, slots=True)
class SimilarOptions:
    rules: tuple[FilterRule, ...] = ()
    """Which entries take part, patterns relative to each PATH."""
    min_size: int = 512
    """Bytes; files of less have too few features to tell anything."""
    max_size: int | None = None
    one_file_system: bool = False
    threshold: float = 0.5
    """Jaccard resemblance from which on two files are called similar, above 0 to 1."""
    workers: int | None = None
    """Threads that read; None: as many as this process has CPUs, up to four."""


@dataclass(frozen=True, slots=True)
class Resemblance:
    """How much two files have in common: their chunks, each counted once, by bytes."""

    jaccard: float
    """Of what both hold together, the part that both hold."""
    first_in_second: float
    """The part of the first file that the second one holds."""
    second_in_first: float


@dataclass(frozen=True, slots=True)
class SimilarFile:
    path: bytes
    size: int
    similarity: float
    """Jaccard resemblance with `like`."""
    contained: float
    """The part of this file that `like` holds."""
    like: bytes
    """The file most like this one of those it was compared with."""
    copies: tuple[bytes, ...]
    """Files identical to this one. Other names of one file (hard links) are left out."""


@dataclass(frozen=True, slots=True)
class SimilarGroup:
    """Files connected by resemblance: each is similar to one of the others at least, not to all of them."""

    files: tuple[SimilarFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class SimilarFolders:
    """Two directories, and how much of one is in the other, in identical and in similar files."""

    first: bytes
    second: bytes
    shared: int
    """Bytes that files of the one have in common with files of the other, each file counted once."""
    first_bytes: int
    """Of all files below, within the limits of size."""
    second_bytes: int

    @property
    def overlap(self) -> float:
        """The shared part of the smaller one."""
        least = min(self.first_bytes, self.second_bytes)
        return min(1.0, self.shared / least) if least else 0.0


@dataclass(frozen=True, slots=True)
class SimilarSummary:
    searched: int
    """Entries that were looked at."""
    files: int
    """Files of different content that were compared, by their traits."""
    groups: int
    grouped: int
    """Files in groups, copies not counted."""
    min_matches: int
    """Agreeing traits, of twelve, that make a pair a candidate."""
    candidates: int
    """Pairs whose chunks were compared."""
    false_candidates: int
    """Those that turned out below the threshold."""
    left_out: int
    """Candidates beyond what can be looked at; the weakest."""
