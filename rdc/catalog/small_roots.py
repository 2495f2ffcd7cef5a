"""Roots of many small files, which stay open until the caller has decided what to do with them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate

from rdc.catalog.small_columns import SignedFiles, SmallFiles
from rdc.files.bulk.open_many import OpenedFiles
from rdc.kernel import put_rows
from rdc.lean.records import dataclass
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.short import sign_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from rdc.catalog.store import SignatureStore
    from rdc.chunking.params import ChunkParams
    from rdc.files.root.root import Root

__all__ = ["SmallRoots", "small_roots"]

READ_BYTES = 1 << 20
"""Bytes read at a time: few enough to be hashed while they are in the CPU cache."""


@dataclass(frozen=True, slots=True)
class SmallRoots:
    """Open files with their roots. Use as a context manager to close them."""

    opened: OpenedFiles
    roots: bytes
    """DIGEST_BYTES per file; zeros for the rows in `missing`."""
    missing: list[int]
    """Rows without a root: the file differs from its listing, cannot be opened, or changed meanwhile."""

    def __enter__(self) -> SmallRoots:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.opened.close()


def small_roots(
    root: Root,
    paths: bytes,
    sizes: array[int],
    params: ChunkParams,
    catalog: SignatureStore,
    *,
    keep: bool,
    known: Callable[[array[int]], list[tuple[int, bytes]]] | None = None,
) -> SmallRoots:
    """Opens files and finds the root of each, as FileSigner.root does. At most `most_opened()` files.

    `paths`: each followed by NUL. `sizes`: typecode 'Q', listed sizes in bytes, READ_BYTES at most. `keep`:
    store the signatures of files that had to be read. `known`: called with the ctimes of all files, 0 for a
    file that is not open; returns the rows whose root is known, with their roots.
    """
    opened = OpenedFiles(root, paths)
    try:
        return SmallRoots(opened, *_roots(opened, sizes, params, catalog, keep, known))
    except BaseException:
        opened.close()
        raise


def _roots(
    opened: OpenedFiles,
    sizes: array[int],
    params: ChunkParams,
    catalog: SignatureStore,
    keep: bool,
    known: Callable[[array[int]], list[tuple[int, bytes]]] | None,
) -> tuple[bytes, list[int]]:
    """The columns `roots` and `missing` of SmallRoots."""
    # long because it handles many files at once, and a call for each would cost more than the work
    files = _listed(opened)
    missing = set(opened.failed)
    if opened.sizes != sizes:
        missing.update([row for row, size in enumerate(sizes) if opened.sizes[row] != size])
    found = dict([] if known is None else known(opened.ctimes))
    found.update(catalog.find_roots(files, params))
    roots = bytearray(DIGEST_BYTES * len(opened))
    for row, root in found.items():
        if row not in missing:
            roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES] = root
    rows: Sequence[int] = range(len(opened))
    if found or missing:
        rows = [row for row in rows if row not in found and row not in missing]
    began = catalog.now()
    for part in _parts(rows, sizes):
        signed = _read_open(opened, part, sizes, params, keep)
        if len(signed.rows) < len(part):
            missing.update(set(part).difference(signed.rows))
        put_rows(roots, DIGEST_BYTES, array("Q", signed.rows), signed.signatures.roots)
        if keep and len(signed.rows):
            catalog.put_small(files, signed, range(len(signed.rows)), began)
    return bytes(roots), sorted(missing)


def _listed(opened: OpenedFiles) -> SmallFiles:
    """The open files as the catalog looks them up."""
    return SmallFiles(
        opened.root,
        opened.paths,
        opened.devices,
        opened.inodes,
        opened.sizes,
        opened.mtimes,
        opened.ctimes,
    )


def _read_open(
    opened: OpenedFiles, rows: Sequence[int], sizes: array[int], params: ChunkParams, keep: bool
) -> SignedFiles:
    """Reads and signs some rows. Those that changed meanwhile are left out."""
    content, good = opened.read(rows)
    read = rows
    if 0 in good:
        read = [row for row, is_good in zip(rows, good, strict=True) if is_good]
    lengths = array("Q", [sizes[row] for row in read])
    signatures = sign_short(content, lengths, params, plain=not keep)
    ctimes = array("q", [opened.ctimes[row] for row in read])
    return SignedFiles(array("I", read), signatures, ctimes, None)


def _parts(rows: Sequence[int], sizes: array[int]) -> Iterator[Sequence[int]]:
    """Consecutive rows with at most READ_BYTES in total; at least one row per item."""
    ends = list(accumulate([sizes[row] for row in rows]))
    first = done = 0
    while first < len(rows):
        stop = max(first + 1, bisect_right(ends, done + READ_BYTES, first))
        yield rows[first:stop]
        first, done = stop, ends[stop - 1]
