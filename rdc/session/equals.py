"""Equal new contents: what several paths are to hold is fetched for one, and copied for the others."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.limits import EQUAL_ROOTS
from rdc.records import dataclass
from rdc.session.signed_file import SignedFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.commands import Conversation
    from rdc.session.transfer_context import TransferContext

__all__ = ["Copied", "Equals"]

EQUAL_BYTES = 4096
"""Below, what a second transfer of a content costs is hardly more than what is remembered of the first."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A file whose new content another one gets as well."""

    file: int
    first: int
    """The other one: asked for before."""
    root: bytes
    """32 bytes: of both."""
    mtime_ns: int | None
    """As in its TreeAnswer."""


class Equals:
    """Roots of files that are being fetched, and the files that wait for one of them to land.

    A first file that fails takes nobody with it: whoever waits is checked against the root it was announced
    with before it is copied, and fetched as if nothing had been equal otherwise.
    """

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self._first: dict[bytes, int] = {}
        self._waiting: list[Copied] = []
        self._held: tuple[int, SignedFile | None] | None = None
        """The first file that was looked at last: equal files are copied one behind the other."""

    def __len__(self) -> int:
        """Files that wait."""
        return len(self._waiting)

    def waits(self, file: int, size: int, root: bytes, mtime_ns: int | None) -> bool:
        """Whether another file with this root is on its way or here: then this one waits for it."""
        if size < EQUAL_BYTES:
            return False
        first = self._first.get(root)
        if first is None and len(self._first) < EQUAL_ROOTS:
            self._first[root] = file
        if first is None or first == file:
            return False
        self._waiting.append(Copied(file, first, root, mtime_ns))
        return True

    def drained(self) -> list[Copied]:
        """All that wait, for everything else is through; what is on the way to its place lands."""
        self._context.landing.flush()
        waiting, self._waiting = self._waiting, []
        return sorted(waiting, key=lambda copied: (copied.first, copied.file))

    def held(self, copied: Copied, round_: int) -> Conversation[SignedFile | None]:
        """The first file, if it holds what was announced."""
        if self._held is None or self._held[0] != copied.first:
            self._held = (copied.first, (yield from self._sign(copied.first, round_)))
        held = self._held[1]
        return held if held is not None and held.tree.root == copied.root else None

    def _sign(self, file: int, round_: int) -> Conversation[SignedFile | None]:
        entry = self._context.entries.entry(file)
        try:
            with self._context.root.open_read(entry.path) as source:
                tree = yield from self._context.sign(source, entry.size, round_)
                return SignedFile(entry.path, source.identity, tree)
        except FileError:
            return None
