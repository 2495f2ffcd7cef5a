"""Finds out what the file systems of two sides keep, and so what of an entry both sides can compare.

What one of them cannot keep takes no part: it is neither a change nor a conflict, and no copy of it that
comes back changes the original. What a file system changes by itself while nobody works there (inode numbers
of FAT, change times of an object store) is no part of what a side remembers of an entry.
"""

from __future__ import annotations

import errno
import os
from contextlib import closing, suppress

from rdc.catalog.catalog import user_catalog
from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.metadata import stat_entry
from rdc.files.base.store_guard import check_no_store
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.model.entries import Kind
from rdc.model.preserved import EXACT, Preserved, is_known_time
from rdc.model.sync import SyncOptions
from rdc.plan.compare import name_clashes
from rdc.session.trees.destination_root import DestinationStorage, known_facts
from rdc.uniting.rows import MODE_BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.catalog.store import SignatureStore
    from rdc.model.entries import ComparedFields, ListedDirectories, PackedInodes
    from rdc.model.preserved import FileSystemFacts, Granularity
    from rdc.progress import Problem
    from rdc.tree.walk import Walk, WalkedDirectory
    from rdc.uniting.rows import Stamp

ASKED = Preserved(owner=False, untimed=frozenset((Kind.DIRECTORY, Kind.SYMLINK)))
"""The metadata that a run preserves where both file systems can."""

NAMES_LOOKED_AT = 1 << 20
"""Names of directories that one run reads to find those that are one."""

_KNOWN_CTIME = (1).to_bytes(8, "little")


class Kept(Record):
    """The parts of an entry that both sides keep."""

    modes: bool = True
    """All permissions, of files and of directories. Half of them take no part."""
    timed: bool = True
    """Times of files."""
    granularity: Granularity = EXACT
    """The granularity of the coarser side."""
    links: bool = True
    """Symlinks can exist at both."""

    @property
    def is_plain(self) -> bool:
        """Return whether both sides keep all that a run compares."""
        return self == PLAIN

    def alike(self, one_ns: int, other_ns: int) -> bool:
        """Return whether two times may be one time as either side keeps it."""
        if not self.timed or one_ns == other_ns:
            return True
        if not (is_known_time(one_ns) and is_known_time(other_ns)):
            return False  # of an ancestor, and no entry has it any more
        return self.granularity.alike(one_ns, other_ns) or self.granularity.alike(other_ns, one_ns)


PLAIN = Kept()


def kept_of(left: Preserved, right: Preserved) -> Kept:
    """Return what two file systems have in common of what each keeps."""
    both = left.also(right)
    return Kept(
        keeps_permissions(both),
        Kind.FILE not in both.untimed,
        both.granularity,
        Kind.SYMLINK not in both.unmade,
    )


def keeps_permissions(keeps: Preserved) -> bool:
    """Return whether all permissions of files and of directories are kept."""
    return keeps.modes & keeps.directory_modes & MODE_BITS == MODE_BITS


class SideStorage:
    """The knowledge about the file system of one side, from earlier runs and from this one."""

    def __init__(
        self, root: Root, catalog: SignatureStore, report: Callable[[Problem], None], *, writes: bool
    ) -> None:
        """`catalog`: remembers what earlier runs learned. `writes`: this run may try what the file system
        keeps, with entries of its own that are gone afterwards."""
        self.root = root
        rely_on_known(root, catalog)
        self._storage = DestinationStorage(root, catalog, report, SyncOptions(dry_run=not writes), ASKED)

    @property
    def facts(self) -> FileSystemFacts:
        return self.root.storage.facts

    def learn(self) -> None:
        """Find out what the file system keeps, unless this run has. Nothing is tried in a run that writes
        nothing."""
        self._storage.before_writing(b"")

    def agree(self, other: Preserved) -> None:
        """Set of entries what both sides keep. Their contents arrive whatever else fails."""
        self.root.storage.agree(ASKED, replace(other, granularity=EXACT, owner=False), insists=False)

    def finish(self) -> None:
        """Report what could not be set, a line for each kind, and remember what was learned."""
        self._storage.finish()


def opened_here(path: bytes) -> Root:
    """Open a directory of this machine that is in no store, and rely on what the user's runs learned of its
    file system. Raises RdcError, and FileError with exit code 11 for what is no directory."""
    try:
        root = Root.open(path)
    except FileError as error:
        raise FileError(path, str(error), code=ExitCode.FILE_IO) from error
    try:
        check_no_store(root.fileno(), path)
    except BaseException:
        root.release()
        raise
    with closing(user_catalog(os.environ)) as catalog:
        rely_on_known(root, catalog)
    return root


