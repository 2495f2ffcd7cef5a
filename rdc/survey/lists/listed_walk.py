"""ListedWalk: takes what the list of a slice has, in place of a walk."""

from __future__ import annotations

import os
from array import array

from rdc.errors import ExitCode, FileError, RdcError, one_line, printable
from rdc.files.base.os_errors import failure
from rdc.files.base.relative_path import join
from rdc.files.objects.object_url import is_url, parse_url
from rdc.files.root.root import Root
from rdc.model.entries import little_endian, little_endian_integers, strings
from rdc.progress import Problem
from rdc.records import replace
from rdc.survey.lists.list_columns import ABOVE, CONTINUED, OWN, SINGLE, directories_in
from rdc.survey.parts.sections import PartError, read_sections, unpacked, unpacked_names
from rdc.survey.scan.directory_numbers import DirectoryNumbers
from rdc.survey.scan.gatherer import Walked
from rdc.survey.scan.walk import single_file
from rdc.survey.walk.storage_use import StorageUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.objects.object_tree import ObjectTree
    from rdc.model.scan import ScanOptions
    from rdc.progress import Reporter
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.lists.list_columns import ListedDirectory
    from rdc.survey.scan.found_files import Found
    from rdc.survey.scan.object_walk import ObjectTrees

__all__ = ["ListedWalk"]


class ListedWalk:
    """Fills Found and ChunkLocations from a list. Scanner takes it as `listed`."""

    def __init__(
        self, list_: bytes, paths: Sequence[bytes], options: ScanOptions, stopped: Callable[[], bool]
    ) -> None:
        """`list_`: a file that SliceLists wrote. `paths`: those of the scan."""
        self._list = list_
        self.paths = paths
        self._options = options
        self._stopped = stopped
        self._use = StorageUse(options.depth, options.max_rate)
        self._objects: ObjectTrees | None = None

    def __call__(self, found: Found, locations: ChunkLocations, reporter: Reporter) -> Walked:
        """Raises PartError for a damaged list, FileError if it or a path of the scan cannot be opened."""
        walked: Walked | None = None
        rows = _Rows(self, found, locations, reporter)
        try:
            with open(self._list, "rb") as stream:
                for tag, fields in read_sections(stream, printable(self._list)):
                    if tag == b"LIST":
                        for row in directories_in(fields):
                            rows.take(row)
                    elif tag == b"FAIL":
                        _report(fields, reporter)
                    else:
                        walked = _walked(tag, fields, len(self.paths))
        except OSError as error:
            raise failure(error, self._list, self._list, "read the list of a slice") from error
        except (ValueError, IndexError) as error:
            raise PartError(f"{printable(self._list)}: damaged: {error}; run again") from error
        if walked is None:
            raise PartError(f"{printable(self._list)}: damaged: a list without an end; run again")
        return walked

    def directory(self, operand: int) -> Root:
        """The open path number `operand`. Raises FileError."""
        return self._use.bind(Root.open(self.paths[operand]))

    def file(self, operand: int) -> tuple[Root, bytes, bytes]:
        """Returns what single_file returns for the path number `operand`."""
        root, shown, name = single_file(self.paths[operand])
        return self._use.bind(root), shown, name

    def objects(self, operand: int, *, single: bool) -> ObjectTree | None:
        """The tree that the path number `operand` names, or one above the object that it names; None if it
        is no URL."""
        path = self.paths[operand]
        if not is_url(path):
            return None
        if self._objects is None:
            from rdc.survey.scan.object_walk import ObjectTrees

            self._objects = ObjectTrees(self._options, self._stopped, self._use.rate)
        return self._objects.tree(parse_url(path), single=single)


class _Rows:
    """Takes rows in the order of the walk."""

    def __init__(self, walk: ListedWalk, found: Found, locations: ChunkLocations, reporter: Reporter) -> None:
        self._walk = walk
        self._found = found
        self._locations = locations
        self._report = reporter
        self._numbers = DirectoryNumbers(locations, -1)
        self._tree: ObjectTree | None = None
        self._root: Root | None = None
        self._number = -1
        self._devices: dict[int, int] = {}
        """Device numbers here, by those on the machine that walked."""

    def take(self, row: ListedDirectory) -> None:
        if row.kind == SINGLE:
            self._take_single(row)
            return
        if row.operand != self._numbers.operand:
            self._numbers = DirectoryNumbers(self._locations, row.operand)
            self._tree = self._walk.objects(row.operand, single=False)
            self._root = self._walk.directory(row.operand) if self._tree is None else None
        top = self._tree or self._root
        assert top is not None  # noqa: S101 - one of both, as set above
        if row.kind != CONTINUED:
            self._numbers.enter(row.path, top.shown(row.path) or b".", row.walked)
            self._number = self._numbers.number() if row.kind == OWN else -1
        if row.kind == ABOVE or not len(row.files):
            return
        if self._root is not None:
            files = replace(row.files, inodes=replace(row.files.inodes, devices=self._local(self._root, row)))
            self._found.add_rows(self._root, self._number, row.path, files)
        elif self._tree is not None:
            self._found.add_rows(self._tree, self._number, row.path, row.files)

    def _take_single(self, row: ListedDirectory) -> None:
        tree = self._walk.objects(row.operand, single=True)
        if tree is not None:
            number = self._locations.add_directory(tree.shown(b"."), -1, row.operand, row.walked)
            self._found.add_rows(tree, number, b".", row.files)
            return
        try:
            self._take_file(row)
        except FileError as error:
            self._report(Problem(error.code, self._walk.paths[row.operand], str(error)))

    def _take_file(self, row: ListedDirectory) -> None:
        """Looks at a single file once more. Raises FileError if it is gone."""
        root, shown, name = self._walk.file(row.operand)
        try:
            found = os.stat(name, dir_fd=root.fileno(), follow_symlinks=False)
        except OSError as error:
            raise root.failure(error, name, "look at it", reading=True) from error
        number = self._locations.add_directory(shown or b".", -1, row.operand, row.walked)
        self._found.add_file(root, number, name, found)

    def _local(self, root: Root, row: ListedDirectory) -> bytes:
        """The column of device numbers as this machine has them: each has its own for a mount."""
        column: array[int] = little_endian_integers("Q", row.files.inodes.devices)
        for device in set(column) - self._devices.keys():
            name = strings(row.files.names)[column.index(device)]
            try:
                self._devices[device] = root.identity(join(row.path, name)).device
            except RdcError:
                return row.files.inodes.devices  # reading the file will report the error
        if all(self._devices[device] == device for device in set(column)):
            return row.files.inodes.devices
        return little_endian(array("Q", map(self._devices.__getitem__, column)))


def _report(fields: list[bytes], reporter: Reporter) -> None:
    codes, paths, messages = unpacked(fields[0]), unpacked_names(fields[1]), unpacked_names(fields[2])
    for code, path, message in zip(codes, paths, messages, strict=True):
        reporter(Problem(ExitCode(code), path, one_line(message.decode())))


def _walked(tag: bytes, fields: list[bytes], paths: int) -> Walked:
    if tag != b"WALK":
        raise ValueError(f"an unknown section {tag!r}")
    single, directories, files, total, *roots = unpacked(fields[0])
    if len(roots) != paths:
        raise ValueError("a list of another number of paths")
    return Walked(tuple(roots), bool(single), directories, files, total)
