"""PartDirectory: the parts of a sliced scan in one directory, some of them from an earlier run."""

from __future__ import annotations

import os
import re
from functools import partial

from rdc.errors import RdcError, UsageError, printable
from rdc.survey.parts.merge import PartSource, read_head
from rdc.survey.parts.sections import PartError, read_sections
from rdc.survey.parts.slice_checks import check_one_scan
from rdc.survey.scan.slice_set import SliceSet, WalkTotals, shared_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from rdc.cluster.worker_facts import WorkerFacts
    from rdc.model.scan import ScanOptions
    from rdc.survey.parts.part_head import PartHead

__all__ = ["PartDirectory", "slices_in"]

_NAME = re.compile(rb"slice-\d+-of-(\d+)\.rdcscan")


def slices_in(directory: bytes) -> int | None:
    """The number of slices that the parts in a directory name; None without parts, or if they differ."""
    try:
        found = {int(name[1]) for name in map(_NAME.fullmatch, os.listdir(directory)) if name}
    except OSError:
        return None
    return found.pop() if len(found) == 1 else None


class PartDirectory:
    """Names the parts of one scan, and says which of them are there."""

    def __init__(
        self, directory: bytes, of: int, paths: Sequence[bytes], options: ScanOptions, facts: WorkerFacts
    ) -> None:
        from rdc.survey.parts.part_head import PartHead

        self._directory = directory
        self._of = of
        nothing = WalkTotals(0, 0, 0, 0)
        roots = tuple(root.inode for root in facts.roots)
        slices = SliceSet(of, (), shared_options(options), roots, nothing, nothing)
        self._expected = PartHead.empty("this scan", tuple(paths), options, slices)

    def path(self, number: int) -> bytes:
        digits = len(str(self._of))
        return os.path.join(self._directory, b"slice-%0*d-of-%d.rdcscan" % (digits, number, self._of))

    def complete(self, number: int) -> PartHead | None:
        """The head of a part from an earlier run; None if there is none, or a damaged or stopped one.

        Raises UsageError, with its name, for a part of another scan, which nobody wants to lose.
        """
        path = self.path(number)
        if not os.path.lexists(path):
            return None
        try:
            head = self.head(number)
            with open(path, "rb") as stream:
                for _ in read_sections(stream, head.name):
                    pass
        except (PartError, OSError):
            return None
        return None if head.reason == "interrupted" else head

    def head(self, number: int) -> PartHead:
        """The head of a part. Raises RdcError if it cannot be read, UsageError if it is of another scan."""
        path = self.path(number)
        name = os.fsdecode(path)
        try:
            head = read_head(PartSource(name, partial(_opened, path)))
        except OSError as error:
            raise RdcError(f"{printable(path)}: cannot read the part: {error.strerror}") from error
        if head.slices is None or head.slices.numbers != (number,):
            raise UsageError(f"{printable(path)}: expected slice {number}/{self._of}, found another part")
        try:
            check_one_scan([self._expected, head])
        except UsageError as error:
            raise UsageError(f"{error}; or name another directory") from error
        return head


def _opened(path: bytes) -> BinaryIO:
    return open(path, "rb")