def rely_on_known(root: Root, catalog: SignatureStore) -> None:
    """Rely on what earlier runs learned of the file system of `root`, or on what its type says."""
    if not root.storage.is_learned:
        root.rely_on(known_facts(root, catalog), learned=False)


def is_open_to_all(root: Root) -> bool:
    """Return whether the file system keeps no owners or permissions, so that those that entries have say
    nothing: whoever may write in the tree may write anywhere in it."""
    keeps = root.storage.facts.keeps
    return not (keeps.owner and keeps_permissions(keeps))


def is_private(found: os.stat_result, root: Root) -> bool:
    """Return whether only the effective user can have written an entry, as far as its file system tells."""
    return is_open_to_all(root) or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def lasting(stamp: Stamp, stable: ComparedFields) -> Stamp:
    """Return a stamp without what the file system changes by itself. A change time that proves nothing is 1,
    since 0 is one that is not known."""
    if stable.inode and stable.ctime:
        return stamp
    return stamp._replace(
        inode=stamp.inode if stable.inode else 0,
        ctime_ns=stamp.ctime_ns if stable.ctime or not stamp.ctime_ns else 1,
    )


def lasting_walk(walk: Walk, stable: ComparedFields) -> Iterator[WalkedDirectory]:
    """Yield the directories of a walk without what the file system changes by itself."""
    for directory in walk:
        yield directory._replace(inodes=_lasting_inodes(directory.inodes, directory.listing.count, stable))


def lasting_listed(listed: ListedDirectories, stable: ComparedFields) -> ListedDirectories:
    """Return directories without what the file system changes by itself."""
    return replace(listed, inodes=_lasting_inodes(listed.inodes, listed.listing.count, stable))


def _lasting_inodes(inodes: PackedInodes, count: int, stable: ComparedFields) -> PackedInodes:
    if stable.inode and stable.ctime:
        return inodes
    return replace(
        inodes,
        inodes=inodes.inodes if stable.inode else bytes(8 * count),
        ctimes=inodes.ctimes if stable.ctime else _KNOWN_CTIME * count,
    )


class NamesThatAreOne:
    """Finds out under which name a directory lists an entry that is found under another one, too: where
    letter case or the form of letters makes no difference."""

    def __init__(self) -> None:
        self._left = NAMES_LOOKED_AT

    def listed_as(self, root: Root, path: bytes) -> bytes | None:
        """Return the name, in the directory of `path`, of the entry that is also found as `path`; None if
        nothing is found there, or an entry of that very name, or if too much was looked at already."""
        if self._left <= 0:
            return None
        with suppress(FileError):
            return root.perform(path, "look at it", self._look, reading=True)
        return None

    def _look(self, name: bytes, parent: int) -> bytes | None:
        # In this order: what is found and then not listed is an entry of another name, or gone.
        stat_entry(name, parent)
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            names = [name, *sorted(map(os.fsencode, os.listdir(fd)))]
        finally:
            os.close(fd)
        self._left -= len(names)
        if name in names[1:]:
            return None
        groups = [rows for rows in name_clashes(names) if rows[0] == 0]
        return names[groups[0][1]] if groups else None


def unlike(name: bytes, other: bytes) -> str:
    """Return `name` for a message, as bytes if it looks like `other`."""
    from unicodedata import normalize

    one, two = (normalize("NFC", text.decode("utf-8", "replace")) for text in (name, other))
    return repr(name)[2:-1] if one == two else printable(name)


# Directories that cannot be removed, as something is in them that no plan knows of.


def is_not_empty(error: FileError) -> bool:
    """Return whether a directory was not removed as it is not empty."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOTEMPTY, errno.EEXIST)


def names_in(root: Root, path: bytes) -> list[bytes]:
    """Return the names in a directory, sorted; none if it cannot be listed."""

    def names(name: bytes, parent: int) -> list[bytes]:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            return sorted(map(os.fsencode, os.listdir(fd)))
        finally:
            os.close(fd)

    try:
        return root.perform(path, "list it", names, reading=True)
    except FileError:
        return []


def not_empty(root: Root, path: bytes, names: Sequence[bytes]) -> str:
    """Return why a directory stays that has entries with these names."""
    rest = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return (
        f"{printable(os.path.join(root.label, path))}: cannot remove the directory: expected it to be empty,"
        f" found {printable(names[0])}{rest}; if the pair's rules exclude that, delete it there; otherwise,"
        " run again"
    )
