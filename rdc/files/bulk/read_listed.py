"""Small files read whole, in bulk: those of one directory, or of several together.

A file that meets any difficulty is left to the caller, who repeats it with SourceFile, which handles and
names every case. So nothing here raises errors for single files, and without the C part no file is read.
"""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.base.relative_path import join
from rdc.files.bulk.small_files import extension
from rdc.files.depth.depth import RowsSeen
from rdc.lean.records import dataclass
from rdc.model.entries import little_endian_integers, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.root.root import Root
    from rdc.model.entries import PackedListing

__all__ = ["ListedFiles", "read_small", "read_together"]


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """Files of one directory."""

    directory: bytes
    listing: PackedListing


def read_together(root: Root, files: Sequence[ListedFiles]) -> tuple[bytes, bytes]:
    """Do what `read_small` does for the files of several directories. The results are joined.

    Where an open waits, files of all these directories wait together. Otherwise a call for each directory
    costs less.
    """
    contents, good = [], []
    for number, one in enumerate(files):
        if root.depths.opening.now > 1:
            content, fine = _read_opened(root, files[number:])
            contents.append(content)
            good.append(fine)
            break
        content, fine = read_small(root, one.directory, one.listing)
        contents.append(content)
        good.append(fine)
    return b"".join(contents), b"".join(good)


def read_small(root: Root, directory: bytes, listing: PackedListing) -> tuple[bytes, bytes]:
    """Read the files of `listing` whole. Return the contents of those that are as listed, joined, and a byte
    per entry: 1 if its file is among them.

    Such a file did not change while it was read.
    """
    nothing = b"", bytes(listing.count)
    built = extension()
    if built is None:
        return nothing
    depth = root.depths.opening
    if root.reads.keeps_atimes or depth.now > 1:
        return _read_opened(root, [ListedFiles(directory, listing)])
    try:
        fd = root.directory(directory)
    except FileError:
        return nothing
    some = listing if listing.count <= depth.rows else listing.slice(0, depth.rows)
    content, good, seen = built.read_small(fd.fd, some.names, some.sizes, some.mtimes, some.total_size)
    depth.saw(RowsSeen(*seen))
    if some.count == listing.count:
        return content, good
    more_content, more_good = read_small(root, directory, listing.slice(some.count, listing.count))
    return content + more_content, good + more_good


def _read_opened(root: Root, files: Sequence[ListedFiles]) -> tuple[bytes, bytes]:
    """Do what `read_small` does with several files open: at a depth past 1, or so that they keep their access
    times."""
    from rdc.files.bulk.open_many import OpenedFiles, can_open, most_opened

    good = bytearray(sum([one.listing.count for one in files]))
    if not can_open():
        return b"", bytes(good)
    paths = [join(one.directory, name) + b"\0" for one in files for name in strings(one.listing.names)]
    sizes = little_endian_integers("Q", b"".join([one.listing.sizes for one in files]))
    mtimes = little_endian_integers("q", b"".join([one.listing.mtimes for one in files]))
    parts = []
    first = 0
    while first < len(paths):
        with OpenedFiles(root, b"".join(paths[first : first + most_opened(root)])) as opened:
            failed = set(opened.failed)
            rows = [
                row
                for row in range(len(opened))
                if row not in failed
                and (opened.sizes[row], opened.mtimes[row]) == (sizes[first + row], mtimes[first + row])
            ]
            content, read = opened.read(rows)
            parts.append(content)
            for row, is_good in zip(rows, read, strict=True):
                good[first + row] = is_good
            first += len(opened)
    return b"".join(parts), bytes(good)
