"""Identical files: what is asked, and what is found."""

from __future__ import annotations

from enum import Enum

from rdc.model.sync import FilterRule
from rdc.records import dataclass

__all__ = ["DuplicateFile", "DuplicateGroup", "DuplicateOptions", "DuplicateOrder", "DuplicateSummary"]


class DuplicateOrder(Enum):
    """Which groups come first."""

    WASTE = "waste"
    """Those whose extra copies occupy most."""
    SIZE = "size"
    """Those of the largest files."""
    COUNT = "count"
    """Those of most files."""
    PATH = "path"
    """In the order in which their first files were found: of PATHs as given, then of names."""


@dataclass(frozen=True, slots=True)
class DuplicateOptions:
    rules: tuple[FilterRule, ...] = ()
    """Which entries take part, patterns relative to each PATH."""
    min_size: int = 1
    """Bytes; with 0, empty files are identical to each other."""
    max_size: int | None = None
    """Bytes; None: any."""
    one_file_system: bool = False
    """Directories on other file systems than their PATH are left out."""
    links: bool = False
    """Names of one file (hard links) are listed with the first of them."""
    verify: bool = False
    """Files of equal digest are compared byte by byte as well."""
    order: DuplicateOrder = DuplicateOrder.WASTE
    workers: int | None = None
    """Threads that read; None: as many as this process has CPUs, up to four."""


@dataclass(frozen=True, slots=True)
class DuplicateFile:
    """One file, by the first of its names that was found."""

    path: bytes
    """As a person reaches it: the PATH that was given, then what is below it."""
    links: tuple[bytes, ...] = ()
    """Its other names that were found, where they were asked for."""


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Two or more files of the same content."""

    size: int
    """Bytes of each."""
    files: tuple[DuplicateFile, ...]

    @property
    def waste(self) -> int:
        """Bytes of all files but one."""
        return self.size * (len(self.files) - 1)


@dataclass(frozen=True, slots=True)
class DuplicateSummary:
    searched: int
    """Entries that were looked at."""
    groups: int
    files: int
    """In all groups together, names of one file counted once."""
    waste: int
    """Bytes that would be free if each group were one file."""
    files_read: int
    """Files of which anything was read."""
    bytes_read: int
    """Of contents; files in several stages count for each."""
