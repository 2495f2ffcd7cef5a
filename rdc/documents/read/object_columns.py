"""ObjectColumns: objects of a store as files of a search, and JoinedFiles: files of both kinds."""

from __future__ import annotations

from array import array

from rdc.errors import FileError, UsageError, printable
from rdc.files.objects.object_url import parse_url
from rdc.model.entries import strings
from rdc.model.selection import are_plain
from rdc.progress import Problem, check_stop
from rdc.tree.filter_list import filter_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.read.slice_files import SliceFiles
    from rdc.files.depth.read_rate import ReadRate
    from rdc.files.objects.object_file import ObjectFile
    from rdc.files.objects.object_store import ObjectStore
    from rdc.files.root.source_file import SourceFile
    from rdc.model.similar import DocumentOptions
    from rdc.progress import Reporter, StopSignal
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["JoinedFiles", "ObjectColumns", "list_objects"]


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
        """The URL of a row."""
        return self._names[row]

    def open(self, row: int) -> ObjectFile:
        """Raises FileError."""
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
        """Path of a row as the user would type it."""
        return self._files.shown(row) if row < self._first else self._objects.shown(row - self._first)

    def open(self, row: int) -> SourceFile | ObjectFile:
        """Opens whatever has this path now. Raises FileError."""
        return self._files.open(row) if row < self._first else self._objects.open(row - self._first)


def list_objects(
    paths: Sequence[bytes],
    options: DocumentOptions,
    reporter: Reporter,
    stop: StopSignal | None,
    slice_: SliceFiles | None,
    rate: ReadRate | None = None,
) -> ObjectColumns:
    """All objects below these URLs, or those of a slice. One that a URL names may be there twice.

    `rate` bounds how fast they are read. What cannot be listed is reported. Raises UsageError for a URL of
    another kind, for rules from files of a store, and if s3fs is missing.
    """
    urls = [parse_url(path) for path in paths]
    if not are_plain(options.rules):
        raise UsageError(f"{printable(paths[0])}: rules of files in directories are not read from a store")
    from rdc.files.objects.object_store import ObjectStore

    filters = filter_list(options.rules)
    store = ObjectStore(rate)
    found = ObjectColumns(store)
    entered: set[bytes] = set()

    def enter(directory: bytes, below: bytes) -> bool:
        """Each directory is listed once, whichever URL leads to it."""
        check_stop(stop)
        if directory in entered or filters.excluded(below.rstrip(b"/"), True):
            return False
        entered.add(directory)
        return True

    for url in urls:
        for listed in store.walk(url, enter):
            if isinstance(listed, FileError):
                reporter(Problem(listed.code, listed.path, str(listed)))
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
