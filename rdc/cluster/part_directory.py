"""PartDirectory: the parts of a job in slices in one directory, some of them from an earlier run."""

from __future__ import annotations

import os
import re

from rdc.errors import RdcError, UsageError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.cluster.jobs import SliceJob
    from rdc.cluster.worker_facts import WorkerFacts
    from rdc.survey.slices import SlicedHead

__all__ = ["PartDirectory", "slices_in"]


def slices_in(directory: bytes, ending: bytes) -> int | None:
    """The number of slices that the parts in a directory name; None without parts, or if they differ."""
    pattern = re.compile(rb"slice-\d+-of-(\d+)\." + re.escape(ending))
    try:
        found = {int(name[1]) for name in map(pattern.fullmatch, os.listdir(directory)) if name}
    except OSError:
        return None
    return found.pop() if len(found) == 1 else None


class PartDirectory:
    """Names the parts of one job, and says which of them are there."""

    def __init__(self, directory: bytes, of: int, job: SliceJob, facts: WorkerFacts) -> None:
        self._directory = directory
        self._of = of
        self._job = job
        self._roots = tuple(root.inode for root in facts.roots)

    def path(self, number: int) -> bytes:
        digits = len(str(self._of))
        name = b"slice-%0*d-of-%d.%b" % (digits, number, self._of, self._job.ending)
        return os.path.join(self._directory, name)

    def complete(self, number: int) -> SlicedHead | None:
        """The head of a part from an earlier run; None if there is none, or a damaged or stopped one.

        Raises UsageError, with its name, for a part of another job, which nobody wants to lose.
        """
        path = self.path(number)
        if not os.path.lexists(path):
            return None
        try:
            head = self.head(number)
            return head if self._job.is_whole(path, head) else None
        except UsageError:
            raise
        except (RdcError, OSError):
            return None

    def head(self, number: int) -> SlicedHead:
        """The head of a part. Raises RdcError if it cannot be read, UsageError if it is of another job."""
        path = self.path(number)
        try:
            head = self._job.head(path)
        except OSError as error:
            raise RdcError(f"{printable(path)}: cannot read the part: {error.strerror}") from error
        if head.slices is None or head.slices.numbers != (number,):
            raise UsageError(f"{printable(path)}: expected slice {number}/{self._of}, found another part")
        try:
            self._job.check(head, self._of, self._roots)
        except UsageError as error:
            raise UsageError(f"{error}; or name another directory") from error
        return head
