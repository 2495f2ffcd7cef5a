"""ListedWalk: takes what the list of a slice has, in place of a walk."""

from __future__ import annotations

import os
from array import array

from rdc.errors import ExitCode, FileError, RdcError, one_line, printable
from rdc.files.base.os_errors import failure
from rdc.files.base.relative_path import join
from rdc.files.objects.object_url import is_url, parse_url
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.entries import little_endian, little_endian_integers, strings
from rdc.progress import Problem
from rdc.survey.container import PartError
from rdc.survey.parts.list_columns import ABOVE, CONTINUED, SINGLE, directories_in
from rdc.survey.parts.sections import read_sections, unpacked, unpacked_names
from rdc.survey.scan.gatherer import Walked
from rdc.survey.scan.walk import single_file
from rdc.survey.walk.file_columns import FileRows, Met
from rdc.survey.walk.storage_use import StorageUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.objects.object_tree import ObjectTree
    from rdc.model.scan import ScanOptions
    from rdc.survey.parts.list_columns import ListedRow
    from rdc.survey.scan.gatherer import Gatherer
    from rdc.survey.scan.object_walk import ObjectTrees

__all__ = ["ListedWalk"]


class ListedWalk:
    """Gives a Gatherer what a list has. Scanner takes it as `listed`."""

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

    def __call__(self, gatherer: Gatherer) -> Walked:
        """Raises PartError for a damaged list, FileError if it or a path of the scan cannot be opened."""
        walked: Walked | None = None
        rows = _Rows(self, gatherer)
        try:
            with open(self._list, "rb") as stream:
                for tag, fields in read_sections(stream, printable(self._list)):
                    if tag == b"LIST":
                        for row in directories_in(fields):
                            rows.take(row)
                    elif tag == b"FAIL":
                        _report(fields, gatherer)
                    else:
                        walked = _walked(tag, fields, len(self.paths))
        except OSError as error:
            raise failure(error, self._list, self._list, "read the list of a slice") from error
        except (ValueError, IndexError) as error:
            raise PartError(f"{printable(self._list)}: damaged: {error}; run again") from error
        if walked is None:
            raise PartError(f"{printable(self._list)}: damaged: a list without an end; run again")
        return walked

    def root(self, operand: int) -> Root | ObjectTree:
        """What the path number `operand` leads to. Raises FileError."""
        return self.objects(operand, single=False) or self._use.bind(Root.open(self.paths[operand]))

    def file(self, operand: int) -> tuple[Root, FileRows]:
        """Looks once more at the single file that the path number `operand` is. Raises FileError if it is
        gone."""
        root, _, name = single_file(self.paths[operand])
        self._use.bind(root)
        try:
            found = os.stat(name, dir_fd=root.fileno(), follow_symlinks=False)
        except OSError as error:
            raise root.failure(error, name, "look at it", reading=True) from error
        return root, FileRows.of_file(name, found)

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

    def __init__(self, walk: ListedWalk, gatherer: Gatherer) -> None:
        self._walk = walk
        self._gatherer = gatherer
        self._operand = -1
        self._root: Root | ObjectTree | None = None
        self._devices: dict[int, int] = {}
        """Device numbers here, by those on the machine that walked."""

    def take(self, row: ListedRow) -> None:
        if row.kind == SINGLE:
            self._take_single(row)
            return
        if row.operand != self._operand:
            self._operand, self._root = row.operand, self._walk.root(row.operand)
        root, files = self._root, row.files
        assert root is not None  # noqa: S101 - as set above
        met = Met(row.operand, root, row.walked, row.path, files)
        if row.kind != CONTINUED:
            self._gatherer.enter(met)
        if isinstance(root, Root) and len(files):
            files = replace(files, inodes=replace(files.inodes, devices=self._local(root, row)))
        if row.kind != ABOVE:
            self._gatherer.add(met, files)

    def _take_single(self, row: ListedRow) -> None:
        root: Root | ObjectTree | None = self._walk.objects(row.operand, single=True)
        files = row.files
        try:
            if root is None:
                root, files = self._walk.file(row.operand)
        except FileError as error:
            self._gatherer.report(Problem(error.code, self._walk.paths[row.operand], str(error)))
            return
        self._gatherer.add(Met(row.operand, root, row.walked, row.path, files, is_single=True), files)

    def _local(self, root: Root, row: ListedRow) -> bytes:
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


def _report(fields: list[bytes], gatherer: Gatherer) -> None:
    codes, paths, messages = unpacked(fields[0]), unpacked_names(fields[1]), unpacked_names(fields[2])
    for code, path, message in zip(codes, paths, messages, strict=True):
        gatherer.report(Problem(ExitCode(code), path, one_line(message.decode())))


def _walked(tag: bytes, fields: list[bytes], paths: int) -> Walked:
    if tag != b"WALK":
        raise ValueError(f"an unknown section {tag!r}")
    single, directories, files, total, *roots = unpacked(fields[0])
    if len(roots) != paths:
        raise ValueError("a list of another number of paths")
    return Walked(tuple(roots), bool(single), directories, files, total)
