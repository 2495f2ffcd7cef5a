"""ReadPolicy and WritePolicy: how a Root shows its entries and how it writes, as frozen values.

A Root gets both when it is made. Whoever wants another policy makes a Root of the same tree that has it
(`Root.having`), so no part of a run changes how another one reads or writes.
"""

from __future__ import annotations

import os

from rdc.records import dataclass
from rdc.typed import NamedTuple, Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.errors import RdcError
    from rdc.files.base.append_only import MadeEntries
    from rdc.files.base.write_quota import WriteQuota
    from rdc.files.depth.read_rate import ReadRate
    from rdc.files.root.confined_root import ConfinedRoot
    from rdc.files.root.root import Root
    from rdc.model.entries import Kind, Metadata
    from rdc.model.listed import Listed
    from rdc.progress import Reporter

__all__ = [
    "HOLE_BYTES",
    "LONG_HOLE_BYTES",
    "MUNGE",
    "BackupKeeper",
    "LinkView",
    "PartKeeper",
    "Placed",
    "ReadPolicy",
    "UndoKeeper",
    "WritePolicy",
]

HOLE_BYTES = 4096
"""The block size of most file systems. A shorter hole saves nothing, and a larger step would miss some holes.
"""

LONG_HOLE_BYTES = 16 << 10
"""Bytes. Less than the longest chunk, which is how a run of zeros is cut. A write of so much costs more than
leaving it out does."""

MUNGE = b"/rsyncd-munged/"
"""What rsync puts in front of a target to make a symlink that leads nowhere."""


class LinkView(Protocol):
    """Shows symlinks as what they lead to (rdc.files.root.followed_links)."""

    top: ConfinedRoot
    """Nothing outside of it is read."""

    def begin(self, on_problem: Reporter, excluded: Callable[[bytes, bool], bool]) -> None:
        """Forget all links that were followed, before a new walk."""

    def referent(self, path: bytes) -> bytes | None:
        """Return where the entry at `path` is below `top`, if its path leads through a followed link."""

    def shown(self, root: ConfinedRoot, path: bytes, listed: Listed) -> Listed:
        """Return what is shown of the directory at `path` below `root`, given what is there."""


class PartKeeper(Protocol):
    """Keeps the parts of unfinished files. rdc.files.replace.partial_directory is the one that is used."""

    def keep(self, path: bytes, directory: int, temporary: bytes) -> None:
        """Take over a temporary of the file at `path`. Never raises."""

    def release(self) -> None:
        """Close all descriptors."""


class BackupKeeper(Protocol):
    """Keeps what is replaced or deleted. rdc.files.names.backups is the one that is used."""

    beside: bool
    """Whether a backup lies in the directory of its entry."""

    def wanted_known(self, is_wanted: Callable[[bytes], bool]) -> None:
        """Set `is_wanted`: whether the source has an entry at a path. A backup never takes its place."""

    def protects(self, path: bytes, kind: int) -> bool:
        """Return whether an extraneous entry is a backup or the backup directory, so that --delete leaves
        it."""

    def keep(self, path: bytes, name: bytes, parent: int, *, copy: bool = False) -> None:
        """Give the entry `name` of the open directory `parent`, at `path` of the tree, its backup.

        `copy`: the backup is a copy, as the entry will be written into. The backup is durable afterwards. A
        directory gets none. Raises FileError, or OSError if nothing is at `name`.
        """


class Placed(NamedTuple):
    """An entry that is about to appear."""

    path: bytes
    parent: int
    """Descriptor of its directory."""
    new: os.stat_result | None
    """Its stat under a temporary name; None for a directory that is not made yet."""
    ctime_ns: int
    """If the entry is a file that gets a further name: the file's ctime before that. Otherwise 0."""


class UndoKeeper(Protocol):
    """Notes each change before it is made. rdc.undoing.keeper is the one that is used.

    A method that returns has made durable what undoing the change needs. RdcError, unless it is a FileError,
    ends the run.
    """

    def entering(self, path: bytes, directory: int) -> None:
        """Note that entries of the directory at `path`, open as `directory`, are about to be made or
        removed, such as temporaries. Raises RdcError."""

    def placing(self, arrivals: Sequence[Placed]) -> dict[bytes, RdcError]:
        """Note entries that are about to appear, in place of what is at their paths.

        Return the paths that must stay as they are, each with its error. Raises RdcError.
        """

    def removing(self, paths: Sequence[bytes]) -> None:
        """Note entries that may be removed. Entries that are missing do not count. Raises RdcError."""

    def changing(
        self, path: bytes, name: bytes, parent: int, wanted: Metadata, *, attributes: bool = False
    ) -> None:
        """Note that the metadata of an entry are about to become `wanted`.

        `attributes`: its extended attributes are about to change, too. Raises RdcError, or OSError if
        nothing is there.
        """

    def changed(self, path: bytes, now: os.stat_result) -> None:
        """Note that this run has just changed a file's metadata, or given it a further name: `now` is its
        stat. From its ctime the undo knows whether anybody else has touched it since."""

    def finish(self) -> list[str]:
        """Note that the run came to its end. Return notices for the user. Raises RdcError."""

    def close(self) -> None:
        """End the keeping. May be called again."""

    def moving(self, old: bytes, new: bytes, found: os.stat_result, wanted: Metadata) -> None:
        """Note that the entry at `old`, whose stat is `found`, is about to get the metadata `wanted` and to
        be renamed to the free path `new`. Raises RdcError."""


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


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """How a Root makes, replaces, changes and removes entries."""

    quota: WriteQuota | None = None
    """Bounds the bytes written below the root; None: nothing does."""
    made: MadeEntries | None = None
    """If not None, the root is append-only: only these entries may be changed, and new ones are added."""
    nodes: frozenset[Kind] = frozenset()
    """The kinds of fifos, sockets and devices that may be made."""
    munges: bool = False
    """Whether new symlinks lead nowhere, by MUNGE in front of their targets."""
    sparse: bool = False
    """Whether new files get holes where their content is zeros."""
    long_holes: int = 0
    """Where it costs nothing, runs of at least so many zeros become holes of new files; 0: none do."""
    allocates: bool = False
    """Whether all zeros of new files are written, also where their content has holes elsewhere."""
    overwrites: bool = False
    """Whether new content is written into the regular file that is there, which keeps its inode."""
    sheds_acls: bool = False
    """Whether new entries lose the ACL that a default ACL of their directory gives them. A sync that carries
    ACLs sets this: until it sets an entry's own ACL, the inherited one would admit users that the source
    excludes."""
    singly: bool = False
    """Whether each new file is written as a Replacement, never in bulk."""
    distant: Root | None = None
    """Where temporaries of new content are; None: each is beside its file."""
    distant_path: bytes | None = None
    """The path of `distant` below the root; None if it lies elsewhere."""
    partials: PartKeeper | None = None
    """Where the parts of unfinished files wait; None: where they were written."""
    backups: BackupKeeper | None = None
    """Takes each entry that is about to be replaced or removed; None: no backups are kept."""
    undo: UndoKeeper | None = None
    """Is told before an entry is made, replaced, removed or changed; None: nothing is kept to be undone."""

    @property
    def least_hole(self) -> int:
        """Bytes of the shortest run of zeros that becomes a hole of a new file; HOLE_BYTES: each block of
        zeros does. 0: none does."""
        return HOLE_BYTES if self.sparse else self.long_holes
