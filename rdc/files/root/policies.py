"""ReadPolicy: what a Root shows of its entries and how it reads them, as a frozen value.

A Root gets it when it is made, with a WritePolicy (rdc.files.root.root). Whoever wants another policy makes
a Root of the same tree that has it (`Root.having`), so no part of a run changes how another one works.
"""

from __future__ import annotations

from rdc.lean.records import dataclass
from rdc.lean.typed import Protocol, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.errors import FileError
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.depth.read_rate import ReadRate
    from rdc.model.entries import Kind, Listed
    from rdc.progress import Reporter

__all__ = ["MUNGE", "Confined", "LinkView", "ReadPolicy"]

T = TypeVar("T")

MUNGE = b"/rsyncd-munged/"
"""What rsync puts in front of a target to make a symlink that leads nowhere."""


class Confined(Protocol):
    """What the views of a tree use of it: a ConfinedRoot."""

    @property
    def reads(self) -> ReadPolicy: ...

    def fileno(self) -> int: ...

    def directory(self, path: bytes, *, fresh: bool = False, reading: bool = False) -> Directory: ...

    def locate(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]: ...

    def find(self, path: bytes, *, fresh: bool = False) -> tuple[Directory, bytes]: ...

    def perform(
        self, path: bytes, doing: str, call: Callable[[bytes, int], T], *, reading: bool = False
    ) -> T: ...

    def refused(self, path: bytes, doing: str, *, expected: str, found: str, advice: str) -> FileError: ...

    def release(self) -> None: ...


class LinkView(Protocol):
    """Shows symlinks as what they lead to (rdc.files.root.followed_links)."""

    @property
    def top(self) -> Confined:
        """Nothing outside of it is read."""

    def begin(self, on_problem: Reporter, excluded: Callable[[bytes, bool], bool]) -> None:
        """Forget all links that were followed, before a new walk."""

    def referent(self, path: bytes) -> bytes | None:
        """Return where the entry at `path` is below `top`, if its path leads through a followed link."""

    def shown(self, root: Confined, path: bytes, listed: Listed) -> Listed:
        """Return what is shown of the directory at `path` below `root`, given what is there."""


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """What a Root shows of its entries, and how it reads them."""

    only: bytes | None = None
    """The one entry of the root that a run is about, if there is one. Where the root may be entered and not
    listed, it is looked at by its name."""
    lists_top: bool = True
    """Whether the root is listed for `only`, if it may be: for rdc's own temporaries there, and for names
    that the file system takes for the same one."""
    followed: LinkView | None = None
    """The links that are taken for what they lead to; None: no link is followed."""
    fakes: bool = False
    """Whether entries stand for others (rdc.files.base.faked_stat)."""
    untimed: frozenset[Kind] = frozenset()
    """Kinds of entries whose mtimes are shown as 0 and never set."""
    unmunges: bool = False
    """Whether munged symlinks are shown with their real targets."""
    munges: bool = False
    """Whether symlinks are shown as what they have to be made from to be munged, so that those that are not
    munged differ from all that is wanted."""
    nodes: frozenset[Kind] = frozenset()
    """The kinds of fifos, sockets and devices that listings show as what they are, not as SPECIAL."""
    keeps_atimes: bool = False
    """Whether reading leaves access times alone where this process may open files so."""
    depth: int = 0
    """Calls in flight at a time, however long they take; 0: by their waits."""
    rate: ReadRate | None = None
    """Bounds how fast files are read; None: nothing does."""
