"""SliceLists: writes what one walk meets into a list for each slice."""

from __future__ import annotations

import os
from array import array

from rdc.errors import ExitCode, RdcError
from rdc.files.base.os_errors import failure
from rdc.model.entries import little_endian_integers, strings
from rdc.survey.parts.list_columns import (
    ABOVE,
    CONTINUED,
    OWN,
    SINGLE,
    ListColumns,
    ListedRow,
)
from rdc.survey.parts.sections import MAGIC, NUMBER_LIMIT, encode_section, packed, packed_names
from rdc.survey.scan.gatherer import Way
from rdc.survey.walk.file_columns import NO_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from rdc.progress import Problem
    from rdc.survey.scan.gatherer import Walked
    from rdc.survey.slices import SliceDivision
    from rdc.survey.walk.file_columns import FileRows, Met

__all__ = ["SliceLists"]

ROWS = 16_384
"""Most files of one row: 18 MB if they are objects whose keys are as long as can be."""

PENDING_BYTES = 32 << 20
"""Rows of all lists are written once they take so much. So no section exceeds it by more than one row."""

FILE_COST = 16 << 10
"""A file costs as much as so many bytes of content: 17 us to open and count it, .84 ns a byte."""


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
        end = encode_section(b"WALK", packed(array("Q", numbers))) + encode_section(b"LAST")
        for number in self._pending:
            self._append(number, end)

    def _give(self, number: int, operand: int, files: FileRows) -> None:
        """Gives a slice the current directory, with files of it."""
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
