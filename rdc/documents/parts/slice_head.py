"""DocumentHead: what a part of a slice says about the search that it is of (DOCUMENTS.md, "A slice")."""

from __future__ import annotations

import struct
from array import array

from rdc.lean.records import dataclass
from rdc.limits.searches import SCAN_SLICES
from rdc.model.entries import little_endian, little_endian_integers, strings
from rdc.survey.slices import SliceSet, WalkTotals, are_options, option_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.similar import DocumentOptions

__all__ = ["DocumentHead", "decode_slice", "encode_slice", "shared_options"]

_SLICE_COUNTS = struct.Struct("<8Q")
"""Number of the slice, number of slices, files, bytes and directories walked, bytes to read, number of paths,
bytes of paths."""

NUMBER_LIMIT = (1 << 64) - 1
"""The largest of these numbers."""


@dataclass(frozen=True, slots=True)
class DocumentHead:
    name: str
    """The part in messages."""
    unit: str
    """The unit of the shingles."""
    paths: tuple[bytes, ...]
    slices: SliceSet | None
    """The one slice; None for a whole search."""
    size: int
    """Bytes of files that the slice reads."""

    @classmethod
    def expected(
        cls, name: str, paths: Sequence[bytes], options: DocumentOptions, of: int, roots: Sequence[int]
    ) -> DocumentHead:
        """The head of a search that has read nothing yet."""
        slices = SliceSet.expected(of, shared_options(options), roots)
        return cls(name, options.shingle, tuple(paths), slices, 0)


def shared_options(options: DocumentOptions) -> str:
    """The options in which slices of one search must agree."""
    # A field may have any name.
    field = (
        options.field if options.field.isalnum() else f"hex:{options.field.encode(errors='replace').hex()}"
    )
    return option_lines(
        options.rules,
        options.one_file_system,
        ("--field", field),
        ("--shingle", options.shingle),
        *([] if options.format == "auto" else [("--format", options.format)]),
    )


def encode_slice(head: DocumentHead) -> bytes:
    """The content of a section SLIC."""
    slices = head.slices
    assert slices is not None  # noqa: S101 - the caller makes a slice
    names = b"".join([path + b"\0" for path in head.paths])
    options = slices.options.encode()
    totals = slices.most
    # Bytes are only compared and added up for progress: those of enough sparse files are cut.
    walked = (totals.files, min(totals.bytes, NUMBER_LIMIT), totals.directories)
    size = min(head.size, NUMBER_LIMIT)
    counts = _SLICE_COUNTS.pack(slices.numbers[0], slices.of, *walked, size, len(head.paths), len(names))
    return b"".join([counts, little_endian(array("Q", slices.roots)), names, options])


def decode_slice(content: bytes, name: str, unit: str) -> DocumentHead:
    """Raises ValueError for content that no search writes."""
    if len(content) < _SLICE_COUNTS.size:
        raise ValueError("a slice with other fields")
    number, of, files, size, directories, own, count, name_bytes = _SLICE_COUNTS.unpack_from(content)
    end = _SLICE_COUNTS.size + 8 * count + name_bytes
    if end > len(content) or not 1 <= number <= of <= SCAN_SLICES:
        raise ValueError("a slice that no search has")
    roots = little_endian_integers("Q", content[_SLICE_COUNTS.size : end - name_bytes])
    paths = strings(content[end - name_bytes : end])
    options = content[end:].decode()
    if len(paths) != count or not are_options(options):
        raise ValueError("a slice with other paths or options")
    totals = WalkTotals(files, size, directories, number)
    slices = SliceSet(of, (number,), options, tuple(roots), totals, totals)
    return DocumentHead(name, unit, tuple(paths), slices, own)
