"""Roots of many small files, held open until it is known what becomes of them."""

from __future__ import annotations

from array import array

from rdc.catalog.small_files import SignedFiles, SmallFiles
from rdc.files.opened import OpenedFiles
from rdc.records import dataclass
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
    roots: list[bytes]
    """b'' of those that go another way: not as they were listed, not to be opened, changed meanwhile."""

    def __enter__(self) -> SmallRoots:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.opened.close()


def small_roots(
    root: Root,
    paths: Sequence[bytes],
    sizes: Sequence[int],
    params: ChunkParams,
    catalog: SignatureStore,
    *,
    keep: bool,
    known: Callable[[int, int], bytes] | None = None,
) -> SmallRoots:
    """Opens the files at `paths`, at most `most_opened()` of some SMALL_BYTES at most as they were
    listed, and finds their roots: what FileSigner.root gives of each. `keep`: the catalog is told of what had
    to be read. `known`: gives the root of a row that is open and has this ctime, or b"".
    """
    opened = OpenedFiles(root, b"\0".join((*paths, b"")))
    try:
        return SmallRoots(opened, _roots(opened, sizes, params, catalog, keep, known))
    except BaseException:
        opened.close()
        raise


def _roots(
    opened: OpenedFiles,
    sizes: Sequence[int],
    params: ChunkParams,
    catalog: SignatureStore,
    keep: bool,
    known: Callable[[int, int], bytes] | None,
) -> list[bytes]:
    roots = [b""] * len(opened)
    files = SmallFiles(
        opened.root,
        opened.paths,
        opened.devices,
        opened.inodes,
        opened.sizes,
        opened.mtimes,
        opened.ctimes,
    )
    failed = set(opened.failed)
    rows = [row for row, size in enumerate(sizes) if opened.sizes[row] == size and row not in failed]
    as_listed = set(rows)
    for row, root in catalog.find_roots(files, params):
        if row in as_listed:
            roots[row] = root
    if known is not None:
        ctimes = opened.ctimes
        for row in rows:
            roots[row] = roots[row] or known(row, ctimes[row])
    began = catalog.now()
    for part in _parts([row for row in rows if not roots[row]], sizes):
        content, good = opened.read(part)
        read = part if 0 not in good else [row for row, is_good in zip(part, good, strict=True) if is_good]
        signatures = sign_short(content, array("Q", [sizes[row] for row in read]), params, plain=not keep)
        for number, row in enumerate(read):
            roots[row] = signatures.root_of(number)
        if keep and read:
            then = array("q", [opened.ctimes[row] for row in read])
            signed = SignedFiles(array("I", read), signatures, then, None)
            catalog.put_small(files, signed, range(len(read)), began)
    return roots


def _parts(rows: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    part: list[int] = []
    total = 0
    for row in rows:
        if part and total + sizes[row] > READ_BYTES:
            yield part
            part, total = [], 0
        part.append(row)
        total += sizes[row]
    if part:
        yield part
