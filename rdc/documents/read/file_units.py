"""FileUnit: files that are read as one: a JSONL or Parquet file, or some plain files."""

from __future__ import annotations

from itertools import groupby

from rdc.documents.read.json_lines import JSON_ENDINGS
from rdc.documents.read.parquet_rows import PARQUET_ENDING, check_pyarrow
from rdc.files.objects.object_url import is_url
from rdc.model.entries import Kind
from rdc.records import dataclass
from rdc.survey.walk.storage_use import StorageUse
from rdc.survey.walk.walk_paths import walk_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.documents.read.file_range import FileRange
    from rdc.documents.read.object_columns import JoinedFiles
    from rdc.documents.read.slice_files import SliceFiles
    from rdc.files.own.claims import Claims
    from rdc.model.documents import DocumentOptions
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
    range: FileRange | None = None
    """The part of its only file that a slice reads; None: the unit is read whole."""

    @property
    def has_rows(self) -> bool:
        """Whether it is a JSONL or Parquet file."""
        return self.paths[0].endswith((*JSON_ENDINGS, PARQUET_ENDING))

    @property
    def is_parquet(self) -> bool:
        return self.paths[0].endswith(PARQUET_ENDING)


@dataclass(frozen=True, slots=True)
class UnitList:
    """All files of a search."""

    files: FileColumns | JoinedFiles
    rows: list[int]
    """In the order of their paths."""
    bytes: int
    slice: SliceFiles | None = None
    """The slice that these files are of; None for all."""

    def __iter__(self) -> Iterator[FileUnit]:
        rows: list[int] = []
        paths: list[bytes] = []
        size = 0
        for row in self.rows:
            path = self.files.shown(row)
            one = self.files.sizes[row]
            alone = path.endswith((*JSON_ENDINGS, PARQUET_ENDING))
            if rows and (alone or len(rows) == UNIT_FILES or size + one > UNIT_BYTES):
                yield FileUnit(rows, paths, size)
                rows, paths, size = [], [], 0
            if alone:
                yield _alone(self, row, path, one)
                continue
            rows.append(row)
            paths.append(path)
            size += one
        if rows:
            yield FileUnit(rows, paths, size)


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
    tree = walk_paths(
        [path for path in paths if not is_url(path)],
        options.rules,
        reporter,
        one_file_system=options.one_file_system,
        use=use,
        stop=stop,
        choice=slice_,
        claims=claims,
    )
    files: FileColumns | JoinedFiles
    files = tree.files([row for row, kind in enumerate(tree.kinds) if kind == Kind.FILE])
    if urls:
        from rdc.documents.read.object_columns import JoinedFiles, list_objects

        files = JoinedFiles(files, list_objects(urls, options, reporter, stop, slice_, use.rate))
    rows = sorted(range(len(files)), key=files.shown)
    if urls:
        # An object that a URL names may lie below another URL as well.
        rows = [next(same) for _, same in groupby(rows, files.shown)]
    for row in rows:
        if files.shown(row).endswith(PARQUET_ENDING):
            check_pyarrow(files.shown(row))
            break
    units = UnitList(files, rows, 0, slice_)
    size = sum(files.sizes if slice_ is None else [unit.bytes for unit in units])
    return UnitList(files, rows, size, slice_)


def _alone(units: UnitList, row: int, path: bytes, size: int) -> FileUnit:
    """A JSONL or Parquet file."""
    found = None if units.slice is None else units.slice.range_of(path, size)
    return FileUnit([row], [path], size if found is None else found.end - found.start, found)
