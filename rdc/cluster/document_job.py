"""DocumentJob: a search for near-duplicate documents in slices."""

from __future__ import annotations

import os

from rdc.documents.parts.part_file import method, read_head, read_part
from rdc.documents.parts.slice_head import DocumentHead
from rdc.errors import StoppedError, printable
from rdc.progress import silent
from rdc.records import dataclass, replace
from rdc.survey.slices import SEARCH, check_slices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.documents import DocumentOptions
    from rdc.model.scan import ScanSlice
    from rdc.survey.slices import SlicedHead

__all__ = ["DocumentJob"]


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """See SliceJob."""

    paths: tuple[bytes, ...]
    options: DocumentOptions

    @property
    def ending(self) -> bytes:
        return b"rdcdocs"

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
            return read_head(stream, printable(part))

    def is_whole(self, part: bytes, head: SlicedHead) -> bool:
        with open(part, "rb") as stream:
            read_part(stream, head.name, 0)
        return True

    def check(self, head: SlicedHead, of: int, roots: Sequence[int]) -> None:
        check_slices(
            [DocumentHead.expected("this search", self.paths, self.options, of, roots), head], SEARCH
        )

    def size(self, head: SlicedHead) -> int:
        assert isinstance(head, DocumentHead)  # noqa: S101 - as head() returns it
        return head.size


class _Ended:
    """A StopSignal that asks a function."""

    def __init__(self, ended: Callable[[], bool]) -> None:
        self.is_set = ended
