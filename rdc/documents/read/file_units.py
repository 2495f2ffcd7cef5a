"""The files of a search, on this machine and in stores, and FileUnit: those that are read as one, a
JSONL or Parquet file, or some plain files.
"""

from __future__ import annotations

import os
from array import array
from io import BufferedReader, FileIO
from itertools import groupby

from rdc.documents.read.file_kinds import FileKind, FileRange, SliceFiles, begins_json_lines, kind_of
from rdc.documents.read.parquet_rows import check_pyarrow
from rdc.errors import FileError, RdcError, UsageError, printable
from rdc.files.objects.object_file import ObjectFile
from rdc.files.objects.object_store import ObjectStore, is_url, parse_url
from rdc.lean.records import Record, replace
from rdc.model.entries import strings
from rdc.model.selection import are_plain
from rdc.progress import Problem, Reporter, StopSignal, check_stop
from rdc.survey.walk.walk_paths import StorageUse, walk_paths
from rdc.tree import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from typing_extensions import Buffer

    from rdc.files.depth import ReadRate
    from rdc.files.own.output_file import Claims
    from rdc.files.root.source_file import SourceFile
    from rdc.model.similar import DocumentOptions
    from rdc.survey.walk.file_columns import FileColumns


class _RatedFile(FileIO):
    """A file whose reads count."""

    def __init__(self, fd: int, rate: ReadRate) -> None:
        super().__init__(fd, "rb")
        self._rate = rate

    def readinto(self, buffer: Buffer) -> int:
        count = super().readinto(buffer) or 0
        self._rate.take(count)
        return count


def opened_stream(source: SourceFile | ObjectFile) -> BinaryIO:
    """Return the content from the start on, or from where the file's descriptor is. It obeys the file's
    rate."""
    if isinstance(source, ObjectFile):
        return source.stream()
    if source.rate is not None:
        return BufferedReader(_RatedFile(os.dup(source.fileno()), source.rate))
    return os.fdopen(os.dup(source.fileno()), "rb")


# ObjectColumns: objects of a store as files of a search, and JoinedFiles: files of both kinds.


class ObjectColumns:
    """Objects, one per row."""

    def __init__(self, store: ObjectStore) -> None:
        self.sizes = array("Q")
        self._names: list[bytes] = []
        self._store = store

    def __len__(self) -> int:
        return len(self._names)

    def add(self, path: bytes, size: int) -> None:
        self._names.append(path)
        self.sizes.append(size)

    def shown(self, row: int) -> bytes:
        """Return the URL of a row."""
        return self._names[row]

    def open(self, row: int) -> ObjectFile:
        """Open the object of a row. Raises FileError."""
        return self._store.open(self._names[row])


class JoinedFiles:
    """Files of this machine, and behind them objects."""

    def __init__(self, files: FileColumns, objects: ObjectColumns) -> None:
        self._files = files
        self._objects = objects
        self._first = len(files)
        self.sizes = files.sizes + objects.sizes

    def __len__(self) -> int:
        return self._first + len(self._objects)

    def shown(self, row: int) -> bytes:
        """Return the path of a row as the user would type it."""
        return self._files.shown(row) if row < self._first else self._objects.shown(row - self._first)

    def open(self, row: int) -> SourceFile | ObjectFile:
        """Open whatever has this path now. Raises FileError."""
        return self._files.open(row) if row < self._first else self._objects.open(row - self._first)


def list_objects(
    paths: Sequence[bytes],
    options: DocumentOptions,
    reporter: Reporter,
    stop: StopSignal | None,
    slice_: SliceFiles | None,
    rate: ReadRate | None = None,
) -> ObjectColumns:
    """Return all objects below these URLs, or those of a slice. One that a URL names may be there twice.

    `rate` bounds how fast they are read. What cannot be listed is reported. Raises UsageError for a URL of
    another kind, for rules from files of a store, and if s3fs is missing.
    """
    urls = [parse_url(path) for path in paths]
    if not are_plain(options.rules):
        raise UsageError(f"{printable(paths[0])}: rules of files in directories are not read from a store")
    filters = filter_list(options.rules)
    store = ObjectStore(rate)
    found = ObjectColumns(store)
    entered: set[bytes] = set()

    def enter(directory: bytes, below: bytes) -> bool:
        """Return whether to list a directory: each is listed once, whichever URL leads to it."""
        check_stop(stop)
        if directory in entered or filters.excluded(below.rstrip(b"/"), True):
            return False
        entered.add(directory)
        return True

    for url in urls:
        for listed in store.walk(url, enter):
            if isinstance(listed, FileError):
                reporter(Problem(listed.code, listed.path_bytes, str(listed)))
                continue
            if listed.nameless:
                reporter(listed.nameless_problem())
            for name, size in zip(strings(listed.names), listed.sizes, strict=True):
                path = listed.directory + name
                if not name or (not listed.single and filters.excluded(listed.below + name, False)):
                    continue
                if slice_ is None or slice_.has_file(path, size):
                    found.add(path, size)
    return found


