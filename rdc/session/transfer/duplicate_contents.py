"""Equal new contents: content that several paths will hold is fetched for one and copied for the others."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.limits.sessions import EQUAL_ROOTS
from rdc.records import dataclass
from rdc.session.trees.signed_file import SignedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.landing.transfer_context import TransferContext
    from rdc.session.runtime.commands import Conversation

__all__ = ["DuplicateFile", "DuplicateContents"]

EQUAL_BYTES = 4096
"""Smaller content is simply fetched again: remembering it costs about as much."""


@dataclass(frozen=True, slots=True)
class DuplicateFile:
    """A file that waits for another file with the same new content."""

    file: int
    first: int
    """The other file, which was requested before."""
    size: int
    """The size that its TreeAnswer announced, in bytes."""
    root: bytes
    """The root of both files, 32 bytes."""
    mtime_ns: int | None
    """The mtime of its TreeAnswer."""


class DuplicateContents:
    """Roots of files that are being fetched, and the files that wait until one of them is committed.

    If a first file fails, the files that wait for it are fetched. Each is copied only if the first file then
    has the root and size that were announced.
    """

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self._first: dict[bytes, int] = {}
        self._waiting: list[DuplicateFile] = []
        self._last: tuple[int, SignedFile | None] | None = None
        """The first file that was signed last: files with equal content are copied one after another."""

    def __len__(self) -> int:
        """The number of files that wait."""
        return len(self._waiting)

    def waits(self, file: int, size: int, root: bytes, mtime_ns: int | None) -> bool:
        """Tells whether another file with this root was requested before. If so, this file waits for it."""
        if size < EQUAL_BYTES:
            return False
        first = self._first.get(root)
        if first is None and len(self._first) < EQUAL_ROOTS:
            self._first[root] = file
        if first is None or first == file:
            return False
        self._waiting.append(DuplicateFile(file, first, size, root, mtime_ns))
        return True

    def drained(self) -> list[DuplicateFile]:
        """Commits what is pending and takes all files that wait. Call it when no other file is in work."""
        self._context.landing.flush()
        waiting, self._waiting = self._waiting, []
        return sorted(waiting, key=lambda copied: (copied.first, copied.file))

    def base(self, copied: DuplicateFile, round_: int) -> Conversation[SignedFile | None]:
        """Returns the first file of `copied` if it has the announced content, else None."""
        if self._last is None or self._last[0] != copied.first:
            self._last = (copied.first, (yield from self._sign(copied.first, round_)))
        first = self._last[1]
        if first is None or (first.tree.root, first.tree.size) != (copied.root, copied.size):
            return None
        return first

    def _sign(self, file: int, round_: int) -> Conversation[SignedFile | None]:
        """Signs a committed file. Returns None if it cannot be read."""
        entry = self._context.entries.entry(file)
        try:
            with self._context.root.open_read(entry.path) as source:
                tree = yield from self._context.sign(source, entry.size, round_)
                return SignedFile(entry.path, source.identity, tree)
        except FileError:
            return None
