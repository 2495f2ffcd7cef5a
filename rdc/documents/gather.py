"""Reads documents into parts: without a name, or staged in a directory so that a killed run goes on there."""

from __future__ import annotations

import os

from rdc.documents.joined_slices import JoinedSlices
from rdc.documents.nameless_file import NamelessFile
from rdc.documents.parts.block import COUNTS, BlockLayout, encode_block
from rdc.documents.parts.open_parts import OpenParts, PartSource
from rdc.documents.parts.part_file import DOCUMENT_PART, Block, encode_section, method, part_end, part_start
from rdc.documents.read.file_units import list_units
from rdc.documents.read.stored_bound import StoredBound
from rdc.documents.read.unit_reader import UnitReader
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.own.opened_path import make_directory
from rdc.files.own.output_file import Output, write_output
from rdc.lean.records import dataclass
from rdc.progress import Problem, Progressed, check_stop
from rdc.survey.read.ordered_threads import in_order, usable_workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.documents.parts.part_file import Part
    from rdc.documents.read.file_units import FileUnit, UnitList
    from rdc.documents.read.text_batch import TextBatch
    from rdc.files.own.claims import Claims
    from rdc.model.similar import DocumentOptions
    from rdc.progress import Event, Reporter, StopSignal

__all__ = ["Gathered", "gather", "opened_parts", "ordered_problems", "with_older"]

STAGED_ENDING = ".rdcdocs"


@dataclass(frozen=True, slots=True)
class Gathered:
    """Documents at rest, to be searched."""

    parts: OpenParts
    blocks: list[Block]
    unit: str
    """The unit of the shingles: words or chars."""
    problems: list[Problem]
    left_out: int


def opened_parts(sources: Sequence[PartSource], reporter: Reporter, stop: StopSignal | None) -> Gathered:
    """Checks parts: whole ones of the same shingles, or all slices of one search. Their problems are reported
    again.

    Raises PartError for a damaged part, and UsageError for one of other parameters or a slice that is
    missing. Both name it.
    """
    opened = OpenParts(sources)
    parts: list[Part] = []
    for number in range(len(sources)):
        check_stop(stop)
        reporter(Progressed("read", number, len(sources)))
        part = opened.check(number)
        unit = part.head.unit
        if number and unit != parts[0].head.unit:
            raise UsageError(
                f"{opened.name(number)}: shingles of {unit}, those of {opened.name(0)} are of"
                f" {parts[0].head.unit}; search again with --shingle={parts[0].head.unit}"
            )
        parts.append(part)
        for problem in part.problems:
            reporter(problem)
    joined = JoinedSlices(parts, opened)
    for problem in joined.later:
        reporter(problem)
    reporter(Progressed("read", len(sources), len(sources)))
    return Gathered(
        opened, joined.blocks, parts[0].head.unit, ordered_problems(joined.problems), joined.left_out
    )


def gather(
    paths: Sequence[bytes],
    options: DocumentOptions,
    reporter: Reporter,
    stop: StopSignal | None,
    claims: Claims | None = None,
) -> Gathered:
    """Read all documents at and below `paths`. `claims`: the results of this run. Raises StoppedError and
    UsageError."""
    walked: list[Problem] = []

    def listed(event: Event, /) -> None:
        if isinstance(event, Problem):
            walked.append(event)
        reporter(event)

    units = list_units(paths, options, listed, stop, claims=claims)
    work = _Gathering(units, options, reporter, stop, claims)
    found = work.into_memory() if options.stage is None else work.into_stage(os.fsencode(options.stage))
    return Gathered(
        found.parts,
        found.blocks,
        found.unit,
        ordered_problems([*walked, *found.problems]),
        found.left_out + len([one for one in walked if one.code]),
    )


def with_older(new: Gathered, path: str) -> Gathered:
    """Adds the part of an older corpus, as the last one. Its problems do not count. Raises as
    opened_parts()."""
    sources = [*new.parts.sources, PartSource(path)]
    parts = OpenParts(sources)
    old = parts.check(len(sources) - 1)
    if old.head.unit != new.unit:
        raise UsageError(
            f"{parts.name(len(sources) - 1)}: shingles of {old.head.unit}, the new documents have those of"
            f" {new.unit}; search again with --shingle={old.head.unit}"
        )
    if old.head.slices is not None:
        raise UsageError(
            f"{parts.name(len(sources) - 1)}: slice {old.head.slices.numbers[0]}/{old.head.slices.of} of an"
            " older corpus; merge its slices first: rdc merge -o FILE"
        )
    return Gathered(parts, [*new.blocks, *old.blocks], new.unit, new.problems, new.left_out)