# FileUnit: files that are read as one: a JSONL or Parquet file, or some plain files.

UNIT_FILES = 4_096
"""Plain files of one unit."""

UNIT_BYTES = 64 << 20
"""Bytes of the plain files of one unit, unless it is a single one."""


class FileUnit(Record):
    rows: list[int]
    """Numbers of the files in the columns, in the order of their paths."""
    paths: list[bytes]
    """The names as the user would type them."""
    bytes: int
    """Bytes to read."""
    kind: FileKind
    """The format of its files. A file with rows is a unit of its own."""
    range: FileRange | None = None
    """The part of its only file that a slice reads; None: the unit is read whole."""


class UnitList(Record):
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
        """Return the kind of a file's content."""
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
    """Return all files at and below `paths`, or those of a slice. What cannot be listed is reported.

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
        files = JoinedFiles(files, list_objects(urls, options, reporter, stop, slice_, use.rate))
    rows = sorted(range(len(files)), key=files.shown)
    if urls:
        # An object that a URL names may lie below another URL as well.
        rows = [next(same) for _, same in groupby(rows, files.shown)]
    units = UnitList(files, rows, 0, options.format, _lines(files, rows, options), slice_)
    size = sum(files.sizes if slice_ is None else [unit.bytes for unit in units])
    return replace(units, bytes=size)


def _lines(files: FileColumns | JoinedFiles, rows: Sequence[int], options: DocumentOptions) -> frozenset[int]:
    """Return the rows of the files .json that hold JSON lines. Raises UsageError if there are files of
    Parquet, and pyarrow is missing."""
    kinds = {row: kind_of(files.shown(row), options.format) for row in rows}
    for row, kind in kinds.items():
        if kind is FileKind.PARQUET:
            check_pyarrow(files.shown(row))
            break
    maybe = [row for row, kind in kinds.items() if kind is FileKind.LINES_OR_TEXT]
    return frozenset(row for row in maybe if _begins_lines(files, row, options.field))


def _begins_lines(files: FileColumns | JoinedFiles, row: int, field: str) -> bool:
    """Return whether a file .json holds JSON lines. What cannot be read is reported when it is read."""
    try:
        with files.open(row) as source, opened_stream(source) as stream:
            return begins_json_lines(stream, field)
    except (RdcError, OSError):
        return False


def _alone(units: UnitList, row: int, path: bytes, size: int, kind: FileKind) -> FileUnit:
    """Return a JSONL or Parquet file."""
    found = None if units.slice is None else units.slice.range_of(path, size)
    return FileUnit([row], [path], size if found is None else found.end - found.start, kind, found)


# The places of files in the directory of --clean.


def place_of(path: bytes) -> bytes:
    """Return the place in DIR of the file `path`: its components, without "." and ".."."""
    return b"/".join([name for name in path.split(b"/") if name not in (b"", b".", b"..")])


def check_places(units: UnitList, directory: bytes) -> None:
    """Raise UsageError if two files would have one place, or one the place of another's directory."""
    places: dict[bytes, bytes] = {}
    paths = [units.files.shown(row) for row in units.rows]
    for path in paths:
        other = places.setdefault(place_of(path), path)
        if other != path:
            raise _same_place(directory, path, other)
    for path in paths:
        above = place_of(path)
        while above := os.path.dirname(above):
            if above in places:
                raise _same_place(directory, path, places[above])


def _same_place(directory: bytes, path: bytes, other: bytes) -> UsageError:
    return UsageError(
        f"--clean={printable(directory)}: {printable(other)} and {printable(path)} would get the same place"
        " there; give a directory above both as PATH"
    )
