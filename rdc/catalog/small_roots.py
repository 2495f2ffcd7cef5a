"""Roots of many small files, held open until it is known what becomes of them."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate

from rdc.catalog.small_files import SignedFiles, SmallFiles
from rdc.files.opened import OpenedFiles
from rdc.kernel import put_rows
from rdc.records import dataclass
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.short import sign_short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from rdc.catalog.store import SignatureStore
    from rdc.chunking.params import ChunkParams
    from rdc.files.confined import Root

__all__ = ["SmallRoots", "small_roots"]

READ_BYTES = 1 << 20
"""To be read at a time: it is still in the cache when it is hashed."""


@dataclass(frozen=True, slots=True)
class SmallRoots:
    """Files that are open, with their roots; to be closed."""

    opened: OpenedFiles
    roots: bytes
    """DIGEST_BYTES a file; zeros for those that go another way."""
    missing: list[int]
    """Which these are: not as they were listed, not to be opened, changed meanwhile."""

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
    """Opens files, at most `most_opened()`, and finds their roots: what FileSigner.root gives of each.

    `paths`: each followed by NUL. `sizes`: typecode 'Q', bytes as they were listed, READ_BYTES at most.
    `keep`: the catalog is told of what had to be read. `known`: given the ctimes of all, 0 of a file that is
    not open, it has the rows and roots of those whose root is known.
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
    files = SmallFiles(
        opened.root,
        opened.paths,
        opened.devices,
        opened.inodes,
        opened.sizes,
        opened.mtimes,
        opened.ctimes,
    )
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
        content, good = opened.read(part)
        read = part
        if 0 in good:
            read = [row for row, is_good in zip(part, good, strict=True) if is_good]
            missing.update(set(part).difference(read))
        lengths = array("Q", [sizes[row] for row in read])
        signatures = sign_short(content, lengths, params, plain=not keep)
        put_rows(roots, DIGEST_BYTES, array("Q", read), signatures.roots)
        if keep and read:
            then = array("q", [opened.ctimes[row] for row in read])
            signed = SignedFiles(array("I", read), signatures, then, None)
            catalog.put_small(files, signed, range(len(read)), began)
    return bytes(roots), sorted(missing)


def _parts(rows: Sequence[int], sizes: array[int]) -> Iterator[Sequence[int]]:
    """As many files at a time as have READ_BYTES, but one at least."""
    ends = list(accumulate([sizes[row] for row in rows]))
    first = done = 0
    while first < len(rows):
        stop = max(first + 1, bisect_right(ends, done + READ_BYTES, first))
        yield rows[first:stop]
        first, done = stop, ends[stop - 1]
