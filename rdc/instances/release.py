"""Moves the rest of partly shared extents, so that whole extents can be freed.

btrfs keeps an extent on disk while one of its blocks is referenced. A disk image that shares all but a few
blocks would free nothing. So those few blocks are first written again, into a temporary file beside the
image, and the image is made to share them with that file. The kernel compares the bytes as for any other
pair. Once the temporary is removed and the other blocks are shared, nothing references the large extent any
more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rdc.errors import FileError
from rdc.files.base.os_errors import changed
from rdc.files.facts.block_sharing_volume import leave_out_checksums
from rdc.files.facts.extents import extents
from rdc.files.names.dedupe_range import SLICE_BYTES, dedupe_range, sharing_failure
from rdc.files.replace.replacement import Replacement
from rdc.files.root.source_file import SPAN_BYTES
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile

__all__ = ["Span", "move", "spans_to_move"]

WORTH = 2
"""Bytes that each rewritten byte must free at least."""

LEAST_BYTES = 4096
"""Smallest size of the temporary. A smaller file would be stored inside metadata, where nothing can share
it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of one file, in bytes."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def spans_to_move(fd: int, size: int, shared: Iterable[Span]) -> list[Span]:
    """The spans to move so that everything in `shared` (sorted, disjoint) is freed. Empty if moving is not
    needed or not worth it. Raises OSError."""
    spans = list(shared)
    moved: list[Span] = []
    won = 0
    for extent in extents(fd, 0, size):
        if not extent.alone:
            continue
        whole = Span(extent.start, min(extent.end, size))
        left = list(_outside(whole, spans))
        remaining = sum(span.length for span in left)
        if 0 < remaining < whole.length:
            moved += left
            won += whole.length - remaining
    written = sum(span.length for span in moved)
    return moved if LEAST_BYTES <= written <= won // WORTH else []


def _outside(whole: Span, spans: Sequence[Span]) -> Iterator[Span]:
    """The parts of `whole` that no span covers."""
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
    """Moves these spans of a file into extents of their own. Spans are whole blocks, except at the end of the
    file.

    Raises FileError, FileChangedError and OutOfSpaceError; some spans have moved by then.
    """
    # The end of the file comes last. It may be a partial block, which must then be the end of the temporary
    # too.
    with Replacement(root, path) as copy:
        try:
            leave_out_checksums(copy.fileno(), file.fileno())
        except OSError as error:
            raise sharing_failure(root, path, error) from error
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
