"""Roots of many files of a listed tree: of the small ones at once, which leaves the others to the caller."""

from __future__ import annotations

from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.small_roots import small_roots
from rdc.files.opened import can_open
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from rdc.catalog.signer import FileSigner
    from rdc.catalog.small_roots import SmallRoots
    from rdc.files.confined import Root
    from rdc.session.root_memory import RootMemory
    from rdc.tree.manifest import Manifest

__all__ = ["ManyRoots", "many_roots"]


@dataclass(frozen=True, slots=True)
class ManyRoots:
    """Roots of files, some of which are still open; to be closed."""

    roots: list[bytes]
    """One a file; b'' of those that are to be looked at singly."""
    sizes: list[int]
    """Bytes, as listed: those of the content that a root is of."""
    rows: list[int]
    """Of the small ones among them, which `small` has in this order."""
    small: SmallRoots | None

    def __enter__(self) -> ManyRoots:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.small is not None:
            self.small.opened.close()


def many_roots(
    root: Root,
    manifest: Manifest,
    files: Sequence[int],
    signer: FileSigner,
    *,
    keep: bool,
    memory: RootMemory | None = None,
) -> ManyRoots:
    """The roots of these files, at most `most_opened()`: increasing rows of `manifest` that are
    regular files. `keep`: the catalog is told of what had to be read. `memory`: of all entries, asked before
    a file is read, and told of it."""
    sizes = manifest.sizes_of(files)
    rows = [row for row, size in enumerate(sizes) if size <= SMALL_BYTES] if can_open() else []
    roots = [b""] * len(files)
    if not rows:
        return ManyRoots(roots, sizes, rows, None)
    paths = manifest.paths([files[row] for row in rows])
    lengths, params, catalog = [sizes[row] for row in rows], signer.params, signer.catalog
    if memory is None:
        small = small_roots(root, paths, lengths, params, catalog, keep=keep)
    else:
        known = _known(memory, [files[row] for row in rows])
        small = small_roots(root, paths, lengths, params, catalog, keep=keep, known=known)
    for row, found, ctime in zip(rows, small.roots, small.opened.ctimes, strict=True):
        roots[row] = found
        if memory is not None and found:
            memory.put(files[row], ctime, found)
    return ManyRoots(roots, sizes, rows, small)


def _known(memory: RootMemory, files: Sequence[int]) -> Callable[[int, int], bytes]:
    """What is remembered of the rows that these files have."""
    return lambda row, ctime: memory.of(files[row], ctime)
