"""Many small files as columns, without an object per file: their signatures, and their roots alone."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate

from rdc.catalog.store import SignatureStore, SignedFiles, SmallFiles
from rdc.files.bulk.open_many import Contents, OpenedFiles, read_contents
from rdc.kernel import put_rows
from rdc.lean.records import Record
from rdc.model.entries import strings
from rdc.signature.codec import decode_short, sign_short
from rdc.signature.tree import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from rdc.chunking import ChunkParams
    from rdc.files.root.root import Root


# Signs many small files at once: reads, cuts and hashes them as columns, without an object per file.

BULK_BYTES = 4 << 20
"""Bytes of the largest file that `sign_small` takes. One thread reads it at once, so it is in memory. A
larger one is worth several threads."""

SMALL_BYTES = 128 << 10
"""Bytes of the largest file that is signed in bulk where files stay open, are objects of a store, or are
mostly known by their roots."""


class SmallOutcome(Record):
    """The result of `sign_small`."""

    read: SignedFiles
    known: SignedFiles
    failed: list[tuple[int, int]]
    """The other rows, each with its outcome as rdc.files.bulk.open_many defines it."""


def sign_small(
    files: SmallFiles, params: ChunkParams, catalog: SignatureStore, unwanted: Collection[int] = ()
) -> SmallOutcome:
    """Sign `files` except the `unwanted` rows. Known signatures come from `catalog`; the other files are
    read, and their signatures are stored there.

    Files that differ from their listing or change while they are read are in `failed`. Threads may run this
    in parallel: most of the work releases the interpreter's lock. All contents are in memory at once.
    """
    known = _known(files, params, catalog, unwanted)
    out = {*unwanted, *known.rows}
    began = catalog.now()
    read, failed = _read(files, params, out)
    if len(read.rows):
        catalog.put_small(files, read, range(len(read.rows)), began)
    return SmallOutcome(read, known, failed)


def _known(
    files: SmallFiles, params: ChunkParams, catalog: SignatureStore, unwanted: Collection[int]
) -> SignedFiles:
    found = [one for one in catalog.find_small(files, params) if one[0] not in unwanted]
    good, signatures = decode_short([value for _, value in found], params)
    rows = array("I", [found[number][0] for number in good])
    fitting = [number for number, row in enumerate(rows) if signatures.sizes[number] == files.sizes[row]]
    if len(fitting) < len(rows):
        rows, signatures = array("I", [rows[number] for number in fitting]), signatures.chosen(fitting)
    return SignedFiles(rows, signatures, array("q", [files.ctimes[row] for row in rows]), None)


def _read(
    files: SmallFiles, params: ChunkParams, out: Collection[int]
) -> tuple[SignedFiles, list[tuple[int, int]]]:
    """Read and sign all rows except those in `out`. Returns the signatures, and the rows that failed."""
    rows, wanted, paths = array("I", range(len(files))), array("Q", bytes(24 * len(files))), files.paths
    wanted[0::3], wanted[1::3], wanted[2::3] = files.devices, files.inodes, files.sizes
    if out:
        rows = array("I", [row for row in rows if row not in out])
        wanted = array("Q", [number for row in rows for number in wanted[3 * row : 3 * row + 3]])
        names = strings(paths)
        paths = b"".join([names[row] + b"\0" for row in rows])
    root = files.root
    if root.reads.rate is not None:
        root.reads.rate.take(sum(wanted[2::3]))
    found = read_contents(root.fileno(), paths, wanted, BULK_BYTES, 0, root.depths.opening)
    return sign_contents(found, rows, wanted[2::3], params)


def sign_contents(
    found: Contents, rows: array[int], sizes: array[int], params: ChunkParams
) -> tuple[SignedFiles, list[tuple[int, int]]]:
    """Sign what was read of `rows`, files of these sizes. Returns the signatures, and the rows that
    failed."""
    data, ctimes = found.data, found.ctimes
    failed = []
    if any(found.outcomes):
        failed = [(rows[number], outcome) for number, outcome in enumerate(found.outcomes) if outcome]
        good = [number for number, outcome in enumerate(found.outcomes) if not outcome]
        begins = array("Q", accumulate(sizes, initial=0))
        data = b"".join([data[begins[number] : begins[number + 1]] for number in good])
        rows = array("I", [rows[number] for number in good])
        sizes = array("Q", [sizes[number] for number in good])
        ctimes = array("q", [ctimes[number] for number in good])
    return SignedFiles(rows, sign_short(data, sizes, params), ctimes, data), failed


READ_BYTES = 1 << 20
"""Bytes read at a time: few enough to be hashed while they are in the CPU cache."""


class SmallRoots(Record):
    """Open files with their roots. Use as a context manager to close them."""

    opened: OpenedFiles
    roots: bytes
    """DIGEST_BYTES per file; zeros for the rows in `missing`."""
    missing: list[int]
    """Rows without a root: the file differs from its listing, cannot be opened, or changed meanwhile."""

    def __enter__(self) -> SmallRoots:
        return self

    def __exit__(self, *_: object) -> None:
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
    """Open files and find the root of each, as FileSigner.root does. At most `most_opened()` files.

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
    """Return the columns `roots` and `missing` of SmallRoots."""
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
    """Return the open files as the catalog looks them up."""
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
    """Read and sign some rows. Those that changed meanwhile are left out."""
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
