"""Lists of slices: one walk writes what each slice has to read, and a slice takes its list in place of
a walk.
"""

from __future__ import annotations

import os
from array import array

from rdc.errors import ExitCode, FileError, RdcError, one_line, printable
from rdc.files.base.paths import failure, join
from rdc.files.objects.object_store import ObjectTree, is_url, parse_url
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.model.entries import PackedInodes, little_endian, little_endian_integers, strings
from rdc.progress import Problem
from rdc.survey.container import PartError
from rdc.survey.parts.sections import (
    MAGIC,
    NUMBER_LIMIT,
    encode_section,
    packed,
    packed_names,
    read_sections,
    unpacked,
    unpacked_names,
)
from rdc.survey.scan.walk import Gatherer, Walked, Way, single_file
from rdc.survey.walk.file_columns import NO_FILES, FileRows, Met
from rdc.survey.walk.walk_paths import StorageUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from rdc.model.scan import ScanOptions
    from rdc.survey.scan.objects import ObjectTrees
    from rdc.survey.slices import SliceDivision


# ListColumns: rows of a list before they are written. ListedRow: one of them.

ABOVE, OWN, CONTINUED, SINGLE = range(4)
"""Kinds of rows: a directory of other slices on the way to one of this slice; one with something of this
slice; more files of the directory before; a file that is a path of the scan, with the directory it is in."""

ROW_BYTES, FILES_BYTES, FILE_BYTES = 100, 900, 52
"""Bytes in memory: a row beside its path, the columns of its files, and one file in them beside its name."""


class ListedRow(Record):
    kind: int
    """ABOVE, OWN, CONTINUED or SINGLE."""
    operand: int
    """Number of the path of the scan."""
    walked: int
    """Position in the walk over everything."""
    path: bytes
    """Path below the path of the scan."""
    files: FileRows


class ListColumns:
    """Rows of one list. `bytes` is about what they take."""

    def __init__(self) -> None:
        self._kinds, self._operands, self._walked, self._counts = (array("Q") for _ in range(4))
        self._paths: list[bytes] = []
        self._files: list[FileRows] = []
        self.bytes = 0

    def add(self, row: ListedRow) -> None:
        self._kinds.append(row.kind)
        self._operands.append(row.operand)
        self._walked.append(row.walked)
        self._counts.append(len(row.files))
        self._paths.append(row.path)
        self.bytes += ROW_BYTES + len(row.path)
        if len(row.files):
            self._files.append(row.files)
            self.bytes += FILES_BYTES + FILE_BYTES * len(row.files) + len(row.files.names)

    def encoded(self) -> bytes:
        """Return a section with all rows."""
        files = self._files
        return encode_section(
            b"LIST",
            *map(packed, (self._kinds, self._operands, self._walked, self._counts)),
            packed_names(self._paths),
            *(
                b"".join(parts)
                for parts in (
                    [each.names for each in files],
                    [each.sizes for each in files],
                    [each.mtimes for each in files],
                    [each.inodes.devices for each in files],
                    [each.inodes.inodes for each in files],
                    [each.inodes.links for each in files],
                    [each.inodes.allocated for each in files],
                    [each.inodes.ctimes for each in files],
                )
            ),
        )


def directories_in(fields: list[bytes]) -> Iterator[ListedRow]:
    """Yield the rows of a section. Raises ValueError if columns differ in length."""
    kinds, operands, walked, counts = map(unpacked, fields[:4])
    names, sizes, mtimes, devices, inodes, links, allocated, ctimes = fields[5:]
    files = FileRows(names, sizes, mtimes, PackedInodes(devices, inodes, links, allocated, ctimes))
    every, total = unpacked_names(names), sum(counts)
    if len(every) != total or len(links) != 4 * total:
        raise ValueError("columns of several lengths")
    if any(len(column) != 8 * total for column in (sizes, mtimes, devices, inodes, allocated, ctimes)):
        raise ValueError("columns of several lengths")
    start = 0
    rows = zip(kinds, operands, walked, unpacked_names(fields[4]), counts, strict=True)
    for kind, operand, position, path, count in rows:
        stop = start + count
        yield ListedRow(kind, operand, position, path, files.part(every, start, stop) if count else NO_FILES)
        start = stop


# SliceLists: writes what one walk meets into a list for each slice.

ROWS = 16_384
"""Most files of one row: 18 MB if they are objects whose keys are as long as can be."""

PENDING_BYTES = 32 << 20
"""Rows of all lists are written once they take this many bytes. A section exceeds it by at most one row."""

FILE_COST = 16 << 10
"""A file costs as much as this many bytes of content: 17 us to open and count it, .84 ns a byte."""