def ordered_problems(problems: list[Problem]) -> list[Problem]:
    """Problems in an order that does not depend on how documents were divided. Those of one file keep
    theirs."""
    return sorted(problems, key=lambda problem: problem.path)


class _Gathering:
    def __init__(
        self,
        units: UnitList,
        options: DocumentOptions,
        reporter: Reporter,
        stop: StopSignal | None,
        claims: Claims | None,
    ) -> None:
        self._claims = claims
        self._units = units
        self._options = options
        self._reporter = reporter
        self._stop = stop
        self._workers = options.workers or usable_workers()
        self._done = 0
        self._bound = StoredBound()

    def into_memory(self) -> Gathered:
        """Reads into a file without a name: columns one after another."""
        file = NamelessFile()
        blocks: list[Block] = []
        problems: list[Problem] = []
        left_out = 0

        def batches() -> Iterator[TextBatch]:
            nonlocal left_out
            for unit in self._units:
                reader = self._reader(unit)
                yield from self._noted(reader, unit)
                problems.extend(reader.problems)
                left_out += reader.left_out

        start = 0
        for columns in in_order(self._encode, batches(), self._workers):
            layout = BlockLayout(*COUNTS.unpack(columns[0]))
            file.append(columns)
            blocks.append(Block(0, start, layout))
            start += layout.end
        self._reporter(Progressed("read", self._units.bytes, self._units.bytes))
        return Gathered(
            OpenParts([PartSource("documents", file)]), blocks, self._options.shingle, problems, left_out
        )

    def into_stage(self, directory: bytes) -> Gathered:
        """Reads into one part a unit, named by what the files are. A part that is there is not made again."""
        try:
            make_directory(directory)
        except OSError as error:
            raise RdcError(
                f"{printable(directory)}: cannot make the directory: {error.strerror}; name another with"
                " --stage",
                code=ExitCode.FILE_IO,
            ) from error
        sources = []
        for unit in self._units:
            reader = self._reader(unit)
            try:
                name = reader.key(method(self._options.shingle)) + STAGED_ENDING
            except RdcError:
                # It is read all the same, which names the file.
                sources.append(self._unnamed(reader, unit))
                continue
            path = os.path.join(directory, os.fsencode(name))
            if self._claims is not None:
                self._claims.check_named([path])
            if not os.path.exists(path):
                write_output(Output(path, DOCUMENT_PART), self._part(reader, unit))
            self._done += unit.bytes
            sources.append(PartSource(os.fsdecode(path)))
        return self._opened(sources)

    def _unnamed(self, reader: UnitReader, unit: FileUnit) -> PartSource:
        file = NamelessFile()
        file.append(self._part(reader, unit))
        self._done += unit.bytes
        return PartSource("documents", file)

    def _opened(self, sources: list[PartSource]) -> Gathered:
        def report(event: Event, /) -> None:
            if isinstance(event, Problem):
                self._reporter(event)

        if not sources:
            return self.into_memory()
        return opened_parts(sources, report, self._stop)

    def _part(self, reader: UnitReader, unit: FileUnit) -> Iterator[bytes]:
        yield from part_start(self._options.shingle)
        for columns in in_order(self._encode, self._noted(reader, unit, quiet=True), self._workers):
            yield from encode_section(b"BLOK", columns)
        yield from part_end(reader.problems, reader.left_out)

    def _reader(self, unit: FileUnit) -> UnitReader:
        return UnitReader(self._units.files, unit, self._options.field, self._bound)

    def _encode(self, batch: TextBatch) -> list[bytes]:
        return encode_block(batch, self._options.shingle)

    def _noted(self, reader: UnitReader, unit: FileUnit, *, quiet: bool = False) -> Iterator[TextBatch]:
        """The batches of a unit, with progress and, unless `quiet`, its problems."""
        check_stop(self._stop)
        for batch in reader.batches():
            check_stop(self._stop)
            self._reporter(Progressed("read", self._done + reader.done, self._units.bytes))
            yield batch
        if not quiet:
            self._done += unit.bytes
            for problem in reader.problems:
                self._reporter(problem)
