"""Bases: local files that new versions are made from. They are signed once, and cached within bounds."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.base.descriptor_limit import share_of_descriptors
from rdc.limits.sessions import HELD_CONTENT_BYTES, HELD_FILE_BYTES, KEPT_BASES
from rdc.session.trees.signed_file import SignedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.landing.transfer_context import TransferContext
    from rdc.session.runtime.commands import Conversation

__all__ = ["Bases", "FileBases"]


class FileBases:
    """The bases of one new version."""

    __slots__ = ("file", "leftover", "outgrown", "path", "signed", "size")

    def __init__(self, file: int, path: bytes, size: int) -> None:
        """`size`: bytes of the new version, as listed."""
        self.file = file
        self.path = path
        self.size = size
        self.signed: list[SignedFile] = []
        """The signed bases; the old version at `path` comes first, if there is one."""
        self.leftover: SignedFile | None = None
        """The base that is a partial file, left by an interrupted run."""
        self.outgrown = False
        """The partial file was removed: as much is written by now."""


class Bases:
    """The bases of all files that come by delta.

    At most KEPT_BASES are open, and HELD_CONTENT_BYTES in memory. A base counts from `sign` to `drop`.
    """

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self._named: dict[int, tuple[bytes, ...]] = {}
        """Paths of further bases, by file."""
        self._most_open = share_of_descriptors(KEPT_BASES)
        self._open = 0
        """Bases that stay open."""
        self.held_bytes = 0
        """Bytes of bases in memory."""

    def name(self, file: int, paths: tuple[bytes, ...]) -> None:
        """Makes the files at `paths` further bases of `file`."""
        self._named[file] = paths

    def forget(self, file: int) -> None:
        """Forgets the further bases of `file`."""
        self._named.pop(file, None)

    def sign(self, one: FileBases, round_: int) -> Conversation[None]:
        """Signs the bases of one file; those that cannot be read are left out.

        The old version comes first, then a partial file of an interrupted run, then further bases.
        """
        size = one.size
        leftover = self._context.leftovers.of(one.path)
        one.leftover = None
        for path in (one.path, leftover, *self._named.get(one.file, ())):
            if path is None:
                continue
            try:
                with self._context.root.open_read(path) as source:
                    spans: list[bytes] = []
                    if source.size <= HELD_FILE_BYTES and self.held_bytes + source.size <= HELD_CONTENT_BYTES:
                        source.on_span = spans.append
                    # An old version of another size will be replaced: the catalog need not know it.
                    passing = path == one.path and source.size != size
                    tree = yield from self._context.sign(source, size, round_, passing=passing)
                    content = b"".join(spans)  # empty if the catalog knew the file: it was not read
                    keeps = not content and path not in (one.path, leftover) and self._may_be_replaced(path)
                    kept = source.again() if keeps else None
            except FileError:
                continue  # one base fewer
            one.signed.append(SignedFile(path, source.identity, tree, kept, content))
            self.held_bytes += len(content)
            self._open += kept is not None
            if path == leftover:
                one.leftover = one.signed[-1]

    def _may_be_replaced(self, path: bytes) -> bool:
        """Tells whether this base has to stay open: its own new version may replace it before it is used.

        Files that the source no longer has are not replaced: they stay until everything else is done.
        """
        row = self._context.entries.row(path) if self._open < self._most_open else None
        return row is not None and not self._context.landing.is_new(row)

    def drop(self, one: FileBases) -> None:
        """Releases all bases of a file; `sign` may be called again."""
        for base in one.signed:
            self.held_bytes -= len(base.content)
            if base.kept is not None:
                base.kept.close()
                self._open -= 1
        one.signed = []

    def outgrow(self, one: FileBases, written: int) -> None:
        """Removes the partial file once as many bytes are written as it has.

        Files are written front to back, so the partial file then holds nothing more. Its content stays open
        as a base. A kill then leaves one temporary, not two.
        """
        leftover = None if one.outgrown else one.leftover
        if leftover is not None and written >= leftover.tree.size:
            one.outgrown = True
            self._context.leftovers.remove(leftover.path)

    def drop_outgrown(self, one: FileBases) -> None:
        """Drops the partial file from the bases if it was removed: the next attempt does without it."""
        if one.outgrown:
            self.held_bytes -= len(one.leftover.content) if one.leftover is not None else 0
            one.signed = [base for base in one.signed if base is not one.leftover]
