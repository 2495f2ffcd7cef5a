"""Root: a tree that is written, too: directories, symlinks, special files, metadata and removals.

Regular files are written by rdc.files.replace and rdc.files.bulk, which ask a Root whether they may.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.metadata import (
    ANYTHING,
    Anything,
    Attempt,
    Expected,
    difference_from,
    found_at,
    identity_of,
    kind_of,
    metadata_of,
    narrow_name,
    narrowed_metadata,
    set_on_descriptor,
    set_on_name,
    shed_acls,
    stat_entry,
    would_change,
)
from rdc.files.base.paths import make_aside
from rdc.files.base.syscalls import refresh_stat
from rdc.files.root.confined_root import ConfinedRoot
from rdc.files.root.policies import (
    ENTRY_BYTES,
    MUNGE,
    MadeEntries,
    ReadPolicy,
    WriteQuota,
    rename_to_free_name,
)
from rdc.lean.records import Record, replace
from rdc.lean.typed import NamedTuple, Protocol
from rdc.limits import PATH_BYTES
from rdc.model.entries import DEVICES, Identity, Kind, Metadata, major_and_minor
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self, TypeAlias

    from rdc.files.base.directory_descriptors import Directory


Chosen: TypeAlias = "Callable[[Metadata, os.stat_result], Metadata]"
"""Returns what of an entry's wanted metadata is set, given its stat."""

HOLE_BYTES = 4096
"""The block size of most file systems. A shorter hole saves nothing, and a larger step would miss some holes.
"""

LONG_HOLE_BYTES = 16 << 10
"""Bytes. Less than the longest chunk, which is how a run of zeros is cut. A write of so much costs more than
leaving it out does."""

SYMLINK_ATTEMPTS = 256
"""Attempts to make a symlink or special file under a temporary name. A sweep of another process may remove
the temporary, which cannot be locked, before its rename. With 64 attempts, a sweep that never paused once
removed all of them, on a busy machine without Linux's own calls."""


def _all_of(wanted: Metadata, now: os.stat_result) -> Metadata:
    return wanted


class PartKeeper(Protocol):
    """Keeps the parts of unfinished files. rdc.files.replace.partial_directory is the one that is used."""

    def keep(self, path: bytes, directory: int, temporary: bytes) -> None:
        """Take over a temporary of the file at `path`. Never raises."""

    def release(self) -> None:
        """Close all descriptors."""


class BackupKeeper(Protocol):
    """Keeps what is replaced or deleted. rdc.files.names.backups is the one that is used."""

    beside: bool
    """True if a backup lies in the directory of its entry."""

    def apart_from(self, is_wanted: Callable[[bytes], bool]) -> BackupKeeper:
        """Return this keeper for a run whose source has an entry where `is_wanted` says so: no backup takes
        its place."""

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


class WritePolicy(Record):
    """The way in which a Root makes, replaces, changes and removes entries."""

    quota: WriteQuota | None = None
    """Bounds the bytes written below the root; None: nothing does."""
    made: MadeEntries | None = None
    """If not None, the root is append-only: only these entries may be changed, and new ones are added."""
    nodes: frozenset[Kind] = frozenset()
    """The kinds of fifos, sockets and devices that may be made."""
    munges: bool = False
    """True if new symlinks lead nowhere, by MUNGE in front of their targets."""
    sparse: bool = False
    """True if new files get holes where their content is zeros."""
    long_holes: int = 0
    """The shortest run of zeros that becomes a hole of a new file where that costs nothing; 0: none does."""
    allocates: bool = False
    """True if all zeros of new files are written, also where their content has holes elsewhere."""
    overwrites: bool = False
    """True if new content is written into the regular file that is there, which keeps its inode."""
    sheds_acls: bool = False
    """True if new entries lose the ACL that a default ACL of their directory gives them. A sync that carries
    ACLs sets this: until it sets an entry's own ACL, the inherited one would admit users that the source
    excludes."""
    singly: bool = False
    """True if each new file is written as a Replacement, never in bulk."""
    distant: Root | None = None
    """The directory of temporaries of new content; None: each is beside its file."""
    distant_path: bytes | None = None
    """The path of `distant` below the root; None if it lies elsewhere."""
    partials: PartKeeper | None = None
    """The directory of the parts of unfinished files; None: where they were written."""
    backups: BackupKeeper | None = None
    """Takes each entry that is about to be replaced or removed; None: no backups are kept."""
    undo: UndoKeeper | None = None
    """Is told before an entry is made, replaced, removed or changed; None: nothing is kept to be undone."""
    completes: Callable[[bytes, int], None] | None = None
    """Gets the path of each new file of a commit group, and its descriptor, before the file has its name. If
    it raises OSError, the file does not get it."""

    @property
    def least_hole(self) -> int:
        """Bytes of the shortest run of zeros that becomes a hole of a new file; HOLE_BYTES: each block of
        zeros does. 0: none does."""
        return HOLE_BYTES if self.sparse else self.long_holes


