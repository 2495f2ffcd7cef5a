"""The jobs that are done in slices: a scan, or a search for near-duplicate documents."""

from __future__ import annotations

import os
from functools import partial

from rdc.documents.parts.part_file import DocumentHead, method, read_part
from rdc.documents.parts.part_file import read_head as read_document_head
from rdc.errors import StoppedError, printable
from rdc.lean.records import Record, replace
from rdc.lean.typed import Protocol
from rdc.progress import silent
from rdc.survey.count.counters import shared_options
from rdc.survey.parts.merge import PartSource, read_head
from rdc.survey.parts.part_file import METHOD, PartHead, check_one_scan
from rdc.survey.parts.sections import SCAN_PART, read_sections
from rdc.survey.slices import SEARCH, SliceDivision, SliceSet, check_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO, ClassVar

    from rdc.model.scan import ScanOptions, ScanSlice
    from rdc.model.similar import DocumentOptions
    from rdc.survey.slices import SlicedHead

LISTS = 16_384
"""Most files beside the parts. More slices than that walk for themselves."""


class SliceJob(Protocol):
    """The values that all slices of a job share. The record goes to workers, so it can be pickled."""

    @property
    def paths(self) -> tuple[bytes, ...]:
        """The paths of the job, as the user gave them."""

    @property
    def ending(self) -> bytes:
        """The ending of the names of its parts, without the dot."""

    @property
    def method(self) -> str:
        """The parameters that all workers must share, beside the version of rdc."""

    def list_slices(
        self, of: int, wanted: Sequence[int], path: Callable[[int], bytes], ended: Callable[[], bool]
    ) -> Sequence[int]:
        """Write what the `wanted` slices of `of` need to know, each into the file at path(number), if they
        need anything. Returns them in the order in which they should begin. Once `ended` returns True, lists
        may be incomplete. Raises RdcError."""

    def write(
        self, slice_: ScanSlice, part: bytes, list_: bytes, ended: Callable[[], bool], threads: int
    ) -> bool:
        """Write the part of a slice. `list_`: where list_slices may have written a file for it. Returns
        False, without a part, once `ended` returns True. Raises RdcError."""

    def head(self, part: bytes) -> SlicedHead:
        """Return the head of a part. Raises RdcError if it cannot be read, and OSError."""

    def check(self, head: SlicedHead, of: int, roots: Sequence[int]) -> None:
        """Raise UsageError unless a part is of this job. `roots`: inode number of each path, here."""

    def is_whole(self, part: bytes, head: SlicedHead) -> bool:
        """Return whether a part from an earlier run is complete and undamaged. Raises RdcError or OSError if
        not."""


class ScanJob(Record):
    """See SliceJob."""

    paths: tuple[bytes, ...]
    options: ScanOptions
    ending: ClassVar[bytes] = b"rdcscan"
    method: ClassVar[str] = METHOD

    def list_slices(
        self, of: int, wanted: Sequence[int], path: Callable[[int], bytes], ended: Callable[[], bool]
    ) -> Sequence[int]:
        if len(wanted) > LISTS:
            return wanted
        from rdc.files.own.output_file import claim_outputs
        from rdc.survey.parts.slice_lists import SliceLists
        from rdc.survey.scan.walk import Explorer, is_single_file

        division = SliceDivision(of, by_inode=any(map(is_single_file, self.paths)))
        lists = SliceLists(division, wanted, path)
        filled = claim_outputs([], [os.path.dirname(path(1))])
        explorer = Explorer(self.options, lists, ended, self.paths, filled)
        for operand in self.paths:
            explorer.explore(operand)
        lists.finish(explorer.walked)
        return lists.by_cost

    def write(
        self, slice_: ScanSlice, part: bytes, list_: bytes, ended: Callable[[], bool], threads: int
    ) -> bool:
        from rdc.files.own.output_file import Output, claim_outputs
        from rdc.survey.parts.part_file import write_part
        from rdc.survey.parts.slice_lists import ListedWalk
        from rdc.survey.scan.scanner import survey

        options = replace(self.options, slice=slice_)
        listed = ListedWalk(list_, self.paths, options, ended) if os.path.lexists(list_) else None
        claims = claim_outputs([Output(part, SCAN_PART)], [os.path.dirname(part)])
        outcome = survey(self.paths, options, stopped=ended, threads=threads, listed=listed, claims=claims)
        if outcome.interrupted:
            return False
        write_part(outcome, os.fsdecode(part))
        return True

    def head(self, part: bytes) -> PartHead:
        return read_head(PartSource(os.fsdecode(part), partial(_opened, part)))

    def check(self, head: SlicedHead, of: int, roots: Sequence[int]) -> None:
        slices = SliceSet.expected(of, shared_options(self.options), roots)
        check_one_scan([PartHead.empty("this scan", self.paths, self.options, slices), _of_scan(head)])

    def is_whole(self, part: bytes, head: SlicedHead) -> bool:
        with open(part, "rb") as stream:
            for _ in read_sections(stream, head.name):
                pass
        return _of_scan(head).reason != "interrupted"


def _opened(path: bytes) -> BinaryIO:
    return open(path, "rb")


def _of_scan(head: SlicedHead) -> PartHead:
    assert isinstance(head, PartHead)  # noqa: S101 - as head() returns it
    return head


class DocumentJob(Record):
    """See SliceJob."""

    paths: tuple[bytes, ...]
    options: DocumentOptions
    ending: ClassVar[bytes] = b"rdcdocs"

    @property
    def method(self) -> str:
        return method(self.options.shingle).decode()

    def list_slices(
        self, of: int, wanted: Sequence[int], path: Callable[[int], bytes], ended: Callable[[], bool]
    ) -> Sequence[int]:
        return wanted

    def write(
        self, slice_: ScanSlice, part: bytes, list_: bytes, ended: Callable[[], bool], threads: int
    ) -> bool:
        from rdc.documents.slice_part import write_slice

        options = replace(self.options, workers=threads)
        try:
            filled = [os.path.dirname(part)]
            write_slice(self.paths, options, slice_, part, silent, _Ended(ended), filled=filled)
        except StoppedError:
            return False
        return True

    def head(self, part: bytes) -> DocumentHead:
        with open(part, "rb") as stream:
            return read_document_head(stream, printable(part))

    def is_whole(self, part: bytes, head: SlicedHead) -> bool:
        with open(part, "rb") as stream:
            read_part(stream, head.name, 0)
        return True

    def check(self, head: SlicedHead, of: int, roots: Sequence[int]) -> None:
        check_slices(
            [DocumentHead.expected("this search", self.paths, self.options, of, roots), head], SEARCH
        )


class _Ended:
    """A StopSignal that asks a function."""

    def __init__(self, ended: Callable[[], bool]) -> None:
        self.is_set = ended