class SliceLists:
    """A Taker. `path` names the list of a slice, and a list is written for each slice in `wanted`.

    Rows are in the order of the walk. Above a directory with something of the slice, its list has all that
    lead to it, as Gatherer needs them.
    """

    def __init__(
        self, division: SliceDivision, wanted: Collection[int], path: Callable[[int], bytes]
    ) -> None:
        self._division = division
        self._path = path
        self._pending = {number: ListColumns() for number in wanted}
        self._waiting = 0
        self._problems: dict[int, list[Problem]] = {}
        self._way = Way()
        self._costs = dict.fromkeys(wanted, 0)

    @property
    def by_cost(self) -> list[int]:
        """The slices, those first that take longest. If workers take them in this order, they end at about
        the same time (Graham 1969)."""
        return sorted(self._costs, key=lambda number: (-self._costs[number], number))

    def take(self, met: Met) -> None:
        if not met.is_single:
            self._way.enter(met)
        for number, files in self._division.shares(met).items():
            if met.is_single:
                # A worker finds it again by the path of the scan.
                self._add(number, ListedRow(SINGLE, met.operand, met.walked, met.path, files))
            else:
                self._give(number, met.operand, files)

    def take_problem(self, operand: int, problem: Problem) -> None:
        number = self._division.of_directory(operand, problem.path_bytes)
        # A notice is no part of an outcome.
        if problem.code is not ExitCode.OK and number in self._pending:
            self._problems.setdefault(number, []).append(problem)
            self._waiting += len(problem.path_bytes) + len(problem.message)
            self._write_if_many()

    def finish(self, walked: Walked) -> None:
        """Write what is left, and the end of each list. Raises RdcError."""
        self._write()
        # Bytes are only compared with those of other slices: those of enough sparse files are cut.
        total = min(walked.bytes, NUMBER_LIMIT)
        numbers = [walked.single_files, walked.directories, walked.files, total, *walked.roots]
        end = encode_section(b"WALK", packed(array("Q", numbers))) + encode_section(b"LAST")
        for number in self._pending:
            self._append(number, end)

    def _give(self, number: int, operand: int, files: FileRows) -> None:
        """Give a slice the current directory, with files of it."""
        if number not in self._pending:
            return
        *above, here = self._way.steps
        for one in above:
            if number not in one.given:
                one.given.add(number)
                self._add(number, ListedRow(ABOVE, operand, one.walked, one.path, NO_FILES))
        here.given.add(number)
        names = strings(files.names) if len(files) > ROWS else []
        for start in range(0, max(1, len(files)), ROWS):
            part = files.part(names, start, min(start + ROWS, len(files)))
            kind = CONTINUED if start else OWN
            self._add(number, ListedRow(kind, operand, here.walked, here.path, part))

    def _add(self, number: int, row: ListedRow) -> None:
        pending = self._pending.get(number)
        if pending is None:
            return
        before = pending.bytes
        pending.add(row)
        self._waiting += pending.bytes - before
        self._costs[number] += sum(little_endian_integers("Q", row.files.sizes)) + FILE_COST * len(row.files)
        self._write_if_many()

    def _write_if_many(self) -> None:
        if self._waiting >= PENDING_BYTES:
            self._write()

    def _write(self) -> None:
        for number, pending in self._pending.items():
            problems = self._problems.pop(number, [])
            if pending.bytes:
                self._append(number, pending.encoded())
                self._pending[number] = ListColumns()
            if problems:
                codes = packed(array("Q", [int(one.code) for one in problems]))
                paths = packed_names([one.path_bytes for one in problems])
                self._append(
                    number,
                    encode_section(
                        b"FAIL", codes, paths, packed_names([one.message.encode() for one in problems])
                    ),
                )
        self._waiting = 0

    def _append(self, number: int, content: bytes) -> None:
        path = self._path(number)
        try:
            with open(os.open(path, _APPEND, 0o666), "ab") as stream:
                if not os.fstat(stream.fileno()).st_size:
                    stream.write(MAGIC)
                stream.write(content)
        except OSError as error:
            refusal = failure(error, path, path, "write the list of a slice")
            # A FileError would be a problem of what is walked, and the rest of that would be lost.
            raise RdcError(str(refusal), code=refusal.code) from error


_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


# ListedWalk: takes what the list of a slice has, in place of a walk.


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
        """Walk as the list says. Raises PartError for a damaged list, FileError if it or a path of the scan
        cannot be opened."""
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
        """Return what the path number `operand` leads to. Raises FileError."""
        return self.objects(operand, single=False) or self._use.bind(Root.open(self.paths[operand]))

    def file(self, operand: int) -> tuple[Root, FileRows]:
        """Look once more at the single file that the path number `operand` is. Raises FileError if it is
        gone."""
        root, _, name = single_file(self.paths[operand])
        root = self._use.bind(root)
        with root.failing(name, "look at it", reading=True):
            found = os.stat(name, dir_fd=root.fileno(), follow_symlinks=False)
        return root, FileRows.of_file(name, found)

    def objects(self, operand: int, *, single: bool) -> ObjectTree | None:
        """Return the tree that the path number `operand` names, or one above the object that it names; None
        if it is no URL."""
        path = self.paths[operand]
        if not is_url(path):
            return None
        if self._objects is None:
            from rdc.survey.scan.objects import ObjectTrees

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
        if self._root is None or row.operand != self._operand:
            self._root = self._walk.root(row.operand)
            self._operand = row.operand
        root, files = self._root, row.files
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
        """Return the column of device numbers as this machine has them: each has its own for a mount."""
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
