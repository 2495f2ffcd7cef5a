"""Extents of which only a part is still used: what is left moves, so that the whole can be given back.

btrfs keeps an extent on disk as long as one block of it is referred to. A disk image that shares all but a
few of its blocks would free nothing. So those few are first written once more, into a temporary file beside
it, and the image is made to share them with that file: the kernel compares the bytes as for any other pair.
When the temporary has gone, and the rest is shared, nobody refers to the large extent any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rdc.errors import FileError
from rdc.files.dedupe_range import SLICE_BYTES, dedupe_range, sharing_failure
from rdc.files.extents import extents
from rdc.files.failure import changed
from rdc.files.replacement import Replacement
from rdc.files.source import SPAN_BYTES
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.files.source import SourceFile

__all__ = ["Span", "move", "spans_to_move"]

WORTH = 2
"""Bytes freed for each byte that is written again, at least: below, the writing is not worth it."""

LEAST_BYTES = 4096
"""Bytes in the temporary: a smaller one would lie among the metadata, where nothing can share it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of one file, in bytes."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def spans_to_move(fd: int, size: int, shared: Iterable[Span]) -> list[Span]:
    """What must move so that all that is `shared` (in order, apart) is freed; [] where that is not worth it,
    or not needed. Raises OSError.
    """
    spans = list(shared)
    moved: list[Span] = []
    won = 0
    for extent in extents(fd, 0, size):
        if not extent.alone:
            continue
        whole = Span(extent.start, min(extent.end, size))
        left = list(_outside(whole, spans))
        kept = sum(span.length for span in left)
        if 0 < kept < whole.length:
            moved += left
            won += whole.length - kept
    written = sum(span.length for span in moved)
    return moved if LEAST_BYTES <= written <= won // WORTH else []


def _outside(whole: Span, spans: Sequence[Span]) -> Iterator[Span]:
    """The parts of `whole` that none of the spans covers."""
    at = whole.start
    for span in spans:
        if span.end <= at:
            continue
        if span.start >= whole.end:
            break
        if span.start > at:
            yield Span(at, span.start)
        at = span.end
    if at < whole.end:
        yield Span(at, whole.end)


def move(root: Root, path: bytes, file: SourceFile, spans: Sequence[Span]) -> None:
    """Let these spans of a file, whole blocks but for the end of the file, lie in extents of their own.

    Raises FileError, FileChangedError, OutOfSpaceError: then some have moved and some have not.
    """
    # The end of the file last: it may be no whole block, and must then end the temporary too.
    with Replacement(root, path) as copy:
        for span in spans:
            for at in range(span.start, span.end, SPAN_BYTES):
                copy.write(file.pread(at, min(SPAN_BYTES, span.end - at)))
        done = 0
        try:
            for span in spans:
                _share(copy, done, file, span, root, path)
                done += span.length
        except OSError as error:
            raise sharing_failure(root, path, error) from error


def _share(copy: Replacement, offset: int, file: SourceFile, span: Span, root: Root, path: bytes) -> None:
    done = 0
    while done < span.length:
        length = min(SLICE_BYTES, span.length - done)
        shared = dedupe_range(copy.fileno(), offset + done, length, file.fileno(), span.start + done)
        if shared is None:
            raise _changed(root, path)
        done += shared


def _changed(root: Root, path: bytes) -> FileError:
    return changed(path, root.shown(path), "the content that was copied", "another")
