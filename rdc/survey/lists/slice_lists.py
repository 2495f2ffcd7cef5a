"""SliceLists: writes what one walk meets into a list for each slice."""

from __future__ import annotations

import os
import struct

from rdc.errors import ExitCode, RdcError
from rdc.files.base.os_errors import failure
from rdc.model.entries import Kind, PackedInodes, little_endian, little_endian_integers, strings
from rdc.survey.lists.list_columns import (
    ABOVE,
    CONTINUED,
    OWN,
    SINGLE,
    ListColumns,
    ListedDirectory,
)
from rdc.survey.parts.sections import MAGIC, NUMBER_LIMIT, encode_section, packed_names
from rdc.survey.scan.file_rows import NO_FILES, FileRows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rdc.files.objects.object_listing import ListedObjects
    from rdc.files.root.root import Root
    from rdc.progress import Problem
    from rdc.survey.scan.gatherer import MetDirectory, MetObjects, Walked
    from rdc.survey.walk.slice_choice import SliceDivision

__all__ = ["SliceLists"]

ROWS = 16_384
"""Most files of one row: 18 MB if they are objects whose keys are as long as can be."""

PENDING_BYTES = 32 << 20
"""Rows of all lists are written once they take so much. So no section exceeds it by more than one row."""

FILE_COST = 16 << 10
"""A file costs as much as so many bytes of content: 17 us to open and count it, .84 ns a byte."""


class _Way:
    """A directory on the way to the current one."""

    __slots__ = ("given", "path", "walked")

    def __init__(self, path: bytes, walked: int) -> None:
        self.path = path
        self.walked = walked
        self.given: set[int] = set()
        """The slices that have it in their list."""


class SliceLists:
    """A Taker. `path` names the list of a slice, and a list is written for each slice in `wanted`.

    Rows are in the order of the walk. Above a directory with something of the slice, its list has all that
    lead to it, as DirectoryNumbers needs them.
    """

    def __init__(
        self, division: SliceDivision, wanted: Collection[int], path: Callable[[int], bytes]
    ) -> None:
        self._division = division
        self._path = path
        self._pending = {number: ListColumns() for number in wanted}
        self._waiting = 0
        self._problems: dict[int, list[Problem]] = {}
        self._operand = -1
        self._way: list[_Way] = []
        self._costs = dict.fromkeys(wanted, 0)
        self.files, self.total_bytes = 0, 0

    @property
    def by_cost(self) -> list[int]:
        """The slices, those first that take longest. If workers take them in this order, they end at about
        the same time (Graham 1969)."""
        return sorted(self._costs, key=lambda number: (-self._costs[number], number))

    def take(self, met: MetDirectory) -> None:
        found, listing = met.found, met.found.listing
        rows = listing.rows_of(Kind.FILE)
        sizes = little_endian_integers("Q", listing.sizes)
        self.files += len(rows)
        self.total_bytes += sum(map(sizes.__getitem__, rows))
        own = self._division.of_directory(met.operand, found.path)
        self._enter(met.operand, found.path, met.walked)
        chosen = self._division.of_rows(rows, found.inodes, own)
        for number in {own, *chosen}:
            mine = chosen.get(number, [])
            few, inodes = listing, found.inodes
            if len(mine) < listing.count:
                few, inodes = listing.rows(mine), inodes.rows(mine)
            self._give(number, met.operand, FileRows(few.names, few.sizes, few.mtimes, inodes))

    def take_file(
        self, operand: int, root: Root, shown: bytes, walked: int, name: bytes, found: os.stat_result
    ) -> None:
        self.files += 1
        self.total_bytes += found.st_size
        number = self._division.of_file(operand, found.st_ino, found.st_nlink)
        # A worker finds it again by the path of the scan.
        rows = FileRows(name + b"\0", struct.pack("<Q", found.st_size), bytes(8), _ONE)
        self._add(number, ListedDirectory(SINGLE, operand, walked, b"", rows))

    def take_objects(self, met: MetObjects) -> None:
        listed, operand = met.listed, met.operand
        self.files += len(listed.sizes)
        self.total_bytes += sum(listed.sizes)
        number = self._division.of_directory(operand, met.below)
        rows = FileRows(
            listed.names,
            little_endian(listed.sizes),
            bytes(8 * len(listed.sizes)),
            _versions(listed),
        )
        if listed.single:
            self._add(number, ListedDirectory(SINGLE, operand, met.walked, b".", rows))
        else:
            self._enter(operand, met.path, met.walked)
            self._give(number, operand, rows)

    def take_problem(self, operand: int, problem: Problem) -> None:
        number = self._division.of_directory(operand, problem.path)
        # A notice is no part of an outcome.
        if problem.code is not ExitCode.OK and number in self._pending:
            self._problems.setdefault(number, []).append(problem)
            self._waiting += len(problem.path) + len(problem.message)
            self._write_if_many()

    def finish(self, walked: Walked) -> None:
        """Writes what is left, and the end of each list. Raises RdcError."""
        self._write()
        # Bytes are only compared with those of other slices: those of enough sparse files are cut.
        total = min(walked.bytes, NUMBER_LIMIT)
        numbers = [walked.single_files, walked.directories, walked.files, total, *walked.roots]
        end = encode_section(b"WALK", b"".join(map(_U64.pack, numbers))) + encode_section(b"LAST")
        for number in self._pending:
            self._append(number, end)

    def _enter(self, operand: int, path: bytes, walked: int) -> None:
        """Makes a directory the current one, as DirectoryNumbers does."""
        if operand != self._operand:
            self._operand, self._way = operand, []
        above = path.rpartition(b"/")[0]
        while self._way and not (path and self._way[-1].path == above):
            self._way.pop()
        self._way.append(_Way(path, walked))

    def _give(self, number: int, operand: int, files: FileRows) -> None:
        """Gives a slice the current directory, with files of it."""
        if number not in self._pending:
            return
        here = self._way[-1]
        for one in self._way[:-1]:
            if number not in one.given:
                one.given.add(number)
                self._add(number, ListedDirectory(ABOVE, operand, one.walked, one.path, NO_FILES))
        here.given.add(number)
        names = strings(files.names) if len(files) > ROWS else []
        for start in range(0, max(1, len(files)), ROWS):
            part = files.part(names, start, min(start + ROWS, len(files)))
            kind = CONTINUED if start else OWN
            self._add(number, ListedDirectory(kind, operand, here.walked, here.path, part))

    def _add(self, number: int, row: ListedDirectory) -> None:
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
                codes = b"".join(_U64.pack(int(one.code)) for one in problems)
                paths = packed_names([one.path for one in problems])
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

_U64 = struct.Struct("<Q")

_ONE = PackedInodes(bytes(8), bytes(8), bytes(4), bytes(8), bytes(8))


def _versions(listed: ListedObjects) -> PackedInodes:
    """Objects take what they have, and neither links nor times exist."""
    zeros, sizes = bytes(8 * len(listed.sizes)), little_endian(listed.sizes)
    return PackedInodes(zeros, little_endian(listed.versions), zeros[::2], sizes, zeros)
