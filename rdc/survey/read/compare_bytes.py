"""Compares files byte by byte, to split a group with equal digests into classes of equal files."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.facts.content_digest import spans_with_data
from rdc.progress import Problem
from rdc.survey.read.content_digests import SPAN_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.files.root.source_file import SourceFile
    from rdc.progress import Reporter
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["Comparison"]


class Comparison:
    """Compares rows of `files`. A file that cannot be read or changes meanwhile is reported, and is in no
    class."""

    def __init__(self, files: FileColumns, reporter: Reporter) -> None:
        self._files = files
        self._report = reporter
        self.bytes_read = 0

    def classes(self, rows: Iterable[int]) -> list[list[int]]:
        """Divides `rows` into classes of files with equal bytes.

        Each file is compared with the first file of each class so far. There is one class, unless different
        files have equal digests or a file has changed since.
        """
        classes: list[list[int]] = []
        for row in rows:
            try:
                with self._files.open(row) as source:
                    for one in classes:
                        if self._belongs(source, one):
                            source.check_unchanged()
                            one.append(row)
                            break
                    else:
                        classes.append([row])
            except FileError as error:
                self._report_problem(row, error)
        return classes

    def _belongs(self, source: SourceFile, rows: list[int]) -> bool:
        """Whether `source` equals the first of `rows`. Files that have become unreadable are removed from
        `rows`."""
        while rows:
            try:
                other = self._files.open(rows[0])
            except FileError as error:
                self._report_problem(rows.pop(0), error)
                continue
            with other:
                same = self._equal(source, other)
                try:
                    other.check_unchanged()
                except FileError as error:
                    # The other files of the class were compared with it before it changed.
                    self._report_problem(rows.pop(0), error)
                    continue
                return same
        return False

    def _equal(self, source: SourceFile, other: SourceFile) -> bool:
        """Whether two files are equal. Raises FileError for `source`. A failure of `other` counts as a
        difference; the caller then checks `other`."""
        if source.size != other.size:
            return False
        source.rest()
        other.rest()
        for offset, length in spans_with_data((source.fileno(), other.fileno()), source.size, SPAN_BYTES):
            data = source.pread(offset, length)
            try:
                same = other.pread(offset, len(data)) == data
            except FileError:
                return False
            self.bytes_read += 2 * len(data)
            if not same:
                return False
        return True

    def _report_problem(self, row: int, error: FileError) -> None:
        self._report(Problem(error.code, self._files.shown(row), str(error)))
