"""The files here that new versions are made from: signed once, and held between their uses within bounds."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.descriptors import share_of_descriptors
from rdc.limits import HELD_CONTENT_BYTES, HELD_FILE_BYTES, KEPT_BASES
from rdc.session.signed_file import SignedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.commands import Conversation
    from rdc.session.descending_file import DescendingFile
    from rdc.session.transfer_context import TransferContext

__all__ = ["Bases"]


class Bases:
    """Of all files that come by descent. At most KEPT_BASES are open, and HELD_CONTENT_BYTES in memory; what
    `sign` gave to a file counts until `drop` takes it."""

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self._named: dict[int, tuple[bytes, ...]] = {}
        self._most_kept = share_of_descriptors(KEPT_BASES)
        self._kept = 0
        """Bases that are kept open."""
        self.held_bytes = 0
        """Of bases that are kept in memory."""

    def name(self, file: int, paths: tuple[bytes, ...]) -> None:
        """Have the files at `paths` be bases of this one too."""
        self._named[file] = paths

    def forget(self, file: int) -> None:
        """Which files were named for this one."""
        self._named.pop(file, None)

    def sign(self, state: DescendingFile, round_: int) -> Conversation[None]:
        """The old version first, then what an interrupted run left of the new one, then other files."""
        size = state.listed_size
        leftover = self._context.leftovers.of(state.path)
        state.leftover = None
        for path in (state.path, leftover, *self._named.get(state.file, ())):
            if path is None:
                continue
            try:
                with self._context.root.open_read(path) as source:
                    spans: list[bytes] = []
                    if source.size <= HELD_FILE_BYTES and self.held_bytes + source.size <= HELD_CONTENT_BYTES:
                        source.on_span = spans.append
                    # One of another size is no version that could stay.
                    passing = path == state.path and source.size != size
                    tree = yield from self._context.sign(source, size, round_, passing=passing)
                    content = b"".join(spans)  # nothing of a file that the catalog knew
                    keeps = not content and path not in (state.path, leftover) and self._will_go(path)
                    kept = source.again() if keeps else None
            except FileError:
                continue  # one base fewer
            state.held.append(SignedFile(path, source.identity, tree, kept, content))
            self.held_bytes += len(content)
            self._kept += kept is not None
            if path == leftover:
                state.leftover = state.held[-1]

    def _will_go(self, path: bytes) -> bool:
        """Whether this base of another file is to be kept open, because its own new version may replace it
        before it is used. Vanished files stay until everything else is done."""
        row = self._context.entries.row(path) if self._kept < self._most_kept else None
        return row is not None and not self._context.landing.is_new(row)

    def drop(self, state: DescendingFile) -> None:
        """All that a file has; they may be signed anew."""
        for held in state.held:
            self.held_bytes -= len(held.content)
            if held.kept is not None:
                held.kept.close()
                self._kept -= 1
        state.held = []

    def outgrow(self, state: DescendingFile, written: int) -> None:
        """Removes the leftover once as much is written as it has: files are written front to back, so it
        holds nothing more, and its content stays open as a base. A kill then leaves one temporary."""
        leftover = None if state.outgrown else state.leftover
        if leftover is not None and written >= leftover.tree.size:
            state.outgrown = True
            self._context.leftovers.remove(leftover.path)

    def drop_outgrown(self, state: DescendingFile) -> None:
        """The leftover, if it is gone: the next attempt does without."""
        if state.outgrown:
            self.held_bytes -= len(state.leftover.content) if state.leftover is not None else 0
            state.held = [held for held in state.held if held is not state.leftover]