class Root(ConfinedRoot):
    """A tree and every operation on its entries, as a ReadPolicy and a WritePolicy say."""

    def __init__(
        self,
        fd: int,
        label: bytes,
        reads: ReadPolicy = ReadPolicy(),  # noqa: B008 - a frozen value
        writes: WritePolicy = WritePolicy(),  # noqa: B008 - a frozen value
    ) -> None:
        """Take over `fd`, an O_PATH descriptor of a directory. Messages name the root by `label`."""
        super().__init__(fd, label, reads)
        self.writes = writes

    def having(self, reads: ReadPolicy | None = None, writes: WritePolicy | None = None) -> Self:
        """Return this root with other policies; None: with the same. Both share all descriptors and what is
        known of the tree. Releasing either releases both."""
        other = super().having(reads)
        other.writes = writes or self.writes
        return other

    def spread(self, path: bytes, names: bytes) -> Iterator[tuple[Root, bytes, Sequence[int], bytes]]:
        """Yield the real directories of entries of one directory: a Root, the directory's path below it, the
        rows of the entries, and their names. `names`: each followed by NUL."""
        yield self, path, range(names.count(b"\0")), names

    def release(self) -> None:
        """Close all descriptors, those of the policy included, and end what is kept to be undone."""
        writes = self.writes
        if writes.undo is not None:
            writes.undo.close()
        super().release()
        if writes.partials is not None:
            writes.partials.release()
        if writes.distant is not None:
            writes.distant.release()

    @property
    def has_mount_points(self) -> bool:
        """Return whether there may be directories whose content was left out, as it is on another file
        system. Only a snapshot has such."""
        return False

    def is_mount_point(self, path: bytes) -> bool:
        """Return whether the content of the directory at `path` was left out for that."""
        return False

    @property
    def append_only(self) -> bool:
        """Return whether new entries may be made while existing ones must not be changed, renamed or
        removed."""
        return self.writes.made is not None

    @property
    def writes_in_bulk(self) -> bool:
        """Return whether new files may be written in bulk, where nothing is looked at again."""
        return not self.writes.singly and self.storage.is_plain

    # Whether an entry may be made or changed: by what was listed, the quota and append-only mode.

    def require(
        self,
        path: bytes,
        found: os.stat_result | None,
        expected: Expected,
        doing: str,
        *,
        may_be_gone: bool = False,
    ) -> None:
        """Raise FileError unless the entry at `path`, with the stat `found`, is what it is expected to be.

        Writers call this right before the call that changes what is there. `may_be_gone`: nothing may be
        there, too.
        """
        if expected is ANYTHING or (found is None and (may_be_gone or expected is None)):
            return
        if found is None or expected is None or not self.check.is_still(expected, identity_of(found)):
            raise self.another(path, found, expected, doing)

    def require_listed(self, path: bytes, expected: Expected, doing: str) -> None:
        """Raise FileError if another entry than `expected` is at `path`. Nothing may be there."""
        found = self.perform(path, "look at it", found_at, reading=True)
        self.require(path, found, expected, doing, may_be_gone=True)

    def another(
        self, path: bytes, found: os.stat_result | None, expected: Identity | None, doing: str
    ) -> FileError:
        """Return the error for an entry that is not what was listed. `found`: its stat."""
        wanted, there = difference_from(expected, found)
        advice = "the existing entry was kept; run again once nothing else changes it"
        return self.refused(path, doing, expected=wanted, found=there, advice=advice)

    def may_spend(self, size: int, *, entries: int = 0) -> bool:
        """Return whether `size` bytes and `entries` new entries fit into the write quota."""
        return self.writes.quota is None or self.writes.quota.covers(size + entries * ENTRY_BYTES)

    def spend(self, path: bytes, size: int, *, entries: int = 0, ahead: int = 0) -> None:
        """Charge the write quota before `size` bytes are written or `entries` new entries are made.

        Raises RdcError (exit code 11) if the quota does not cover them, or the bytes that will be charged
        later, `ahead`.
        """
        quota = self.writes.quota
        if quota is not None and not (quota.covers(ahead) and quota.take(size + entries * ENTRY_BYTES)):
            raise self._quota_exceeded(path, quota)

    def _quota_exceeded(self, path: bytes, quota: WriteQuota) -> RdcError:
        return RdcError(
            f"{printable(self.shown(path))}: cannot write it: this session may write {quota.size} bytes"
            " in total; complete files are in place; run again to continue",
            code=ExitCode.FILE_IO,
        )

    def check_change(self, path: bytes, doing: str) -> None:
        """Raise FileError if the root is append-only.

        Writers call this before they change, rename or remove an entry that may exist.
        """
        if self.writes.made is not None:
            raise self.append_only_refusal(path, doing)

    def check_made(self, path: bytes, found: os.stat_result, doing: str) -> None:
        """Raise FileError if the root is append-only and `found` was not made through it.

        Writers call this before they change the metadata of `found`, the stat of the entry at `path`.
        """
        if self.writes.made is not None and not self.writes.made.has(found):
            raise self.append_only_refusal(path, doing)

    def note_made(self, found: os.stat_result) -> None:
        """Record that `found` was made through this root, so that an append-only root lets it be changed."""
        if self.writes.made is not None:
            self.writes.made.note(found)

    def may_change(self, path: bytes) -> bool:
        """Return whether the metadata of the entry at `path` may be set.

        Raises FileChangedError if the root is append-only and nothing is there.
        """
        return self.writes.made is None or self.writes.made.has(self._stat(path))

    def append_only_refusal(self, path: bytes, doing: str) -> FileError:
        """Return the FileError for an existing entry that an append-only root protects."""
        return self.refused(
            path,
            doing,
            expected="a new entry, as this directory takes no others (append-only)",
            found="one that is there already",
            advice="it stays as it is; give what is to be kept beside it another name",
        )

    # Making, changing and removing entries.

    def note_entering(self, path: bytes, directory: int) -> None:
        """Tell `undo` that entries of the directory of `path`, open as `directory`, are about to change.
        Raises RdcError."""
        if self.writes.undo is not None:
            self.writes.undo.entering(path.rpartition(b"/")[0], directory)

    def locate_to_write(self, path: bytes) -> tuple[Directory, bytes]:
        """Return what `locate` returns, and tell `undo` that the directory is about to change. Raises
        RdcError."""
        directory, name = self.locate(path)
        if self.writes.undo is not None:
            self.note_entering(path, directory.fd)
        return directory, name

    def note_placing(
        self, path: bytes, parent: int, new: os.stat_result | None, *, ctime_ns: int = 0
    ) -> None:
        """Tell `undo` of one entry that is about to appear, as Placed says. Raises RdcError."""
        if self.writes.undo is not None:
            for error in self.writes.undo.placing((Placed(path, parent, new, ctime_ns),)).values():
                raise error

    def make_directory(self, path: bytes, mode: int = 0o777) -> bool:
        """Make a directory (mode less the umask). Return False if one is there; it stays as it is.

        Raises RdcError.
        """

        self.spend(path, 0, entries=1)

        def make(name: bytes, parent: int) -> bool:
            self.note_placing(path, parent, None)
            try:
                os.mkdir(name, mode, dir_fd=parent)
            except FileExistsError:
                if not stat.S_ISDIR(stat_entry(name, parent).st_mode):
                    raise
                return False
            if self.append_only:
                self.note_made(stat_entry(name, parent))
            if self.writes.sheds_acls:
                shed_acls(name, parent)
            return True

        return self.perform(path, "make the directory", make)

    def replace_with_directory(
        self, path: bytes, mode: int = 0o777, *, expected: Expected = ANYTHING
    ) -> None:
        """Make a directory (mode less the umask) in place of the file, link or special file at `path`, if
        that is `expected`.

        If another process has put a directory there meanwhile, that one stays. Raises RdcError.
        """
        self.check_change(path, "make the directory")
        self.spend(path, 0, entries=1)
        from rdc.files.base.taking_names import directory_over_file

        def replace_it(name: bytes, parent: int) -> None:
            self._keep_old(path, name, parent, None, expected, "make the directory")

            def require(found: os.stat_result | None) -> None:
                if found is None or not stat.S_ISDIR(found.st_mode):
                    self.require(path, found, expected, "make the directory")

            def replace_name() -> None:
                directory_over_file(name, parent, mode, lambda: require(found_at(name, parent)))

            self.check.take_name(name, parent, require, replace_name)

        self.perform(path, "make the directory", replace_it)
        if self.writes.sheds_acls:
            self.perform(path, "take its inherited ACL away", shed_acls)

    def munged(self, target: bytes) -> bytes:
        """Return the target that a new symlink gets for this one."""
        return MUNGE + target if self.writes.munges else target

    def narrow_directory(
        self, path: bytes, metadata: Metadata, *, owner: bool, chosen: Chosen = _all_of
    ) -> None:
        """Remove the permissions of group and others on a directory that `metadata` does not grant.

        With `owner`, also set uid and gid. `set_metadata` applies the rest of `metadata` when the directory
        is complete. `chosen`: as there. An entry that is no directory stays as it is. Raises FileError."""

        def narrow(name: bytes, parent: int) -> None:
            now = stat_entry(name, parent)
            if stat.S_ISDIR(now.st_mode):
                self.check_made(path, now, "narrow its mode")
                wanted = chosen(metadata, now)
                if self.writes.undo is not None:
                    self.writes.undo.changing(path, name, parent, narrowed_metadata(now, wanted, owner=owner))
                narrow_name(name, parent, now, wanted, owner=owner)

        self.perform(path, "narrow its mode before anything lands in it", narrow)

    def replace_symlink(
        self,
        path: bytes,
        target: bytes,
        metadata: Metadata | None = None,
        *,
        owner: bool = False,
        expected: Expected = ANYTHING,
    ) -> None:
        """Make `path` a symlink to `target`, atomically in place of the entry that is there.

        Raises FileError if that is not `expected`, or a non-empty directory. The target is text: it is never
        resolved.
        """
        if not target or b"\0" in target or len(target) > PATH_BYTES:
            raise self.refused(
                path,
                "make the link",
                expected="a link target without NUL bytes",
                found=repr(target[:40]),
                advice="this link is left alone",
            )

        def make(aside: bytes, parent: int) -> None:
            os.symlink(self.munged(target), aside, dir_fd=parent)

        self._replace(path, "make the link", Kind.SYMLINK, make, metadata, owner=owner, expected=expected)

    def replace_node(
        self,
        path: bytes,
        kind: Kind,
        number: int,
        metadata: Metadata,
        *,
        owner: bool,
        expected: Expected = ANYTHING,
    ) -> None:
        """Make `path` a fifo, socket or device, like `replace_symlink`. `number`: a device's, as
        rdc.model.entries.device_number gives it."""
        from rdc.files.root.listing_view import FORMAT_OF_KIND

        device = os.makedev(*major_and_minor(number)) if kind in DEVICES else 0

        def make(aside: bytes, parent: int) -> None:
            os.mknod(aside, FORMAT_OF_KIND[kind] | 0o600, device, dir_fd=parent)

        self._replace(
            path, "make the special file", Kind.SPECIAL, make, metadata, owner=owner, expected=expected
        )

    def _replace(
        self,
        path: bytes,
        doing: str,
        kind: Kind,
        make: Callable[[bytes, int], None],
        metadata: Metadata | None,
        *,
        owner: bool,
        expected: Expected,
    ) -> None:
        """Put what `make` makes under a temporary name in the place of the entry at `path`."""
        self.spend(path, 0, entries=1)

        def put(name: bytes, parent: int) -> None:
            self.note_entering(path, parent)
            for attempt in range(SYMLINK_ATTEMPTS):
                temporary = make_aside(name, lambda aside: _made_whole(make, aside, parent))
                try:
                    made = stat_entry(temporary, parent)
                    if metadata is not None:
                        wanted = self.storage.of_made(self._timed(kind, made, metadata), made)
                        noting = self.storage.attempts(path)
                        set_on_name(temporary, parent, made, wanted, owner=owner, attempt=noting)
                    self._rename_aside(path, temporary, name, parent, expected, doing)
                    break
                except FileNotFoundError:
                    if attempt == SYMLINK_ATTEMPTS - 1:
                        raise
                except BaseException:
                    _unlink_quietly(temporary, parent)
                    raise

            if metadata is not None and self.storage.settles:
                final = self._timed(kind, made, metadata)
                self._settle(
                    path,
                    name,
                    parent,
                    final,
                    owner=owner,
                    is_ours=lambda now: stat.S_IFMT(now.st_mode) == stat.S_IFMT(made.st_mode),
                )

        self.perform(path, doing, put)

    def _rename_aside(
        self, path: bytes, temporary: bytes, name: bytes, parent: int, expected: Expected, doing: str
    ) -> None:
        if self.append_only:
            made = stat_entry(temporary, parent)
            try:
                rename_to_free_name(temporary, name, parent)
            except FileExistsError as error:
                raise self.append_only_refusal(path, doing) from error
            self.note_made(made)
            return
        self._keep_old(path, name, parent, stat_entry(temporary, parent), expected, doing)
        self._rename_over(path, temporary, name, parent, expected, doing)

    def _rename_over(
        self, path: bytes, temporary: bytes, name: bytes, parent: int, expected: Expected, doing: str
    ) -> None:
        """Rename `temporary` to `name`, if what is there is `expected`. Raises FileError, OSError."""
        from rdc.files.base.taking_names import replace_name, take_free_name

        if expected is None:
            take_free_name(temporary, name, parent)
            return

        def step() -> None:
            try:
                replace_name(temporary, name, parent)
            except IsADirectoryError:
                from rdc.files.base.taking_names import file_over_directory

                file_over_directory(temporary, name, parent)

        self.check.take_name(name, parent, partial(self.require, path, expected=expected, doing=doing), step)

    def _keep_old(
        self,
        path: bytes,
        name: bytes,
        parent: int,
        new: os.stat_result | None,
        expected: Expected,
        doing: str,
        *,
        ctime_ns: int = 0,
    ) -> None:
        """Note for an undo what is about to be replaced by `new` (None: a directory), and give it its backup,
        if it is `expected`. `ctime_ns`: as Placed says. Raises RdcError, OSError."""
        if self.writes.undo is None and (self.writes.backups is None or expected is None):
            return
        self.require(path, found_at(name, parent), expected, doing)
        if self.writes.undo is not None:
            self.note_placing(path, parent, new, ctime_ns=ctime_ns)
        if self.writes.backups is not None and expected is not None:
            with suppress(FileNotFoundError):
                self.writes.backups.keep(path, name, parent)

    def replace_by_name(
        self, path: bytes, temporary: bytes, parent: int, expected: Expected, *, ctime_ns: int = 0
    ) -> None:
        """Rename `temporary`, a further name of an entry of the tree, to `path`, whose directory is open.
        `ctime_ns`: as Placed says.

        What is there and `expected` is kept as a backup and for an undo. Raises FileError if another entry is
        there, OSError.
        """
        name, doing = path.rpartition(b"/")[2], "make it a hard link"
        self._keep_old(path, name, parent, stat_entry(temporary, parent), expected, doing, ctime_ns=ctime_ns)
        self._rename_over(path, temporary, name, parent, expected, doing)

    def remove(self, path: bytes, expected: Expected = ANYTHING, *, directory: bool = False) -> bool:
        """Remove one entry, if it is `expected`. Return False if nothing is there any more.

        `directory`: it is one, and empty; otherwise it is anything else.
        """
        doing = "remove the directory" if directory else "remove it"
        self.check_change(path, doing)
        undo, backups = self.writes.undo, None if directory else self.writes.backups

        def remove(name: bytes, parent: int) -> None:
            if undo is not None or backups is not None:
                self.require(path, stat_entry(name, parent), expected, doing)
            if undo is not None:
                undo.removing((path,))
            if backups is not None:
                backups.keep(path, name, parent)
            require = partial(self.require, path, expected=expected, doing=doing, may_be_gone=True)
            unlink = partial(os.unlink, name, dir_fd=parent)
            step = partial(os.rmdir, name, dir_fd=parent) if directory else unlink
            self.check.take_name(name, parent, require, step)

        try:
            self.perform(path, doing, remove)
        except FileError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            return False
        finally:
            if directory:
                self.forget(path)
        return True

    def set_on_open(
        self, fd: int, made: os.stat_result, metadata: Metadata, *, owner: bool, attempt: Attempt
    ) -> None:
        """Set the metadata of a new file, as `set_on_descriptor` does. Raises OSError."""
        wanted = self.storage.of_made(metadata, made)
        set_on_descriptor(fd, made, wanted, owner=owner, timed=self.storage.times_files, attempt=attempt)

    def settle(self, path: bytes, directory: int, metadata: Metadata, *, owner: bool, size: int) -> None:
        """Look at a new file of `size` bytes, closed and at its path, and set what is not as it was set.

        What cannot be set is noted. Another entry that is there by now is left alone. Raises OSError.
        """
        name = path.rpartition(b"/")[2]

        def is_ours(now: os.stat_result) -> bool:
            return stat.S_ISREG(now.st_mode) and now.st_size == size

        self._settle(path, name, directory, metadata, owner=owner, is_ours=is_ours)

    def _settle(
        self,
        path: bytes,
        name: bytes,
        parent: int,
        metadata: Metadata,
        *,
        owner: bool,
        is_ours: Callable[[os.stat_result], bool],
    ) -> None:
        storage = self.storage
        try:
            now = _fresh_stat(name, parent)
            wanted = storage.of_settled(metadata, now)
            if is_ours(now) and would_change(now, wanted, owner=owner):
                self.check_made(path, now, "set its metadata")
                set_on_name(name, parent, now, wanted, owner=owner, attempt=storage.attempts(path))
                storage.learn_from(wanted, _fresh_stat(name, parent), owner=owner)
        except FileNotFoundError:
            return

    def set_metadata(
        self,
        path: bytes,
        kind: Kind,
        metadata: Metadata,
        *,
        owner: bool,
        expected: Identity | Anything = ANYTHING,
        chosen: Chosen = _all_of,
    ) -> None:
        """Set mode, mtime (nanoseconds) and, with `owner`, uid and gid of an entry of this kind.

        Only differing values are set, and no mtime of a kind in `untimed`. Entries that nobody may read, and
        symlinks themselves, can be set too. `chosen`: returns what of `metadata` is set of an entry, given
        its stat. Raises FileError, also if the entry is of another kind or not `expected`.
        """

        def apply(name: bytes, parent: int) -> None:
            now = stat_entry(name, parent)
            found = kind_of(now.st_mode)
            if found != kind:
                raise self.refused(
                    path,
                    "set its metadata",
                    expected=f"a {kind.name.lower()}",
                    found=f"a {found.name.lower()}",
                    advice="run again once nothing else changes this tree",
                )
            self.require(path, now, expected, "set its metadata")
            wanted = chosen(self._timed(kind, now, metadata), now)
            if self.append_only and would_change(now, wanted, owner=owner):
                self.check_made(path, now, "set its metadata")
            if self.writes.undo is not None:
                self.writes.undo.changing(path, name, parent, wanted)
                now = stat_entry(name, parent)
                self.require(path, now, expected, "set its metadata")
            set_on_name(name, parent, now, wanted, owner=owner)
            # A later step may expect what was listed: at another name or, where nobody said what to expect,
            # at this one.
            if (now.st_nlink > 1 or expected is ANYTHING) and kind is not Kind.DIRECTORY:
                after = stat_entry(name, parent)
                as_kept = self.storage.facts.keeps.granularity.alike(
                    wanted.mtime_ns, metadata_of(after).mtime_ns
                )
                if after.st_size == now.st_size and as_kept:
                    self.check.note(identity_of(now), identity_of(after))
            if self.writes.undo is not None:
                self.writes.undo.changed(path, stat_entry(name, parent))

        self.perform(path, "set its metadata", apply)

    def _timed(self, kind: Kind, now: os.stat_result, metadata: Metadata) -> Metadata:
        """Return `metadata`, with the mtime that the entry has if such times are not set."""
        return (
            replace(metadata, mtime_ns=packed_time(now.st_mtime_ns))
            if kind in self.reads.untimed
            else metadata
        )


def _fresh_stat(name: bytes, parent: int) -> os.stat_result:
    """Return a stat that no cache of the kernel answers. Raises OSError."""
    with suppress(OSError):
        refresh_stat(name, parent)
    return stat_entry(name, parent)


def _made_whole(make: Callable[[bytes, int], None], aside: bytes, parent: int) -> None:
    """Call `make`. Some file systems fail and leave an entry of another kind, as for a fifo: that goes again.
    Raises OSError."""
    try:
        make(aside, parent)
    except FileExistsError:
        raise
    except OSError:
        _unlink_quietly(aside, parent)
        raise


def _unlink_quietly(name: bytes, parent: int) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        return  # the next sweep removes it; the error on its way to the caller matters more
