"""Gives names back that an interrupted removal of duplicates took.

A displaced duplicate is whole. So it simply gets its name back, and the next search finds it again. A file is
handled only if one of this user's journals records it, as rdc.instances.leftovers requires. Nothing that has
the name now is overwritten.
"""

from __future__ import annotations

import os
import stat

from rdc.errors import FileError, printable
from rdc.files.names.return_name import is_link_with, remove_spare_link, return_displaced
from rdc.instances.leftovers import find_leftovers, newest_journals
from rdc.instances.removal_journal import read_removal_journal
from rdc.model.instances import Action, Instance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.instances.leftovers import Leftover
    from rdc.instances.removal_journal import RemovalRecord
    from rdc.instances.run_totals import RunTotals
    from rdc.instances.tree import Tree

__all__ = ["clear_removals", "is_recorded", "link_text"]


def clear_removals(trees: Sequence[Tree], totals: RunTotals) -> None:
    """Finds displaced duplicates below the trees and, if the options say `apply`, gives their names back."""
    found = [one for tree in trees for one in find_leftovers(tree, totals)]
    if not found:
        return
    records = _records_of({one.real for one in found}, totals.options.journals)
    for one in found:
        try:
            instance = _clear(one, records.get(one.real, ()), apply=totals.options.apply)
        except FileError as error:
            totals.problem(error)
            continue
        if instance is not None:
            totals.done(instance, files=0)
            continue
        shown = one.tree.root.shown(one.path)
        why = (
            "left by an interrupted run, and its name is taken; look at both and rename or remove one"
            if one.real in records
            else "left alone: no journal of yours says that rdc dupes put it there; look at it, then rename"
            " or remove it"
        )
        totals.skip(shown, f"{printable(shown)}: {why}")


def link_text(record: RemovalRecord) -> bytes:
    """The text of the symbolic link that may have the name; b"" if none does."""
    return record.destination if record.action is Action.SYMLINK else b""


def is_recorded(record: RemovalRecord, found: os.stat_result) -> bool:
    """Whether this is the duplicate. Size and mtime may differ, since a program may have written more."""
    metadata = record.metadata
    return (
        stat.S_ISREG(found.st_mode)
        and found.st_ino == record.inode
        and (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode))
        == (metadata.uid, metadata.gid, metadata.mode)
    )


def _records_of(displaced: set[bytes], journals: bytes | None) -> dict[bytes, list[RemovalRecord]]:
    """What the newest journals record about duplicates displaced to these absolute paths."""
    directories = {os.path.dirname(path) for path in displaced}
    found: dict[bytes, list[RemovalRecord]] = {}
    for journal in newest_journals(journals, removals=True):
        try:
            records = read_removal_journal(journal)
        except FileError:
            continue  # another user's, damaged or removed: it proves nothing
        for record in records:
            directory = os.path.dirname(b"/".join((record.top.rstrip(b"/"), record.path)))
            if directory in directories and record.displaced in displaced:
                found.setdefault(record.displaced, []).append(record)
    return found


def _clear(one: Leftover, records: Sequence[RemovalRecord], *, apply: bool) -> Instance | None:
    """Clears one leftover. None if no journal records it, or its name is taken."""
    root = one.tree.root
    parent = root.directory(one.directory, fresh=True).fd
    try:
        found = os.stat(one.name, dir_fd=parent, follow_symlinks=False)
    except OSError as error:
        raise root.failure(error, one.path, "look at it", reading=True) from error
    for record in records:
        # The tree of the journal need not be the one given now, but both have this directory.
        name = record.path.rpartition(b"/")[2]
        path = one.path[: len(one.path) - len(one.name)] + name
        shown = root.shown(one.path), root.shown(path)
        text = link_text(record)
        if is_link_with(one.name, parent, text):
            if apply:
                remove_spare_link(root, path, one.name, text)
            return Instance(Action.CLEAR, *shown, 0, 0, 0)
        free = not _is_taken(name, parent) or is_link_with(name, parent, text)
        if free and is_recorded(record, found):
            if apply:
                return_displaced(root, path, one.name, text)
            return Instance(Action.RESTORE, *shown, 0, 0, 0)
    return None


def _is_taken(name: bytes, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
