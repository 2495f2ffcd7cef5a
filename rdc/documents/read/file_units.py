"""FileUnit: files that are read as one: a JSONL or Parquet file, or some plain files."""

from __future__ import annotations

from itertools import groupby

from rdc.documents.read.file_kinds import FileKind, begins_json_lines, kind_of
from rdc.documents.read.file_stream import opened_stream
from rdc.documents.read.parquet_rows import check_pyarrow
from rdc.errors import RdcError
from rdc.files.objects.object_url import is_url
from rdc.lean.records import dataclass, replace
from rdc.survey.walk.storage_use import StorageUse
from rdc.survey.walk.walk_paths import walk_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.documents.read.file_range import FileRange
    from rdc.documents.read.object_columns import JoinedFiles
    from rdc.documents.read.slice_files import SliceFiles
    from rdc.files.own.claims import Claims
    from rdc.model.similar import DocumentOptions
    from rdc.progress import Reporter, StopSignal
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["FileUnit", "UnitList", "list_units"]

UNIT_FILES = 4_096
"""Plain files of one unit."""

UNIT_BYTES = 64 << 20
"""Bytes of the plain files of one unit, unless it is a single one."""


@dataclass(frozen=True, slots=True)
class FileUnit:
    rows: list[int]
    """Numbers of the files in the columns, in the order of their paths."""
    paths: list[bytes]
    """As the user would type them."""
    bytes: int
    """Bytes to read."""
    kind: FileKind
    """What its files hold. A file with rows is a unit of its own."""
    range: FileRange | None = None
    """The part of its only file that a slice reads; None: the unit is read whole."""


@dataclass(frozen=True, slots=True)
class UnitList:
    """All files of a search."""

    files: FileColumns | JoinedFiles
    rows: list[int]
    """In the order of their paths."""
    bytes: int
    format: str
    """One of FORMATS."""
    lines: frozenset[int]
    """Rows of the files .json that hold JSON lines."""
    slice: SliceFiles | None = None
    """The slice that these files are of; None for all."""

    def kind(self, row: int) -> FileKind:
        """Return what a file holds."""
        found = kind_of(self.files.shown(row), self.format)
        if found is FileKind.LINES_OR_TEXT:
            return FileKind.LINES if row in self.lines else FileKind.TEXT
        return found

    def __iter__(self) -> Iterator[FileUnit]:
        rows: list[int] = []
        paths: list[bytes] = []
        size = 0
        for row in self.rows:
            path = self.files.shown(row)
            one = self.files.sizes[row]
            kind = self.kind(row)
            alone = kind is not FileKind.TEXT
            if rows and (alone or len(rows) == UNIT_FILES or size + one > UNIT_BYTES):
                yield FileUnit(rows, paths, size, FileKind.TEXT)
                rows, paths, size = [], [], 0
            if alone:
                yield _alone(self, row, path, one, kind)
                continue
            rows.append(row)
            paths.append(path)
            size += one
        if rows:
            yield FileUnit(rows, paths, size, FileKind.TEXT)


def list_units(
    paths: Sequence[bytes],
    options: DocumentOptions,
    reporter: Reporter,
    stop: StopSignal | None,
    slice_: SliceFiles | None = None,
    claims: Claims | None = None,
) -> UnitList:
    """All files at and below `paths`, or those of a slice. What cannot be listed is reported.

    Raises UsageError if pyarrow is needed and missing, and for a file that a result would replace, by
    `claims`."""
    urls = [path for path in paths if is_url(path)]
    use = StorageUse(options.depth, options.max_rate)
    files: FileColumns | JoinedFiles
    files, _ = walk_paths(
        [path for path in paths if not is_url(path)],
        options.rules,
        reporter,
        one_file_system=options.one_file_system,
        use=use,
        stop=stop,
        choice=slice_,
        claims=claims,
    )
    if urls:
        from rdc.documents.read.object_columns import JoinedFiles, list_objects

        files = JoinedFiles(files, list_objects(urls, options, reporter, stop, slice_, use.rate))
    rows = sorted(range(len(files)), key=files.shown)
    if urls:
        # An object that a URL names may lie below another URL as well.
        rows = [next(same) for _, same in groupby(rows, files.shown)]
    units = UnitList(files, rows, 0, options.format, _lines(files, rows, options), slice_)
    size = sum(files.sizes if slice_ is None else [unit.bytes for unit in units])
    return replace(units, bytes=size)


def _lines(files: FileColumns | JoinedFiles, rows: Sequence[int], options: DocumentOptions) -> frozenset[int]:
    """The rows of the files .json that hold JSON lines. Raises UsageError if there are files of Parquet, and
    pyarrow is missing."""
    kinds = {row: kind_of(files.shown(row), options.format) for row in rows}
    for row, kind in kinds.items():
        if kind is FileKind.PARQUET:
            check_pyarrow(files.shown(row))
            break
    maybe = [row for row, kind in kinds.items() if kind is FileKind.LINES_OR_TEXT]
    return frozenset(row for row in maybe if _begins_lines(files, row, options.field))


def _begins_lines(files: FileColumns | JoinedFiles, row: int, field: str) -> bool:
    """Whether a file .json holds JSON lines. What cannot be read is reported when it is read."""
    try:
        with files.open(row) as source, opened_stream(source) as stream:
            return begins_json_lines(stream, field)
    except (RdcError, OSError):
        return False


def _alone(units: UnitList, row: int, path: bytes, size: int, kind: FileKind) -> FileUnit:
    """A JSONL or Parquet file."""
    found = None if units.slice is None else units.slice.range_of(path, size)
    return FileUnit([row], [path], size if found is None else found.end - found.start, kind, found)
