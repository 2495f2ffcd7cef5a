"""Clears displaced files that an interrupted run left, once it is certain that no content is lost.

A displaced file is handled only if one of this user's journals shows that a run displaced it. The journal
must have the path at which it lies, its inode number, owner, group, mode and original name. Any other file
with such a name belongs to another program. It is reported and left in place, unopened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rdc.errors import FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.base.syscalls import rename_exchange
from rdc.files.names.displaced_names import is_displaced
from rdc.files.names.hard_link import sync_directory
from rdc.files.names.leased_file import LeasedFile, difference, same_bytes
from rdc.files.names.swap_names import put_back
from rdc.files.replace.sweep_temporaries import foreign_names, sweep_temporaries
from rdc.instances.journal import LinkRecord, read_journal
from rdc.instances.tree import Tree, is_below
from rdc.limits.catalog import JOURNALS_READ
from rdc.model.entries import Kind
from rdc.model.instances import Action, Instance
from rdc.records import dataclass
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.files.root.root import Root
    from rdc.instances.run_totals import RunTotals
    from rdc.progress import Event

__all__ = ["REMOVALS_PREFIX", "Leftover", "clear_leftovers", "find_leftovers", "newest_journals"]


REMOVALS_PREFIX = b"dupes-"
"""With which names of journals of removed duplicates begin in the state directory."""

_FOREIGN = (
    "left alone: it has the name of a temporary file, but is no copy that rdc was making; look at it, then"
    " rename or remove it"
)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file with the name of a displaced file."""

    tree: Tree
    directory: bytes
    name: bytes

    @property
    def path(self) -> bytes:
        """Path relative to the tree."""
        return join(self.directory, self.name)

    @property
    def real(self) -> bytes:
        return self.tree.real_path(self.path)


def clear_leftovers(trees: Sequence[Tree], totals: RunTotals) -> None:
    """Finds displaced files below the trees and, if the options say `apply`, clears them.

    A displaced file that a journal records is removed if it is unchanged since its name became a link, or if
    it equals the file that now has its name. It gets its name back if it was written to since and the link
    was not. A spare name of the original is removed. Any other file stays and is reported. Temporaries,
    which are copies, are swept.
    """
    found = [one for tree in trees for one in find_leftovers(tree, totals)]
    if not found:
        return
    records = _records_of({one.real for one in found}, totals.options.journals)
    for one in found:
        try:
            instance = _clear(
                one.tree.root, one.directory, one.name, records.get(one.real, ()), apply=totals.options.apply
            )
        except FileError as error:
            totals.problem(error)
            continue
        if instance is not None:
            totals.done(instance, files=0)
            continue
        shown = one.tree.root.shown(one.path)
        why = (
            "left by an interrupted run, and not what the file beside it holds; look at both and remove one"
            if one.real in records
            else "left alone: no journal of yours says that rdc put it there; look at it, then rename or"
            " remove it"
        )
        totals.skip(shown, f"{printable(shown)}: {why}")


def find_leftovers(tree: Tree, totals: RunTotals) -> list[Leftover]:
    """Files below a tree that have names of displaced files and may be changed. Sweeps temporaries and
    reports foreign files."""
    reserved: list[tuple[bytes, list[bytes]]] = []
    walk = Walk(tree.root, FilterList(()), _silent, on_temporaries=lambda *found: reserved.append(found))
    for _ in walk:
        pass
    found: list[Leftover] = []
    for directory, names in reserved:
        if any(is_below(tree.real_path(directory), top) for top in totals.options.keep):
            continue
        found += [Leftover(tree, directory, name) for name in names if is_displaced(name)]
        temporaries = [name for name in names if not is_displaced(name)]
        try:
            for name in foreign_names(tree.root, directory, temporaries):
                shown = tree.root.shown(join(directory, name))
                totals.skip(shown, f"{printable(shown)}: {_FOREIGN}")
            if totals.options.apply:
                sweep_temporaries(tree.root, directory, temporaries)
        except FileError:
            continue  # removed together with its directory
    return found


def _silent(event: Event, /) -> None:
    """Drops events: the search for duplicates walks the same directories and reports problems."""


def _records_of(displaced: Collection[bytes], journals: bytes | None) -> dict[bytes, list[LinkRecord]]:
    """What the newest journals record about files displaced to these absolute paths."""
    directories = {os.path.dirname(path) for path in displaced}
    found: dict[bytes, list[LinkRecord]] = {}
    for path in newest_journals(journals):
        try:
            records = read_journal(path)
        except FileError:
            continue  # another user's, damaged or removed: it proves nothing
        for record in records:
            # Most records are of other directories, and computing their displaced names can be skipped.
            directory = os.path.dirname(b"/".join((record.top.rstrip(b"/"), record.path)))
            if directory in directories and record.displaced in displaced:
                found.setdefault(record.displaced, []).append(record)
    return found


