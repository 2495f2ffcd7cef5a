"""ScanJob: a scan in slices."""

from __future__ import annotations

import os
from functools import partial

from rdc.records import dataclass, replace
from rdc.survey.parts.merge import PartSource, read_head
from rdc.survey.parts.part_head import METHOD, PartHead, check_one_scan
from rdc.survey.parts.sections import SCAN_PART, read_sections
from rdc.survey.scan.outcome import shared_options
from rdc.survey.slices import SliceSet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

    from rdc.model.scan import ScanOptions, ScanSlice
    from rdc.survey.slices import SlicedHead

__all__ = ["ScanJob"]

LISTS = 16_384
"""Most files beside the parts. More slices than that walk for themselves."""


@dataclass(frozen=True, slots=True)
class ScanJob:
    """See SliceJob."""

    paths: tuple[bytes, ...]
    options: ScanOptions

    @property
    def ending(self) -> bytes:
        return b"rdcscan"

    @property
    def method(self) -> str:
        return METHOD

    def list_slices(
        self, of: int, wanted: Sequence[int], path: Callable[[int], bytes], ended: Callable[[], bool]
    ) -> Sequence[int]:
        if len(wanted) > LISTS:
            return wanted
        from rdc.files.own.output_file import claim_outputs
        from rdc.survey.lists.slice_lists import SliceLists
        from rdc.survey.scan.walk import Explorer, is_single_file
        from rdc.survey.slices import SliceDivision

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
        from rdc.survey.lists.listed_walk import ListedWalk
        from rdc.survey.parts.part_file import write_part
        from rdc.survey.scan.scan import survey

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

    def is_whole(self, part: bytes, head: SlicedHead) -> bool:
        with open(part, "rb") as stream:
            for _ in read_sections(stream, head.name):
                pass
        return _of_scan(head).reason != "interrupted"

    def check(self, head: SlicedHead, of: int, roots: Sequence[int]) -> None:
        slices = SliceSet.expected(of, shared_options(self.options), roots)
        check_one_scan([PartHead.empty("this scan", self.paths, self.options, slices), _of_scan(head)])

    def size(self, head: SlicedHead) -> int:
        return _of_scan(head).found_bytes


def _of_scan(head: SlicedHead) -> PartHead:
    assert isinstance(head, PartHead)  # noqa: S101 - as head() returns it
    return head


def _opened(path: bytes) -> BinaryIO:
    return open(path, "rb")
