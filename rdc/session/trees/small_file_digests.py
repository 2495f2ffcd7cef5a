"""Computes the roots of many small files at once and leaves larger files to the caller."""

from __future__ import annotations

from array import array
from functools import partial

from rdc.catalog.small_files import READ_BYTES, SMALL_BYTES, SmallRoots, small_roots
from rdc.files.bulk.open_many import can_open
from rdc.kernel import put_rows, take_rows
from rdc.lean.records import Record
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root
    from rdc.tree.manifest import Manifest


class DigestCache:
    """Stores 40 bytes per entry of a tree. Rows and ctimes come as columns, typecodes 'Q' and 'q'."""

    __slots__ = ("_ctimes", "_roots")

    def __init__(self, entries: int) -> None:
        self._roots = bytearray(DIGEST_BYTES * entries)
        self._ctimes = array("q", bytes(8 * entries))

    def put(self, files: array[int], ctimes: array[int], roots: bytes) -> None:
        """Store the roots (DIGEST_BYTES each) that the files at these rows had at these ctimes."""
        put_rows(self._roots, DIGEST_BYTES, files, roots)
        put_rows(self._ctimes, 8, files, ctimes)

    def find(self, files: array[int], ctimes: array[int]) -> list[tuple[int, bytes]]:
        """Return the cached roots of files whose ctimes have not changed, each with its index in `files`.

        A change within one tick of the file system's clock leaves the ctime equal. It counts as a change
        after the comparison, like any change a moment later.
        """
        known = take_rows(self._ctimes, 8, files)
        if known == bytes(len(known)):
            return []
        return [
            (number, bytes(self._roots[DIGEST_BYTES * files[number] : DIGEST_BYTES * (files[number] + 1)]))
            for number, (then, now) in enumerate(zip(array("q", known), ctimes, strict=True))
            if then and then == now
        ]


TOGETHER_BYTES = 32 << 20
"""Files above SMALL_BYTES are included if all files together have at most this many bytes. All are read
before the first message, so more bytes would keep this side silent for too long."""


class SmallFileDigests(Record):
    """Roots of files. Some files stay open until this is closed."""

    roots: bytes
    """DIGEST_BYTES per file; zeros for files that the caller has to read one by one."""
    missing: Sequence[int]
    """Indexes of the files to be read one by one, increasing."""
    sizes: list[int]
    """Listed sizes in bytes; each root covers that many bytes."""
    rows: Sequence[int]
    """Indexes of the small files, in the order of `small`."""
    small: SmallRoots | None

    @classmethod
    def none(cls, files: int, sizes: list[int]) -> SmallFileDigests:
        """Return the result if all of these files have to be read one by one."""
        return cls(bytes(DIGEST_BYTES * files), range(files), sizes, (), None)

    def __enter__(self) -> SmallFileDigests:
        return self

    def __exit__(self, *_: object) -> None:
        if self.small is not None:
            self.small.opened.close()


def small_file_digests(
    root: Root,
    manifest: Manifest,
    files: Sequence[int],
    signer: FileSigner,
    *,
    keep: bool,
    memory: DigestCache | None = None,
) -> SmallFileDigests:
    """Return the roots of these files: at least one and at most `most_opened()` increasing rows of regular
    files.

    `keep`: store new roots in the catalog. `memory`: a cache for all entries, which is searched before a file
    is read and stores new roots.
    """
    sizes = manifest.sizes_of(files)
    if not can_open(root):
        return SmallFileDigests.none(len(files), sizes)
    rows: Sequence[int] = range(len(files))
    most = READ_BYTES if sum(sizes) <= TOGETHER_BYTES else SMALL_BYTES
    if max(sizes) > most:
        rows = [row for row, size in enumerate(sizes) if size <= most]
    if not rows:
        return SmallFileDigests.none(len(files), sizes)
    chosen, lengths = array("Q", files), array("Q", sizes)
    if len(rows) < len(files):
        chosen, lengths = array("Q", [files[row] for row in rows]), array("Q", [sizes[row] for row in rows])
    small = small_roots(
        root,
        manifest.joined_paths(chosen),
        lengths,
        signer.params,
        signer.catalog,
        keep=keep,
        known=None if memory is None else partial(memory.find, chosen),
    )
    if memory is not None:
        _store_in_cache(memory, chosen, small)
    if len(rows) == len(files):
        return SmallFileDigests(small.roots, small.missing, sizes, rows, small)
    roots = bytearray(DIGEST_BYTES * len(files))
    put_rows(roots, DIGEST_BYTES, array("Q", rows), small.roots)
    singly = set(range(len(files))).difference(rows)
    singly.update([rows[number] for number in small.missing])
    return SmallFileDigests(bytes(roots), sorted(singly), sizes, rows, small)


def _store_in_cache(memory: DigestCache, files: array[int], small: SmallRoots) -> None:
    ctimes, roots = small.opened.ctimes, small.roots
    if small.missing:
        rows = array("Q", sorted(set(range(len(files))).difference(small.missing)))
        files = array("Q", take_rows(files, 8, rows))
        ctimes, roots = array("q", take_rows(ctimes, 8, rows)), take_rows(roots, DIGEST_BYTES, rows)
    memory.put(files, ctimes, roots)
