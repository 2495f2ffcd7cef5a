"""Brings removed duplicates back: `rdc dedupe --undo` of a journal that `rdc dupes` wrote."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from rdc.errors import FileError, printable
from rdc.files.base.os_errors import refused
from rdc.files.names.return_name import (
    is_link_with,
    remove_spare_link,
    return_copy,
    return_displaced,
    return_moved,
)
from rdc.files.root.root import Root
from rdc.instances.removal_journal import read_removal_journal
from rdc.instances.removal_leftovers import is_recorded, link_text
from rdc.instances.run_totals import RunTotals
from rdc.model.instances import Action, Instance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.source_file import SourceFile
    from rdc.instances.events import DedupeReporter
    from rdc.instances.removal_journal import RemovalRecord
    from rdc.model.instances import DedupeReport, DeduperOptions

__all__ = ["undo_removals"]


def undo_removals(journal: bytes, options: DeduperOptions, reporter: DedupeReporter) -> DedupeReport:
    """Brings back what a journal records, the last first. Raises FileError for a file that is no journal.

    A name that is taken keeps what it has. If that is newer work, it is an error of this file; if it is the
    file itself, or equals it in size and mtime, the record is skipped.
    """
    records = read_removal_journal(journal)
    totals = RunTotals(options, reporter, total=sum(record.size for record in records))
    undo = _Undo(totals)
    try:
        for record in reversed(records):
            if totals.capped:
                break
            try:
                undo.bring_back(record)
            except FileError as error:
                totals.problem(error)
            totals.advance(record.size)
    finally:
        undo.close()
    return totals.report()


class _Undo:
    """The trees opened so far, and what was brought back."""

    def __init__(self, totals: RunTotals) -> None:
        self._totals = totals
        self._roots: dict[bytes, Root] = {}
        self._returned: dict[tuple[bytes, int], tuple[Root, bytes]] = {}
        """By tree and inode number of the removed file: the name that is a file again. Its other names become
        links to it."""

    def close(self) -> None:
        for root in self._roots.values():
            root.close()

    def bring_back(self, record: RemovalRecord) -> None:
        """Raises RdcError; the name is as before then."""
        root = self._root(record.top)
        directory, name = root.locate(record.path, fresh=True)
        shown, text = root.shown(record.path), link_text(record)
        now = _look(root, record.path)
        if now is not None and not is_link_with(name, directory.fd, text):
            # Not by the inode number: the file system gives that of a deleted file to a new one.
            if _is_alike(record, now):
                if self._totals.options.apply and text:
                    remove_spare_link(root, record.path, record.displaced_name, text)
                self._totals.skip(shown, f"{printable(shown)}: passed over: it is there")
                return
            raise _taken(root, record)
        if not self._totals.take(record.size):
            return
        source = self._sources(root, record, text)
        self._totals.done(Instance(Action.RETURN, shown, source, record.size, 0, 0))

    def _sources(self, root: Root, record: RemovalRecord, text: bytes) -> bytes:
        """Brings the file back from the first source that has it, and returns that source's path."""
        apply = self._totals.options.apply
        displaced = record.path[: -len(record.path.rpartition(b"/")[2])] + record.displaced_name
        found = _look(root, displaced)
        if found is not None and is_recorded(record, found):
            if apply:
                return_displaced(root, record.path, record.displaced_name, text)
            return root.shown(displaced)
        if record.action is Action.MOVE:
            moved = self._from_destination(root, record)
            if moved is not None:
                return moved
        earlier = self._returned.get((record.top, record.inode))
        if earlier is not None and apply:
            return self._link(root, record, earlier)
        original = os.path.join(record.original_top, record.original)
        if apply:
            there = self._root(record.original_top)
            with there.open_read(record.original) as source:
                self._copy(root, record, source, text)
        return original

    def _from_destination(self, root: Root, record: RemovalRecord) -> bytes | None:
        """None if the moved file is not at its destination any more, or is another one."""
        try:
            into = self._root(record.destination_top)
            found = _look(into, record.destination)
        except FileError:
            return None
        if found is None or not _is_alike(record, found):
            return None  # what was written there since stays there
        path = os.path.join(record.destination_top, record.destination)
        if self._totals.options.apply and not return_moved(root, record.path, into, record.destination):
            with into.open_read(record.destination) as source:
                self._copy(root, record, source, b"")
                _remove_if_same(into, record, source)
        return path

    def _copy(self, root: Root, record: RemovalRecord, source: SourceFile, text: bytes) -> None:
        return_copy(
            *(root, record.path, source, record.digest),
            *(record.metadata, record.attributes, record.atime_ns, text),
        )
        self._returned[record.top, record.inode] = root, record.path

    def _link(self, root: Root, record: RemovalRecord, earlier: tuple[Root, bytes]) -> bytes:
        """Makes the name one more name of the file that was brought back."""
        first, path = earlier
        there, old = first.locate(path, fresh=True)
        here, name = root.locate(record.path, fresh=True)
        try:
            if is_link_with(name, here.fd, link_text(record)):
                os.unlink(name, dir_fd=here.fd)  # the journal knows its text
            os.link(old, name, src_dir_fd=there.fd, dst_dir_fd=here.fd, follow_symlinks=False)
        except OSError as error:
            raise root.failure(error, record.path, "bring it back") from error
        return first.shown(path)

    def _root(self, top: bytes) -> Root:
        root = self._roots.get(top)
        if root is None:
            root = self._roots[top] = Root.open(top)
        return root


def _look(root: Root, path: bytes) -> os.stat_result | None:
    """The stat of an entry, None if nothing is there. Raises RdcError."""
    directory, name = root.locate(path, fresh=True)
    try:
        return os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise root.failure(error, path, "look at it") from error


def _is_alike(record: RemovalRecord, found: os.stat_result) -> bool:
    """Whether an entry is the file that was recorded, or a copy of it."""
    return stat.S_ISREG(found.st_mode) and (found.st_size, found.st_mtime_ns) == (
        record.size,
        record.metadata.mtime_ns,
    )


def _taken(root: Root, record: RemovalRecord) -> FileError:
    return refused(
        *(record.path, root.shown(record.path), "bring it back"),
        expected="a free name",
        found="newer work",
        advice="it was left alone; rename or remove it and run again",
    )


def _remove_if_same(into: Root, record: RemovalRecord, source: SourceFile) -> None:
    """Removes the file that was moved, once its copy is durable, unless it changed meanwhile."""
    directory, name = into.locate(record.destination, fresh=True)
    source.check_unchanged()
    with suppress(FileNotFoundError):
        now = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
        if os.path.samestat(now, os.fstat(source.fileno())):
            os.unlink(name, dir_fd=directory.fd)
