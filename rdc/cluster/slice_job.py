"""SliceJob: a job in slices, each of which makes a part: a scan, or a search for documents."""

from __future__ import annotations

from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.scan import ScanSlice
    from rdc.survey.slices import SlicedHead

__all__ = ["SliceJob"]


class SliceJob(Protocol):
    """What all slices of a job have in common. It goes to workers, so it can be pickled."""

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
        """Writes what the `wanted` slices of `of` need to know, each into the file at path(number), if they
        need anything. Returns them in the order in which they should begin. Once `ended` returns True, lists
        may be incomplete. Raises RdcError."""

    def write(
        self, slice_: ScanSlice, part: bytes, list_: bytes, ended: Callable[[], bool], threads: int
    ) -> bool:
        """Writes the part of a slice. `list_`: where list_slices may have written a file for it. Returns
        False, without a part, once `ended` returns True. Raises RdcError."""

    def head(self, part: bytes) -> SlicedHead:
        """The head of a part. Raises RdcError if it cannot be read, and OSError."""

    def is_whole(self, part: bytes, head: SlicedHead) -> bool:
        """Whether a part from an earlier run is complete and undamaged. Raises RdcError or OSError if not."""

    def check(self, head: SlicedHead, of: int, roots: Sequence[int]) -> None:
        """Raises UsageError unless a part is of this job. `roots`: inode number of each path, here."""

    def size(self, head: SlicedHead) -> int:
        """Bytes that the slice of a part read."""
