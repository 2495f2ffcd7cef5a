"""Signs many small files at once: reads, cuts and hashes them as columns, without an object per file."""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.catalog.small_columns import SignedFiles, SmallFiles
from rdc.files.bulk.read_many import read_contents
from rdc.lean.records import dataclass
from rdc.model.entries import strings
from rdc.signature.short import sign_short
from rdc.signature.short_codec import decode_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.catalog.store import SignatureStore
    from rdc.chunking.params import ChunkParams
    from rdc.files.bulk.read_many import Contents

__all__ = ["BULK_BYTES", "SMALL_BYTES", "SmallOutcome", "sign_contents", "sign_small"]

BULK_BYTES = 4 << 20
"""Bytes of the largest file that `sign_small` takes. One thread reads it at once, so it is in memory. A
larger one is worth several threads."""

SMALL_BYTES = 128 << 10
"""Bytes of the largest file that is signed in bulk where files stay open, are objects of a store, or are
mostly known by their roots."""


@dataclass(frozen=True, slots=True)
class SmallOutcome:
    """The result of `sign_small`."""

    read: SignedFiles
    known: SignedFiles
    failed: list[tuple[int, int]]
    """The other rows, each with its outcome as rdc.files.bulk.read_many defines it."""


def sign_small(
    files: SmallFiles, params: ChunkParams, catalog: SignatureStore, unwanted: Collection[int] = ()
) -> SmallOutcome:
    """Signs `files` except the `unwanted` rows. Known signatures come from `catalog`; the other files are
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
    """Reads and signs all rows except those in `out`. Returns the signatures, and the rows that failed."""
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
    """Signs what was read of `rows`, files of these sizes. Returns the signatures, and the rows that
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