def newest_journals(directory: bytes | None, *, removals: bool = False) -> list[bytes]:
    """Paths of the newest journals of links, or of removed duplicates (`removals`)."""
    if directory is None:
        return []
    try:
        names = [
            name
            for name in os.listdir(directory)
            if name.endswith(b".journal") and name.startswith(REMOVALS_PREFIX) == removals
        ]
    except OSError:
        return []
    # The names of journals begin with the time.
    return [os.path.join(directory, name) for name in sorted(names, reverse=True)[:JOURNALS_READ]]


def _clear(
    root: Root, directory: bytes, name: bytes, records: Sequence[LinkRecord], *, apply: bool
) -> Instance | None:
    """Clears one file. None if no journal records it or no rule decides about it."""
    path = join(directory, name)
    try:
        found = os.stat(name, dir_fd=root.directory(directory, fresh=True).fd, follow_symlinks=False)
    except OSError as error:
        raise root.failure(error, path, "look at it", reading=True) from error
    record = next((record for record in records if _fits(record, found)), None)
    if record is None:
        return None
    with LeasedFile(root, path) as old:
        if not _fits(record, os.fstat(old.fileno())):
            return None
        if old.identity.inode == record.inode:
            return _clear_spare(root, directory, name, old, apply=apply)
        target = record.path.rpartition(b"/")[2]
        if root.kind(join(directory, target)) is not Kind.FILE:
            return None
        with LeasedFile(root, join(directory, target)) as now:
            action = _decide(record, old, now)
            if action is None:
                return None
            if apply:
                with _named(root, path):
                    _carry_out(root, directory, name, target, old, now, action)
            freed = old.allocated if action is Action.CLEAR and old.links == 1 else 0
            return Instance(action, root.shown(path), root.shown(join(directory, target)), 0, freed, 0)


def _fits(record: LinkRecord, found: os.stat_result) -> bool:
    """Whether this is the file that the run displaced, or a name of the file it kept.

    Size and mtime may differ, since a program may have written more. The journal has no device number: it may
    change with a restart, and both files are in this directory's file system.
    """
    return (
        stat.S_ISREG(found.st_mode)
        and bool(record.old)
        and found.st_ino in {record.old, record.inode}
        and (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (record.uid, record.gid, record.mode)
    )


def _clear_spare(
    root: Root, directory: bytes, name: bytes, original: LeasedFile, *, apply: bool
) -> Instance | None:
    """Removes a spare name of the original, made before the exchange. While the file has another name,
    nothing is lost."""
    path = join(directory, name)
    if original.links < 2:
        return None
    if apply:
        with _named(root, path):
            parent = root.directory(directory, fresh=True)
            # A lease does not protect names: the others may have been removed since the file was opened.
            if os.fstat(original.fileno()).st_nlink < 2 or not original.is_at(name, parent.fd):
                return None
            os.unlink(name, dir_fd=parent.fd)
    return Instance(Action.CLEAR, root.shown(path), root.shown(path), 0, 0, 0)


def _decide(record: LinkRecord, old: LeasedFile, now: LeasedFile) -> Action | None:
    """What to do with the displaced file, given the file that now has its name. None: leave it."""
    if now.identity.inode == old.identity.inode:
        return None
    if _is_as_recorded(record, old):
        # The name is a link, as recorded. Its present content is what was written to it later.
        return Action.CLEAR
    if difference(old, now) is None and same_bytes(old, now):
        return Action.CLEAR
    # The file to be replaced must be the original, unchanged, and must keep another name.
    if now.identity.inode == record.inode and _is_as_recorded(record, now) and now.links > 1:
        return Action.RESTORE
    return None


def _is_as_recorded(record: LinkRecord, file: LeasedFile) -> bool:
    return file.identity.size == record.size and file.metadata == record.metadata


@contextmanager
def _named(root: Root, path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise root.failure(error, path, "clear what an interrupted run left") from error


def _carry_out(
    root: Root, directory: bytes, name: bytes, target: bytes, old: LeasedFile, now: LeasedFile, action: Action
) -> None:
    """Carries out an action. Raises OSError and FileChangedError."""
    parent = root.directory(directory, fresh=True)
    old.check()
    now.check()
    if action is Action.RESTORE:
        if not (old.is_at(name, parent.fd) and now.is_at(target, parent.fd)):
            return
        rename_exchange(name, target, parent.fd)
        if now.is_at(name, parent.fd):
            os.unlink(name, dir_fd=parent.fd)
        else:
            put_back(name, target, parent.fd, os.fstat(old.fileno()))
        return
    # The file that has the name must be durable before the other one is removed.
    os.fsync(now.fileno())
    sync_directory(parent)
    # Syncing takes time: a program may have opened a file for writing meanwhile.
    old.check()
    now.check()
    if old.is_at(name, parent.fd) and now.is_at(target, parent.fd):
        os.unlink(name, dir_fd=parent.fd)
