"""WindowSets: measures how much two files have in common by their windows of 32 bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from itertools import chain

from rdc.errors import FileError
from rdc.files.base.os_errors import changed
from rdc.files.facts.extents import data_bytes, holes
from rdc.kernel import shared_numbers, sorted_pairs, window_hashes
from rdc.kernel.constants import SKETCH_BYTES, WINDOW_BYTES
from rdc.lean.records import dataclass
from rdc.model.similar import Resemblance
from rdc.progress import Problem
from rdc.survey.read.content_digests import SPAN_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.files.root.source_file import SourceFile
    from rdc.progress import Reporter
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["WindowSet", "WindowSets", "resemblance", "window_set"]

SAMPLED_WINDOWS = 1 << 14
"""Windows of a larger file that are sampled, or half as many: a standard error of 0.006 at most."""

FEW_WINDOWS = 1 << 16
"""Different windows of one set at most. Only content made for it has more below the limit of its size."""

GATHERED_WINDOWS = 1 << 18
"""Hashes that wait to be sorted and freed of repeated ones."""

CACHED_WINDOWS = 1 << 23
"""Windows in sets that are cached for later pairs, 8 bytes each."""


@dataclass(frozen=True, slots=True)
class WindowSet:
    """The different windows of one file, or a sample of them."""

    hashes: bytes
    """Ascending, u64, native. All are below 2^(64 - shift)."""
    shift: int
    """All windows with a hash below that limit are there: one in 2^shift."""

    def upto(self, shift: int) -> memoryview:
        """Those that a larger shift samples."""
        hashes = memoryview(self.hashes).cast("Q")
        return hashes[: bisect_left(hashes, 1 << 64 - shift)]

    def sketch(self) -> bytes:
        """What window_sketch() gives for the whole content, from a sample with a window in every bin."""
        found = bytearray(SKETCH_BYTES)
        missing = set(range(SKETCH_BYTES))
        for number in memoryview(self.hashes).cast("Q"):
            if number % SKETCH_BYTES in missing:
                missing.remove(number % SKETCH_BYTES)
                found[number % SKETCH_BYTES] = number >> 5 & 255
                if not missing:
                    break
        return bytes(found)


def window_set(spans: Iterable[bytes], size: int) -> WindowSet:
    """The windows of a content that comes in spans, and has `size` bytes outside of holes.

    Which windows are sampled is a function of the size and of the content: one in a power of two, by their
    hashes, so that equal windows of two files are sampled alike.
    """
    shift = max(0, (size - 1) // SAMPLED_WINDOWS).bit_length()
    gathered, before = bytearray(), b""
    for span in spans:
        joined = before + span
        before = joined[-(WINDOW_BYTES - 1) :]
        gathered += window_hashes(joined, (1 << 64 - shift) - 1)
        if len(gathered) > 8 * GATHERED_WINDOWS:
            gathered, shift = _thinned(gathered, shift)
    gathered, shift = _thinned(gathered, shift)
    return WindowSet(bytes(gathered), shift)


def _thinned(gathered: bytearray, shift: int) -> tuple[bytearray, int]:
    """Sorts them, and samples half as many until few are left."""
    found = WindowSet(sorted_pairs(gathered), shift)
    while len(found.upto(shift)) > FEW_WINDOWS:
        shift += 1
    return bytearray(found.upto(shift)), shift


def resemblance(first: WindowSet, second: WindowSet) -> Resemblance:
    """The part of both files' windows that is common. A file without windows is contained in every file and
    equals another one without."""
    shift = max(first.shift, second.shift)
    one, other = first.upto(shift), second.upto(shift)
    common = shared_numbers(one, other)
    both = len(one) + len(other) - common
    return Resemblance(
        common / both if both else 1.0,
        common / len(one) if len(one) else 1.0,
        common / len(other) if len(other) else 1.0,
    )


class WindowSets:
    """Compares rows of FileColumns. The most recently used sets are cached, since a file is in several
    pairs."""

    def __init__(self, reporter: Reporter) -> None:
        self._report = reporter
        self._cached: OrderedDict[tuple[int, int], WindowSet] = OrderedDict()
        self._cached_windows = 0
        self._failed: set[tuple[int, int]] = set()
        self.bytes_read = 0

    def compare(
        self, files: FileColumns, first: int, second: int, others: FileColumns | None = None
    ) -> Resemblance | None:
        """Compares row `first` of `files` with row `second` of `others` (default: `files`). None if one of
        them cannot be read as listed any more; this is reported once per file."""
        one = self.of(files, first)
        other = self.of(files if others is None else others, second)
        return None if one is None or other is None else resemblance(one, other)

    def of(self, files: FileColumns, row: int) -> WindowSet | None:
        """The windows of one row. None if it cannot be read as listed any more."""
        key = (id(files), row)
        cached = self._cached.get(key)
        if cached is not None:
            self._cached.move_to_end(key)
            return cached
        if key in self._failed:
            return None
        try:
            made = self._read(files, row)
        except FileError as error:
            self._failed.add(key)
            self._report(Problem(error.code, files.shown(row), str(error)))
            return None
        self._cached[key] = made
        self._cached_windows += len(made.hashes) // 8
        # The two sets of the present pair stay cached, whatever their size.
        while self._cached_windows > CACHED_WINDOWS and len(self._cached) > 2:
            _, dropped = self._cached.popitem(last=False)
            self._cached_windows -= len(dropped.hashes) // 8
        return made

    def _read(self, files: FileColumns, row: int) -> WindowSet:
        with files.open(row) as source:
            if source.size != files.sizes[row]:
                listed, found_size = f"{files.sizes[row]} bytes", f"{source.size}"
                raise changed(files.path(row), files.shown(row), listed, found_size)
            size = source.size
            if source.taken is not None:
                size = data_bytes(source.fileno(), source.size, source.allocated)
            made = window_set(_spans(source), size)
            source.check_unchanged()
            self.bytes_read += source.size
        return made


def _spans(source: SourceFile) -> Iterator[bytes]:
    """The content in spans, with short holes: the windows of zeros are one however many there are."""
    if source.taken is None:
        yield from source.spans(SPAN_BYTES)
        return
    at = 0
    for start, end in chain(holes(source.fileno(), source.size), [(source.size, source.size)]):
        while at < start:
            span = source.pread(at, min(start - at, SPAN_BYTES))
            at += len(span)
            yield span
        yield bytes(min(end - start, 2 * WINDOW_BYTES))
        at = end
