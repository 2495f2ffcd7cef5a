"""Clears displaced files that an interrupted run left, once it is certain that no content is lost.

A displaced file is handled only if one of this user's journals shows that a run displaced it. The journal
must have the path at which it lies, its inode number, owner, group, mode and original name. Any other file
with such a name belongs to another program. It is reported and left in place, unopened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rdc.duplicates.group import Tree, is_below
from rdc.duplicates.journal import read_journal
from rdc.errors import FileError, printable
from rdc.files.base.durability import make_durable
from rdc.files.base.relative_path import join
from rdc.files.names.leased_files import LeasedFile, difference, same_bytes
from rdc.files.names.name_change import is_displaced, put_back
from rdc.files.names.return_name import is_link_with, remove_spare_link, return_displaced
from rdc.files.replace.sweep_temporaries import foreign_names, sweep_temporaries
from rdc.lean.records import dataclass
from rdc.limits.sessions import JOURNALS_READ
from rdc.model.duplicates import Action, Instance
from rdc.model.entries import Kind
from rdc.tree.filters import FilterList
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.duplicates.journal import Change
    from rdc.duplicates.run_totals import RunTotals
    from rdc.files.root.root import Root
    from rdc.progress import Event

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
    """Find displaced files below the trees and, if the options say `apply`, clear them.

    A file whose name became a link is removed if it is unchanged since, or if it equals the file that now has
    its name. It gets its name back if it was written to since and the link was not. A spare name of the file
    that it became is removed. A duplicate that was to be removed gets its name back, and the next search
    finds it again. Nothing is overwritten, and any other file stays and is reported. Temporaries, which are
    copies, are swept.
    """
    found = [one for tree in trees for one in find_leftovers(tree, totals)]
    if not found:
        return
    changes = _changes_of({one.real for one in found}, totals.options.journals)
    for one in found:
        try:
            instance = _clear(one, changes.get(one.real, ()), apply=totals.options.apply)
        except FileError as error:
            totals.problem(error)
            continue
        if instance is not None:
            totals.done(instance, files=0)
            continue
        shown = one.tree.root.shown(one.path)
        why = (
            "left by an interrupted run, and not what the file beside it holds; look at both and rename or"
            " remove one"
            if one.real in changes
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
    """Drop events: the search for duplicates walks the same directories and reports problems."""


def _changes_of(displaced: Collection[bytes], journals: bytes | None) -> dict[bytes, list[Change]]:
    """Return what the newest journals record about files displaced to these absolute paths."""
    directories = {os.path.dirname(path) for path in displaced}
    found: dict[bytes, list[Change]] = {}
    for path in newest_journals(journals):
        try:
            journal = read_journal(path)
        except FileError:
            continue  # another user's, damaged or removed: it proves nothing
        for change in journal.changes:
            # Most records are of other directories, and computing their displaced names can be skipped.
            if change.real_directory in directories and change.displaced in displaced:
                found.setdefault(change.displaced, []).append(change)
    return found


def newest_journals(directory: bytes | None) -> list[bytes]:
    """Paths of the newest journals."""
    if directory is None:
        return []
    try:
        names = [name for name in os.listdir(directory) if name.endswith(b".journal")]
    except OSError:
        return []
    # Behind the kind of run, the names of journals have the time.
    names.sort(key=lambda name: name.partition(b"-")[2], reverse=True)
    return [os.path.join(directory, name) for name in names[:JOURNALS_READ]]


def _clear(one: Leftover, changes: Sequence[Change], *, apply: bool) -> Instance | None:
    """Clear one file. Return None if no journal records it or no rule decides about it."""
    root = one.tree.root
    try:
        parent = root.directory(one.directory, fresh=True).fd
        found = os.stat(one.name, dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise root.failure(error, one.path, "look at it", reading=True) from error
    for change in changes:
        if change.action is not Action.LINK:
            instance = _return(one, change, found, parent, apply=apply)
            if instance is not None:
                return instance
        elif change.is_recorded(found) or change.is_spare(found):
            return _clear_link(one, change, apply=apply)
    return None


# Removed duplicates


def _return(
    one: Leftover, change: Change, found: os.stat_result, parent: int, *, apply: bool
) -> Instance | None:
    """Give a duplicate its name back, or remove a symbolic link that never took a name."""
    root = one.tree.root
    # The tree of the journal need not be the one given now, but both have this directory.
    path = join(one.directory, change.name)
    shown = root.shown(one.path), root.shown(path)
    text = change.link_text
    if is_link_with(one.name, parent, text):
        if apply:
            remove_spare_link(root, path, one.name, text)
        return Instance(Action.CLEAR, *shown, 0, 0, 0)
    free = not _is_taken(change.name, parent) or is_link_with(change.name, parent, text)
    if not free or not change.is_recorded(found):
        return None
    if apply:
        return_displaced(root, path, one.name, text)
    return Instance(Action.RESTORE, *shown, 0, 0, 0)


def _is_taken(name: bytes, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


# Hard links


def _clear_link(one: Leftover, change: Change, *, apply: bool) -> Instance | None:
    root, path = one.tree.root, one.path
    with LeasedFile(root, path) as old:
        if old.identity.inode == change.kept.inode:
            return clear_spare(root, path, old, apply=apply)
        if old.identity.inode != change.inode:
            return None
        beside = join(one.directory, change.name)
        if root.kind(beside) is not Kind.FILE:
            return None
        with LeasedFile(root, beside) as now:
            action = _decide(change, old, now)
            if action is None:
                return None
            if apply:
                with _named(root, path):
                    _carry_out(root, one.directory, one.name, change.name, old, now, action)
            freed = old.allocated if action is Action.CLEAR and old.links == 1 else 0
            return Instance(action, root.shown(path), root.shown(beside), 0, freed, 0)


def clear_spare(root: Root, path: bytes, original: LeasedFile, *, apply: bool) -> Instance | None:
    """Remove a spare name of the original, made before the exchange, and return what was done. While the file
    has another name, nothing is lost; without one, None is returned. Raises FileError."""
    if original.links < 2:
        return None
    if apply:
        directory, _, name = path.rpartition(b"/")
        with _named(root, path):
            parent = root.directory(directory, fresh=True)
            # A lease does not protect names: the others may have been removed since the file was opened.
            if os.fstat(original.fileno()).st_nlink < 2 or not original.is_at(name, parent.fd):
                return None
            os.unlink(name, dir_fd=parent.fd)
    return Instance(Action.CLEAR, root.shown(path), root.shown(path), 0, 0, 0)


def _decide(change: Change, old: LeasedFile, now: LeasedFile) -> Action | None:
    """Return what to do with the displaced file, given the file that now has its name. None: leave it."""
    if now.identity.inode == old.identity.inode:
        return None
    if _is_as_recorded(change, old):
        # The name is a link, as recorded. Its present content is what was written to it later.
        return Action.CLEAR
    if difference(old, now) is None and same_bytes(old, now):
        return Action.CLEAR
    # The file to be replaced must be the original, unchanged, and must keep another name.
    if now.identity.inode == change.kept.inode and _is_as_recorded(change, now) and now.links > 1:
        return Action.RESTORE
    return None


def _is_as_recorded(change: Change, file: LeasedFile) -> bool:
    return file.identity.size == change.size and file.metadata == change.metadata


@contextmanager
def _named(root: Root, path: bytes) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise root.failure(error, path, "clear what an interrupted run left") from error


def _carry_out(
    root: Root, directory: bytes, name: bytes, target: bytes, old: LeasedFile, now: LeasedFile, action: Action
) -> None:
    """Carry out an action. Raises OSError and FileChangedError."""
    parent = root.directory(directory, fresh=True)
    old.check()
    now.check()
    if action is Action.RESTORE:
        if old.is_at(name, parent.fd) and now.is_at(target, parent.fd):
            put_back(name, target, parent.fd, os.fstat(now.fileno()))
        return
    # The file that has the name must be durable before the other one is removed.
    make_durable([now.fileno()], [parent])
    # Syncing takes time: a program may have opened a file for writing meanwhile.
    old.check()
    now.check()
    if old.is_at(name, parent.fd) and now.is_at(target, parent.fd):
        os.unlink(name, dir_fd=parent.fd)
