"""What the files share that come by delta, besides what all transfers share.

- `Room` bounds how many files are in work, and the memory that their trees take.
- `StaleAnswers` drops answers that are still to come for files that were given up.
- `DuplicateContents` notices content that several paths will hold: it is fetched for one and copied for the
  others.
- `Bases` (rdc.session.delta.bases) signs and caches the old versions.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from rdc.errors import FileError
from rdc.limits.sessions import EQUAL_ROOTS, TREES_IN_FLIGHT, TREES_IN_FLIGHT_BYTES
from rdc.protocol.messages import BlockAnswer, FileEnd, FileFailed, Literals, NodeAnswer
from rdc.records import dataclass
from rdc.session.delta.bases import SignedFile, sign_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.protocol.messages.content import FileMessage
    from rdc.session.delta.bases import Bases
    from rdc.session.landing.transfer_context import TransferContext
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.whole_files import WholeFiles

__all__ = ["DeltaContext", "DuplicateContents", "DuplicateFile", "Room", "StaleAnswers"]


class Room:
    """At most TREES_IN_FLIGHT files with trees of TREES_IN_FLIGHT_BYTES, or one file of any size."""

    __slots__ = ("files", "used")

    def __init__(self) -> None:
        self.files = 0
        self.used = 0
        """Bytes, as estimated."""

    @property
    def has_room(self) -> bool:
        """Whether one more file may enter."""
        return not self.files or (self.files < TREES_IN_FLIGHT and self.used < TREES_IN_FLIGHT_BYTES)

    @property
    def left(self) -> int:
        """Bytes. Negative where one large file takes more than there is."""
        return TREES_IN_FLIGHT_BYTES - self.used

    def enter(self, size: int) -> None:
        """A file enters, whose trees take `size` bytes."""
        self.files += 1
        self.used += size

    def grow(self, size: int) -> None:
        """A file that is in takes `size` bytes more."""
        self.used += size

    def leave(self, size: int) -> None:
        """A file leaves and gives back all its `size` bytes."""
        self.files -= 1
        self.used -= size


class StaleAnswers:
    """By file, one for each request that was sent. Only nodes come in several messages a request."""

    def __init__(self) -> None:
        self._ends: dict[int, deque[int | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._ends)

    def expect(self, file: int, ends: Sequence[int | None]) -> None:
        """Requests of a file that are no longer of use, in the order they were sent: the last node of a
        NodeRequest, None for any other."""
        if ends:
            self._ends[file] = deque(ends)

    def drop(self, message: FileMessage) -> bool:
        """Whether this message belongs to such a request."""
        ends = self._ends.get(message.file)
        if ends is None:
            return False
        if isinstance(message, NodeAnswer):
            if ends[0] is None:
                return False
            ended = message.nodes[-1] == ends[0]
        elif isinstance(message, FileEnd):
            if message.digest:
                return False  # of the whole file, which was asked for instead
            ended = True
        else:
            ended = isinstance(message, BlockAnswer | FileFailed | Literals)
        if ended:
            ends.popleft()
            if not ends:
                del self._ends[message.file]
        return True


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
            reopen = partial(self._context.landing.open, entry.path)
            with reopen() as source:
                tree = yield from sign_file(self._context, source, entry.size, round_)
                return SignedFile(entry.path, source.identity, tree, reopen=reopen)
        except FileError:
            return None


@dataclass(frozen=True, slots=True)
class DeltaContext:
    """What the files share."""

    transfer: TransferContext
    bases: Bases
    duplicates: DuplicateContents
    wholes: Callable[[], WholeFiles]
    """Makes the part that fetches whole files, at the first call."""
    room: Room
    stale: StaleAnswers
