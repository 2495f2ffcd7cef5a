"""Many small files signed at once: read, cut and hashed as columns; of its own a file has a row."""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.files.contents import read_contents
from rdc.model.entries import Identity, strings
from rdc.records import dataclass
from rdc.signature.short import ShortSignatures, sign_short
from rdc.signature.short_codec import decode_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.catalog.store import SignatureStore
    from rdc.chunking.params import ChunkParams
    from rdc.files.confined import Root

__all__ = ["SMALL_BYTES", "SignedFiles", "SmallFiles", "SmallOutcome", "sign_small"]

SMALL_BYTES = 128 << 10
"""Bytes of the largest file that is taken with others. Above it, what Python adds for a file by itself is
less than reading and hashing it takes."""


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """Files of one tree, as they were listed; for `sign_small` each has at most SMALL_BYTES."""

    root: Root
    paths: bytes
    """Relative to `root`, each followed by NUL."""
    devices: array[int]
    inodes: array[int]
    sizes: array[int]
    """Typecode 'Q'."""
    mtimes: array[int]
    ctimes: array[int]
    """Typecode 'q', nanoseconds."""

    def __len__(self) -> int:
        return len(self.sizes)

    def identity(self, row: int) -> Identity:
        """As it was listed."""
        return Identity(
            self.devices[row], self.inodes[row], self.sizes[row], self.mtimes[row], self.ctimes[row]
        )


@dataclass(frozen=True, slots=True)
class SignedFiles:
    """Some of SmallFiles with their signatures."""

    rows: array[int]
    """Typecode 'I', increasing; the columns below have one of theirs each, in this order."""
    signatures: ShortSignatures
    ctimes: array[int]
    """Typecode 'q': when they were read."""
    data: bytes | None
    """Their contents, one behind another. None: they were known and not read."""


@dataclass(frozen=True, slots=True)
class SmallOutcome:
    """What came of SmallFiles."""

    read: SignedFiles
    known: SignedFiles
    failed: list[tuple[int, int]]
    """The other rows, each with its outcome: rdc.files.contents says what that is."""


def sign_small(
    files: SmallFiles, params: ChunkParams, catalog: SignatureStore, unwanted: Collection[int] = ()
) -> SmallOutcome:
    """Signs `files`, but for the `unwanted` rows: looked up in `catalog`, or read, and `catalog` is told.

    What is not as it was listed, or changes while it is read, is in `failed`. Threads may do this side by
    side: most of it needs no lock of the interpreter.
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
    """All rows but those in `out`, and what failed."""
    rows, wanted, paths = array("I", range(len(files))), array("Q", bytes(24 * len(files))), files.paths
    wanted[0::3], wanted[1::3], wanted[2::3] = files.devices, files.inodes, files.sizes
    if out:
        rows = array("I", [row for row in rows if row not in out])
        wanted = array("Q", [number for row in rows for number in wanted[3 * row : 3 * row + 3]])
        names = strings(paths)
        paths = b"".join([names[row] + b"\0" for row in rows])
    found = read_contents(files.root.fileno(), paths, wanted, SMALL_BYTES, 0)
    sizes, data, ctimes = wanted[2::3], found.data, found.ctimes
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
