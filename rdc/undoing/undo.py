"""Undoes the latest sync into a directory, and lists those that can be undone. UNDO.md has the argument."""

from __future__ import annotations

import os
from contextlib import suppress

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.durability import sync_file_systems
from rdc.files.root.root import Root
from rdc.lean.typed import Protocol
from rdc.model.undo import UndoableSync, UndoItem, UndoReport
from rdc.progress import Problem
from rdc.undoing.journal import Ended, Finished, Head, Held, Left, Own, Saved, Undoing
from rdc.undoing.steps import OwnTimes, Steps, TreeState, was_left_by
from rdc.undoing.store import UndoStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.undo import UndoOptions
    from rdc.undoing.journal import Facts
    from rdc.undoing.store import StoredSync

_NO_STEPS = (Head, Left, Held, Own, Undoing, Ended)
"""Lines that announce no change."""


class UndoReporter(Protocol):
    """Receives what an undo did, and what stays."""

    def __call__(self, event: UndoItem | Problem, /) -> None: ...


def list_syncs(destination: bytes) -> tuple[UndoableSync, ...]:
    """The syncs into a directory that can be undone, or were undone in part, the oldest first. Raises
    RdcError."""
    root = Root.open(destination)
    store = UndoStore.open(root)
    if store is None:
        return ()
    with store:
        return tuple(_describe(store, number) for number in store.numbers())


def _describe(store: UndoStore, number: int) -> UndoableSync:
    record = store.stored(number)
    try:
        finished, ended, _ = record.state()
        head = record.head()
        if finished is None:
            entries = sum(not isinstance(each, _NO_STEPS) for each in record.backwards())
        else:
            entries = finished.entries
        return UndoableSync(
            number=number,
            seconds=0 if head is None else head.seconds,
            entries=entries,
            bytes=record.size(),
            complete=finished is not None,
            left_alone=None if ended is None else ended.left_alone,
        )
    finally:
        record.close()


def undo_latest(destination: bytes, options: UndoOptions, reporter: UndoReporter) -> UndoReport:
    """Undo the latest sync that is not undone yet. A killed undo is continued.

    Newer work stays; `reporter` gets it as a Problem, and the rest is undone. Raises RdcError.
    """
    root = Root.open(destination, writable=not options.dry_run)
    store = UndoStore.open(root)
    if store is None:
        return _nothing()
    with store:
        if not options.dry_run:
            store.clear()
        numbers = store.numbers()
        for at in range(len(numbers) - 1, -1, -1):
            record = store.stored(numbers[at])
            try:
                finished, ended, begun = record.state()
                if ended is not None:
                    continue
                _check_top(root, record)
                record.check()
                older = _next(store, numbers[:at])
                try:
                    run = _Run(
                        root, record, older, options, reporter, finished=finished is not None, begun=begun
                    )
                    left_alone = run.perform()
                finally:
                    if older is not None:
                        older.close()
            finally:
                record.close()
            if not (left_alone or options.dry_run):
                store.drop(numbers[at])
            return run.report(numbers[at], left_alone, _older(store, numbers[:at]))
        return _nothing()


def _nothing() -> UndoReport:
    return UndoReport(None, 0, 0, 0, 0, 0, 0, ExitCode.OK)


def _older(store: UndoStore, numbers: list[int]) -> int:
    """How many of these syncs can still be undone."""
    older = 0
    for number in numbers:
        record = store.stored(number)
        try:
            older += record.state()[1] is None
        finally:
            record.close()
    return older


def _next(store: UndoStore, numbers: list[int]) -> StoredSync | None:
    """The record of the sync that is undone next; None for none, or one that has no ctimes."""
    for number in reversed(numbers):
        record = store.stored(number)
        try:
            head = record.head()
            if record.state()[1] is not None:
                record.close()
                continue
            if head is not None and head.version > 1:
                return record
        except FileError:
            pass  # it is damaged, which its own undo says
        record.close()
        return None
    return None


def _check_top(root: Root, record: StoredSync) -> None:
    head = record.head()
    found = os.fstat(root.fileno()).st_ino
    if head is not None and head.top != found:
        raise RdcError(
            f"{printable(record.shown)}: cannot undo it: expected the directory that was synced, found"
            " another one, such as a copy of it; undo it where it was made",
            code=ExitCode.FILE_IO,
        )


class _Run:
    """One undo of one record."""

    def __init__(
        self,
        root: Root,
        record: StoredSync,
        older: StoredSync | None,
        options: UndoOptions,
        reporter: UndoReporter,
        *,
        finished: bool,
        begun: bool,
    ) -> None:
        """`older`: as in OwnTimes. `finished`: as in Steps. `begun`: an undo of the record was
        interrupted."""
        self._root = root
        self._record = record
        self._options = options
        self._reporter = reporter
        self._tree = TreeState(root, dry=options.dry_run)
        shown = record.shown + b"/kept"
        head = record.head()
        self._own = OwnTimes(record, older) if head is not None and head.version > 1 else None
        self._steps = Steps(
            self._tree,
            record.saved,
            shown,
            exact=finished and not begun,
            finished=finished,
            own=self._own,
            was_before=self._was_before,
        )
        self._begun = begun
        self._counts = {"restored": 0, "removed": 0, "moved": 0, "changed": 0}

    def perform(self) -> int:
        """Take everything back that is not newer work. Returns how many entries stay. Raises RdcError."""
        for _ in self._record.backwards():
            pass  # a damaged line is found before anything is undone
        if not self._options.dry_run:
            self._record.cut()
            self._record.append([Undoing()], fsync=self._options.fsync)
            if self._own is not None:
                self._own.pass_on()
        left_alone = 0
        try:
            for record in self._record.backwards():
                if isinstance(record, (Head, Finished, Undoing, Ended, Own)):
                    continue
                if isinstance(record, (Left, Held)):
                    self._steps.note(record)
                    continue
                try:
                    done = self._steps.take_back(record)
                except FileError as error:
                    left_alone += 1
                    self._reporter(Problem(ExitCode.PARTIAL, error.path, str(error)))
                    continue
                if isinstance(record, Saved) and not self._options.dry_run:
                    with suppress(FileNotFoundError):
                        os.unlink(b"%d" % record.number, dir_fd=self._record.saved)
                if done is not None:
                    self._counts[done] += 1
                    self._reporter(UndoItem(done, record.path))
        finally:
            self._tree.end()
        if not self._options.dry_run:
            # What was put back must be durable before its record goes.
            if self._options.fsync and not sync_file_systems([self._record.directory]):
                os.sync()
            if left_alone:
                self._record.append([Ended(left_alone, self._record.size())], fsync=self._options.fsync)
        return left_alone

    def _was_before(self, path: bytes, now: Facts) -> bool:
        return self._begun and any(was_left_by(each, path, now) for each in self._record.backwards())

    def report(self, number: int, left_alone: int, older: int) -> UndoReport:
        code = ExitCode.PARTIAL if left_alone else ExitCode.OK
        return UndoReport(number=number, **self._counts, left_alone=left_alone, older=older, exit=code)
