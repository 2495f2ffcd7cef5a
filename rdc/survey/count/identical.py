"""Files of identical content by name, and how old files are: what a scan tells of whole files beside its
tables of chunks, which have no names.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right, insort
from calendar import timegm

from rdc.model.scan import AgeSummary, IdenticalSummary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CONTENTS = 1 << 16
"""Most contents kept, some 300 bytes each, and up to twice as many between two cuts. If there are more, the
smallest are left out, and of equal sizes those with the least keys."""

NAMES = 8
"""Names kept of each content: the least paths."""

GROUPS = 100
"""Groups in a report."""


class _Content:
    """The files of one content."""

    __slots__ = ("count", "names", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.count = 0
        self.names: list[tuple[bytes, bytes, int]] = []
        """Path of the directory, name, and number of the directory; the least NAMES."""


class IdenticalFiles:
    """Counts the files of each content and keeps some names. Sizes and keys decide what is left out, so
    the result is the same in whatever order files come."""

    def __init__(self, directories: Sequence[bytes]) -> None:
        """`directories`: the paths that the numbers of files refer to; more may be appended later."""
        self._directories = directories
        self.contents: dict[int, _Content] = {}
        """By key of the file level."""
        self.least = 1
        """Smaller files are not kept."""
        self._floor = (0, 0)
        """Size and key below which CONTENTS larger contents are known."""

    def add_column(
        self,
        keys: Iterable[int],
        sizes: Iterable[int],
        directories: Iterable[int],
        names: Iterable[bytes],
        counts: Iterable[int] | None = None,
    ) -> None:
        """Add files. `sizes`: bytes without holes; copies that differ in holes count with the most. `counts`:
        files that each row stands for, one if absent."""
        contents, least = self.contents, self.least
        rows = zip(keys, sizes, directories, names, strict=True)
        times = iter(counts) if counts is not None else None
        for key, size, directory, name in rows:
            count = 1 if times is None else next(times)
            if size < least or (size, key) < self._floor:
                continue
            content = contents.get(key)
            if content is None:
                content = contents[key] = _Content(size)
            content.count += count
            content.size = max(content.size, size)
            if len(content.names) < NAMES or (self._directories[directory], name) < content.names[-1][:2]:
                insort(content.names, (self._directories[directory], name, directory))
                del content.names[NAMES:]
            if len(contents) >= 2 * CONTENTS:
                self._cut()
                contents = self.contents

    def _cut(self) -> None:
        """Keep the CONTENTS largest. More can only displace them, so what is left out now would be left out
        at the end, whatever the order."""
        if len(self.contents) > CONTENTS:
            ranked = sorted(((one.size, key) for key, one in self.contents.items()), reverse=True)[:CONTENTS]
            self._floor = ranked[-1]
            self.contents = {key: self.contents[key] for _, key in ranked}

    def drop(self, least: int) -> None:
        """Keep only files of at least `least` bytes from now on."""
        if least > self.least:
            self.least = least
            self.contents = {key: one for key, one in self.contents.items() if one.size >= least}

    def rows(self) -> list[tuple[int, int, int, int, bytes]]:
        """Return the columns of `add_column` as rows, in order of keys: key, size, count, directory and name.
        The first name of a content stands for all files whose names are not kept."""
        self._cut()
        found = []
        for key, content in sorted(self.contents.items()):
            more = content.count - len(content.names)
            for _, name, directory in content.names:
                found.append((key, content.size, 1 + more, directory, name))
                more = 0
        return found

    def groups(self) -> tuple[IdenticalSummary, ...]:
        """Return the groups with the most bytes in further copies, most first."""
        self._cut()
        found = [content for content in self.contents.values() if content.count > 1]
        found.sort(key=lambda one: (-one.size * (one.count - 1), one.names[0]))
        return tuple(
            IdenticalSummary(
                paths_bytes=tuple(os.path.join(directory, name) for directory, name, _ in content.names),
                files=content.count,
                size=content.size,
            )
            for content in found[:GROUPS]
        )


_FIRST_YEAR, _LAST_YEAR = 1970, 2100
_STARTS = [timegm((year, 1, 1, 0, 0, 0)) * 10**9 for year in range(_FIRST_YEAR, _LAST_YEAR + 1)]
"""The beginnings of years, in nanoseconds since the epoch (UTC)."""

YEARS = range(_FIRST_YEAR, _LAST_YEAR + 1)
"""Earlier times count as the first year, later ones as the last."""


class Ages:
    """Files and bytes by the year of the last modification (UTC)."""

    def __init__(self) -> None:
        self.files = array("Q", bytes(8 * len(YEARS)))
        self.bytes = array("Q", bytes(8 * len(YEARS)))

    def add(self, mtimes: Iterable[int], sizes: Iterable[int]) -> None:
        """Add files by their packed times."""
        for mtime, size in zip(mtimes, sizes, strict=True):
            self.add_year(max(0, bisect_right(_STARTS, mtime) - 1), 1, size)

    def add_year(self, number: int, files: int, size: int) -> None:
        """Add files of the year at `number` in YEARS."""
        self.files[number] += files
        # Sizes of sparse files add up to more than 64 bits.
        self.bytes[number] = min(self.bytes[number] + size, (1 << 64) - 1)

    def summaries(self) -> tuple[AgeSummary, ...]:
        """Return the years with files, in order."""
        columns = zip(YEARS, self.files, self.bytes, strict=True)
        return tuple(AgeSummary(year, files, size) for year, files, size in columns if files)
