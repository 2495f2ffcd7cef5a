"""Roots of many files of a listed tree: of the small ones at once, which leaves the others to the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.small_roots import small_roots
from rdc.files.opened import can_open
from rdc.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rdc.catalog.signer import FileSigner
    from rdc.catalog.small_roots import SmallRoots
    from rdc.files.confined import Root
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
    root: Root, manifest: Manifest, files: Sequence[int], signer: FileSigner, *, keep: bool
) -> ManyRoots:
    """The roots of these files, at most rdc.limits.OPENED_FILES: increasing rows of `manifest` that are
    regular files. `keep`: the catalog is told of what had to be read."""
    sizes = manifest.sizes_of(files)
    rows = [row for row, size in enumerate(sizes) if size <= SMALL_BYTES] if can_open() else []
    roots = [b""] * len(files)
    if not rows:
        return ManyRoots(roots, sizes, rows, None)
    paths = manifest.paths([files[row] for row in rows])
    small = small_roots(root, paths, [sizes[row] for row in rows], signer.params, signer.catalog, keep=keep)
    for row, found in zip(rows, small.roots, strict=True):
        roots[row] = found
    return ManyRoots(roots, sizes, rows, small)
