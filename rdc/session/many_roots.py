"""Roots of many files of a listed tree: of the small ones at once, which leaves the others to the caller."""

from __future__ import annotations

from array import array
from functools import partial

from rdc.catalog.small_files import SMALL_BYTES
from rdc.catalog.small_roots import READ_BYTES, small_roots
from rdc.files.opened import can_open
from rdc.kernel import put_rows, take_rows
from rdc.records import dataclass
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rdc.catalog.signer import FileSigner
    from rdc.catalog.small_roots import SmallRoots
    from rdc.files.confined import Root
    from rdc.session.root_memory import RootMemory
    from rdc.tree.manifest import Manifest

__all__ = ["ManyRoots", "many_roots"]

TOGETHER_BYTES = 32 << 20
"""Bytes of files up to which those above SMALL_BYTES are taken too: all are read before anything is said, and
with more of them nobody would hear of this side for too long."""


@dataclass(frozen=True, slots=True)
class ManyRoots:
    """Roots of files, some of which are still open; to be closed."""

    roots: bytes
    """DIGEST_BYTES a file; zeros for those that are to be looked at singly."""
    missing: Sequence[int]
    """Rows of these, increasing."""
    sizes: list[int]
    """Bytes, as listed: those of the content that a root is of."""
    rows: Sequence[int]
    """Of the small ones among them, which `small` has in this order."""
    small: SmallRoots | None

    @classmethod
    def none(cls, files: int, sizes: list[int]) -> ManyRoots:
        """All of so many files are to be looked at singly."""
        return cls(bytes(DIGEST_BYTES * files), range(files), sizes, (), None)

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
    """The roots of these files, one to `most_opened()` increasing rows of `manifest` that are regular files.

    `keep`: the catalog is told of what had to be read. `memory`: of all entries, asked before a file is read,
    and told of it.
    """
    sizes = manifest.sizes_of(files)
    if not can_open():
        return ManyRoots.none(len(files), sizes)
    rows: Sequence[int] = range(len(files))
    most = READ_BYTES if sum(sizes) <= TOGETHER_BYTES else SMALL_BYTES
    if max(sizes) > most:
        rows = [row for row, size in enumerate(sizes) if size <= most]
    if not rows:
        return ManyRoots.none(len(files), sizes)
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
        _remember(memory, chosen, small)
    if len(rows) == len(files):
        return ManyRoots(small.roots, small.missing, sizes, rows, small)
    roots = bytearray(DIGEST_BYTES * len(files))
    put_rows(roots, DIGEST_BYTES, array("Q", rows), small.roots)
    singly = set(range(len(files))).difference(rows)
    singly.update([rows[number] for number in small.missing])
    return ManyRoots(bytes(roots), sorted(singly), sizes, rows, small)


def _remember(memory: RootMemory, files: array[int], small: SmallRoots) -> None:
    ctimes, roots = small.opened.ctimes, small.roots
    if small.missing:
        rows = array("Q", sorted(set(range(len(files))).difference(small.missing)))
        files = array("Q", take_rows(files, 8, rows))
        ctimes, roots = array("q", take_rows(ctimes, 8, rows)), take_rows(roots, DIGEST_BYTES, rows)
    memory.put(files, ctimes, roots)
