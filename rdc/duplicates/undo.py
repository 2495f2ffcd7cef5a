"""Takes back what a journal records: hard links become separate files again, removed duplicates come back.

Names are taken back the last first, in batches that share their syncs: copies are written aside and made
durable, the names change, and their directories are made durable. rdc.files.names.return_name has the steps
of one name.

A name that is taken keeps what it has. If that is newer work, it is an error of this file. If it is the file
itself, or equals it in size and mtime, the record is skipped. With hard links, only the paths of a
journal are trusted: a copy gets what the linked file has now.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress

from rdc.duplicates.journal import Change, DirectoryState, Journal, KeptFile, clear_spare, read_journal
from rdc.duplicates.run_totals import RunTotals
from rdc.errors import FileError, printable
from rdc.files.base.paths import join, refused
from rdc.files.base.syscalls import share_of_descriptors
from rdc.files.base.taking_names import make_durable
from rdc.files.facts.xattrs import write_attributes
from rdc.files.names.leased_files import LeasedFile
from rdc.files.names.return_name import (
    CopiedReturn,
    CopyReturn,
    Digest,
    DisplacedReturn,
    MovedReturn,
    NameReturn,
    OldReturn,
    Returned,
    Separation,
    SmallCopies,
    differs,
    is_link_with,
    remove_spare_link,
    remove_twin,
)
from rdc.files.replace.commit_group import sweep_temporaries
from rdc.files.root.root import Root
from rdc.lean.records import Record, field
from rdc.model.duplicates import Action, DedupeOptions, DedupeReport, Instance
from rdc.model.preserved import packed_time, real_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.duplicates.run_totals import DedupeReporter
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.root.source_file import SourceFile

BATCH_NAMES = 600
"""Names of one batch; fewer if the limit of descriptors is low. Each may have a copy, a directory and a
linked file open."""

BATCH_BYTES = 64 << 20

SMALL_BYTES = 1 << 20
"""Size of the largest file that is copied from memory, among others."""

HOLES_KEPT = 64 << 10
"""Bytes of holes from which a file is copied alone, which keeps them. Fewer may be bytes that the file system
stores elsewhere, as inside an inode."""


def undo(journal: bytes, options: DedupeOptions, reporter: DedupeReporter) -> DedupeReport:
    """Take back what a journal records. Raises FileError for a file that is no journal."""
    found = read_journal(journal)
    totals = RunTotals(options, reporter, total=sum([change.size for change in found.changes]))
    run = _Undo(found, totals)
    try:
        for batch in _batches(found.changes):
            if totals.capped:
                break
            run.take_back(batch)
        if options.apply:
            run.finish()
    finally:
        run.close()
    return totals.report()


def _batches(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Yield the changes, the last first, some at a time."""
    most = share_of_descriptors(BATCH_NAMES)
    batch: list[Change] = []
    size = 0
    for change in reversed(changes):
        if batch and (len(batch) >= most or size + change.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(change)
        size += change.size
    if batch:
        yield batch


class _Step(Record):
    """One name that gets its file back."""

    change: Change
    done: Instance
    returned: NameReturn | None
    """None in a dry run."""
    twin: bool = False
    """True if a copy at the destination goes once the name has its file."""


class _Linked(Record, frozen=False):
    """A file with several names, some of which get copies of it."""

    file: LeasedFile
    content: bytes | None
    """Its content, if it is small."""
    names: int
    """Names that it keeps."""


class _Open(Record, frozen=False):
    """The open files of one batch, and its results."""

    stack: ExitStack
    directories: dict[tuple[bytes, bytes], Directory] = field(default_factory=dict)
    """By tree and path."""
    sources: dict[KeptFile, tuple[SourceFile, bytes | None]] = field(default_factory=dict)
    """The file that stayed, and its content if that is small and has the right digest."""
    linked: dict[tuple[int, int], _Linked] = field(default_factory=dict)
    """By device and inode number."""
    coming: set[tuple[bytes, int]] = field(default_factory=set)
    """Tree and inode number of the removed files of which a name comes back in this batch."""
    links: list[Change] = field(default_factory=list)
    """Further names of files that come back."""
    made: list[Directory] = field(default_factory=list)
    """Directories in which others were made."""


class _Undo:
    """The trees opened so far, and what was brought back."""

    def __init__(self, journal: Journal, totals: RunTotals) -> None:
        self._journal = journal
        self._totals = totals
        self._apply = totals.options.apply
        self._roots: dict[bytes, Root] = {}
        self._returned: dict[tuple[bytes, int], bytes] = {}
        """By tree and inode number of a removed file: the path of the name that is a file again. Its other
        names become links to it."""
        self._restored: list[DirectoryState] = []
        """Directories that were made again, parents first."""
        self._touched: dict[tuple[bytes, bytes], None] = {}
        """Tree and path of the directories in which names change."""

    def close(self) -> None:
        for root in self._roots.values():
            root.close()

    # One batch

    def take_back(self, changes: Sequence[Change]) -> None:
        """Raise RdcError if the disk is full; what was not begun stays."""
        with ExitStack() as stack:
            opened = _Open(stack)
            steps = self._planned(changes, opened)
            self._carry_out(steps, opened)
            for change in opened.links:
                self._link_again(change, opened)
        self._totals.advance(sum([change.size for change in changes]))

    def _planned(self, changes: Sequence[Change], opened: _Open) -> list[_Step]:
        steps = []
        for change in changes:
            if self._totals.capped:
                break
            try:
                plan = self._plan_link if change.action is Action.LINK else self._plan_removal
                step = plan(change, opened)
            except FileError as error:
                self._totals.problem(error)
                continue
            if step is not None:
                steps.append(step)
        return steps

    def _carry_out(self, steps: Sequence[_Step], opened: _Open) -> None:
        if not self._apply:
            for step in steps:
                self._totals.done(step.done)
            return
        copied = [step.returned for step in steps if isinstance(step.returned, CopiedReturn)]
        taken: list[tuple[_Step, NameReturn]] = []
        try:
            with SmallCopies(copied) as small:
                made = set(map(id, small.staged))
                fds, ready = small.fds, []
                for step in steps:
                    one = step.returned
                    if one is not None and (id(one) in made or self._stage(one, fds)):
                        ready.append((step, one))
                self._sync(fds, opened.made)
                taken = [(step, one) for step, one in ready if self._try(one.take)]
            self._sync([], [directory for _, one in taken for directory in one.directories])
        finally:
            for one in copied:
                one.drop()
        for step, one in taken:
            if not self._try(one.finish):
                continue
            change = step.change
            if change.action is not Action.LINK:
                self._returned.setdefault((change.top, change.inode), change.path)
            if step.twin:
                self._remove_twin(change)
            self._totals.done(step.done)

    def _stage(self, one: NameReturn, fds: list[int]) -> bool:
        """Stage one return alone."""
        try:
            fd = one.stage()
        except FileError as error:
            self._totals.problem(error)
            return False
        if fd is not None:
            fds.append(fd)
        return True

    def _sync(self, fds: Sequence[int], directories: Sequence[Directory]) -> None:
        try:
            make_durable(fds, directories)
        except OSError as error:
            root = next(iter(self._roots.values()))
            raise root.failure(error, b"", "make what comes back durable") from error

    def _try(self, call: Callable[[], None]) -> bool:
        try:
            call()
        except FileError as error:
            self._totals.problem(error)
            return False
        return True

    # Hard links

    def _plan_link(self, change: Change, opened: _Open) -> _Step | None:
        root = self._root(change.top)
        directory = self._directory(change.top, change.directory, opened)
        shown = root.shown(change.path)
        now = _look(root, change.path, directory, change.name)
        if change.inode:
            beside = _look(root, change.path, directory, change.displaced_name)
            if beside is not None and change.is_recorded(beside):
                return self._plan_old(change, directory, now)
            if beside is not None and change.is_spare(beside):
                self._clear_spare(root, change)
        if now is None:
            raise root.failure(FileNotFoundError(errno.ENOENT, ""), change.path, "look at it", reading=True)
        if not stat.S_ISREG(now.st_mode) or now.st_ino != change.kept.inode or now.st_nlink < 2:
            self._pass_over(shown, "it is no link of that run, or not any more")
            return None
        linked = self._linked(root, change, now, opened) if self._apply else None
        if linked is not None and linked.names < 2:
            self._pass_over(shown, "it is no link of that run, or not any more")
            return None
        if not self._totals.take(now.st_size):
            return None
        if (now.st_size, packed_time(now.st_mtime_ns)) != (change.size, change.metadata.mtime_ns):
            self._totals.notice(
                shown,
                f"{printable(shown)}: written to since it was linked: both files keep what they hold now",
            )
        done = Instance(Action.SEPARATE, shown, change.kept.real, now.st_size, 0, 0)
        if linked is None:
            return _Step(change, done, None)
        linked.names -= 1
        return _Step(change, done, Separation(root, change.path, directory, linked.file, linked.content))

    def _linked(self, root: Root, change: Change, now: os.stat_result, opened: _Open) -> _Linked:
        """Return the linked file, leased until the end of the batch."""
        found = opened.linked.get((now.st_dev, now.st_ino))
        if found is None:
            file = opened.stack.enter_context(LeasedFile(root, change.path))
            size = file.identity.size
            content = file.pread(0, size) if _is_small(size, file.allocated) else None
            file.check()
            key = file.facts.device, file.facts.inode
            found = opened.linked[key] = _Linked(file, content, file.links)
        return found

    def _plan_old(self, change: Change, directory: Directory, now: os.stat_result | None) -> _Step | None:
        """Return the step for a name whose former file lies beside it: the run was killed in between."""
        root, displaced = self._root(change.top), change.displaced_name
        beside = join(change.directory, displaced)
        done = Instance(Action.SEPARATE, root.shown(change.path), root.shown(beside), change.size, 0, 0)
        if now is not None and now.st_ino not in (change.inode, change.kept.inode):
            raise _taken(
                root, change, f"newer work; what the name had lies beside it as {printable(displaced)}"
            )
        if not self._totals.take(change.size):
            return None
        if not self._apply:
            return _Step(change, done, None)
        if now is None:
            return _Step(change, done, DisplacedReturn(root, change.path, directory, displaced))
        return _Step(change, done, OldReturn(root, change.path, directory, displaced))

    def _clear_spare(self, root: Root, change: Change) -> None:
        """Remove the spare name that a link had before it took its place."""
        path = join(change.directory, change.displaced_name)
        with LeasedFile(root, path) as spare:
            cleared = clear_spare(root, path, spare, apply=self._apply)
        if cleared is None:
            raise root.refused(
                path,
                "remove it",
                expected="a file with other names",
                found="that it is its only one",
                advice="it was left alone; rename or remove it",
            )
        self._totals.done(cleared, files=0)

    # Removed duplicates

    def _plan_removal(self, change: Change, opened: _Open) -> _Step | None:
        text, directory = change.link_text, None
        if change.action is Action.MOVE:
            self._touched[change.destination_top, change.destination.rpartition(b"/")[0]] = None
        try:
            root = self._root(change.top)
            directory = self._directory(change.top, change.directory, opened, restore=True)
        except FileError as error:
            if self._apply or not _is_missing(error):
                raise
            # A dry run does not make directories again.
            shown = join(change.top, change.path)
        else:
            shown = root.shown(change.path)
            now = _look(root, change.path, directory, change.name)
            if now is not None and not is_link_with(change.name, directory.fd, text):
                # Not by the inode number: the file system gives that of a deleted file to a new one.
                if not _is_alike(change, now):
                    raise _taken(root, change, "newer work")
                self._clear_beside(root, change)
                self._pass_over(shown, "it is there")
                return None
        if not self._totals.take(change.size):
            return None
        return self._from_somewhere(change, directory, shown, opened)

    def _from_somewhere(
        self, change: Change, directory: Directory | None, shown: bytes, opened: _Open
    ) -> _Step | None:
        """Return the first source that has the file."""
        displaced, moves = change.displaced_name, change.action is Action.MOVE
        text = change.link_text
        if directory is not None:
            root = self._root(change.top)
            found = _look(root, change.path, directory, displaced)
            if found is not None and change.is_recorded(found):
                beside = root.shown(join(change.directory, displaced))
                return self._step(
                    change,
                    *(shown, beside),
                    lambda: DisplacedReturn(root, change.path, directory, displaced, text),
                    twin=moves,
                )
        if moves:
            step = self._from_destination(change, directory, shown, opened)
            if step is not None:
                return step
        key = change.top, change.inode
        if key in self._returned or key in opened.coming:
            opened.links.append(change)
            return None
        opened.coming.add(key)
        return self._step(
            change,
            *(shown, change.kept.real),
            lambda: self._copy(change, directory, *self._source(change, opened)),
        )

    def _step(
        self,
        change: Change,
        shown: bytes,
        source: bytes,
        make: Callable[[], NameReturn],
        *,
        twin: bool = False,
    ) -> _Step:
        done = Instance(Action.RETURN, shown, source, change.size, 0, 0)
        return _Step(change, done, make() if self._apply else None, twin)

    def _copy(
        self, change: Change, directory: Directory | None, source: SourceFile, content: bytes | None
    ) -> CopyReturn:
        if directory is None:
            raise ValueError("a directory is made again before its files")
        return CopyReturn(
            *(self._root(change.top), change.path, directory),
            Returned(change.metadata, change.attributes, change.atime_ns),
            source=source,
            digest=_digest(change.kept),
            content=content,
            text=change.link_text,
        )

    def _source(self, change: Change, opened: _Open) -> tuple[SourceFile, bytes | None]:
        """Return the file that stayed, and its content if that is small. Raises FileError, also if the
        content is another one now."""
        kept = change.kept
        found = opened.sources.get(kept)
        if found is None:
            file = opened.stack.enter_context(self._root(kept.top).open_read(kept.path))
            content = None
            if _is_small(file.size, file.allocated):
                content = file.whole()
                file.close()
                if not _digest(kept).is_of(content):
                    raise differs(self._root(change.top), change.path, kept.real)
            found = opened.sources[kept] = file, content
        return found

    def _from_destination(
        self, change: Change, directory: Directory | None, shown: bytes, opened: _Open
    ) -> _Step | None:
        """None if the moved file is not at its destination any more, or is another one."""
        try:
            into = self._root(change.destination_top)
            there = self._directory(change.destination_top, change.destination.rpartition(b"/")[0], opened)
            found = _look(into, change.destination, there, change.destination.rpartition(b"/")[2])
        except FileError:
            return None
        if found is None or not _is_alike(change, found):
            return None  # what was written there since stays there
        path = into.shown(change.destination)
        if directory is None or not self._apply:
            return self._step(
                change, shown, path, lambda: self._copy(change, directory, *self._source(change, opened))
            )
        moved = MovedReturn(self._root(change.top), change.path, directory, (into, change.destination))
        if moved.is_near:
            return self._step(change, shown, path, lambda: moved)
        file = opened.stack.enter_context(into.open_read(change.destination))
        return self._step(change, shown, path, lambda: self._copy(change, directory, file, None), twin=True)

    def _link_again(self, change: Change, opened: _Open) -> None:
        """Make the name one more name of the file that was brought back."""
        first = self._returned.get((change.top, change.inode))
        try:
            if self._apply and first is None:
                # It did not come back. So this name is the first.
                opened.coming.discard((change.top, change.inode))
                directory = self._directory(change.top, change.directory, opened, restore=True)
                shown = self._root(change.top).shown(change.path)
                step = self._from_somewhere(change, directory, shown, opened)
                self._carry_out([] if step is None else [step], opened)
                return
            shown = join(change.top, change.path)
            source = change.kept.real
            if self._apply and first is not None:
                root = self._root(change.top)
                self._add_name(root, change, first, opened)
                shown, source = root.shown(change.path), root.shown(first)
            self._totals.done(Instance(Action.RETURN, shown, source, change.size, 0, 0))
        except FileError as error:
            self._totals.problem(error)

    def _add_name(self, root: Root, change: Change, first: bytes, opened: _Open) -> None:
        """Raise FileError."""
        here = self._directory(change.top, change.directory, opened, restore=True)
        there, old = root.locate(first, fresh=True)
        with root.failing(change.path, "bring it back"):
            if is_link_with(change.name, here.fd, change.link_text):
                os.unlink(change.name, dir_fd=here.fd)  # the journal knows its text
            os.link(old, change.name, src_dir_fd=there.fd, dst_dir_fd=here.fd, follow_symlinks=False)

    def _clear_beside(self, root: Root, change: Change) -> None:
        """Remove what a killed run left of a change that it did not complete."""
        if not self._apply:
            return
        if change.link_text:
            remove_spare_link(root, change.path, change.displaced_name, change.link_text)
        elif change.action is Action.MOVE:
            self._remove_twin(change)

    def _remove_twin(self, change: Change) -> None:
        """Remove the copy of a moved file that has its name."""
        into = self._roots.get(change.destination_top)
        try:
            if into is None:
                into = self._root(change.destination_top)
            directory, name = into.locate(change.destination, fresh=True)
            found = _look(into, change.destination, directory, name)
            if found is None or not _is_alike(change, found):
                return
            remove_twin(into, change.destination, self._root(change.top), change.path)
        except FileError as error:
            if not _is_missing(error):
                self._totals.problem(error)

    # Directories

    def _root(self, top: bytes) -> Root:
        root = self._roots.get(top)
        if root is None:
            try:
                root = Root.open(top)
            except FileError as error:
                state = self._journal.directories.get((top, b""))
                if not self._apply or state is None or not _is_missing(error):
                    raise
                above, _, name = top.rpartition(b"/")
                self._make(Root.open(above or b"/"), name, state)
                root = Root.open(top)
            self._roots[top] = root
        return root

    def _directory(self, top: bytes, path: bytes, opened: _Open, *, restore: bool = False) -> Directory:
        """Return a directory, opened once in a batch. `restore`: it is made again if it is missing. Raises
        FileError."""
        found = opened.directories.get((top, path))
        if found is not None:
            return found
        root = self._root(top)
        self._touched[top, path] = None
        try:
            directory = root.directory(path, fresh=True)
        except FileError as error:
            if not restore or not path or not self._apply or not _is_missing(error):
                raise
            opened.made.append(self._directory(top, path.rpartition(b"/")[0], opened, restore=True))
            self._make(root, path, self._journal.directories.get((top, path)))
            directory = root.directory(path, fresh=True)
        opened.directories[top, path] = directory
        return directory

    def _make(self, root: Root, path: bytes, state: DirectoryState | None) -> None:
        """Make a directory again. Until it has its owner and its ACL, others have no rights to it."""
        if state is None:
            root.make_directory(path)
            return
        if not root.make_directory(path, 0o700):
            return
        directory, name = root.locate(path, fresh=True)
        try:
            fd = os.open(name, _DIRECTORY, dir_fd=directory.fd)
            try:
                found = os.fstat(fd)
                if (found.st_uid, found.st_gid) != (state.metadata.uid, state.metadata.gid):
                    os.fchown(fd, state.metadata.uid, state.metadata.gid)
                write_attributes(fd, state.attributes)
                os.fchmod(fd, state.metadata.mode)
            finally:
                os.close(fd)
        except OSError as error:
            self._totals.problem(
                root.refused(
                    path,
                    "give the directory what it had",
                    expected="to set its owner, mode and attributes",
                    found=os.strerror(error.errno or 0),
                    advice="run as root, or set them",
                )
            )
        self._restored.append(state)

    # The end

    def finish(self) -> None:
        """Give directories their times, remove those that the run made, and clear temporaries."""
        for top, path in self._touched:
            with suppress(FileError, OSError):
                self._sweep(top, path)
        for top, path in reversed(self._journal.made):
            with suppress(FileError, OSError):
                directory, name = self._root(top).locate(path, fresh=True)
                os.rmdir(name, dir_fd=directory.fd)
        for state in reversed(self._restored):
            with suppress(FileError, OSError):
                directory, name = self._root(state.top).locate(state.path, fresh=True)
                now = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
                times = now.st_atime_ns, real_time(state.metadata.mtime_ns)
                os.utime(name, ns=times, dir_fd=directory.fd, follow_symlinks=False)

    def _sweep(self, top: bytes, path: bytes) -> None:
        """Remove copies that an interrupted undo left."""
        root = self._root(top)
        fd = os.open(b".", _DIRECTORY, dir_fd=root.directory(path).fd)
        try:
            names = [os.fsencode(name) for name in os.listdir(fd) if name.startswith(".rdc-")]
        finally:
            os.close(fd)
        sweep_temporaries(root, path, [name for name in names if name.endswith(b".tmp")])

    def _pass_over(self, shown: bytes, why: str) -> None:
        self._totals.skip(shown, f"{printable(shown)}: passed over: {why}")


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _is_small(size: int, allocated: int) -> bool:
    """Return whether a file is copied from memory: it is small, and has no holes that are worth keeping."""
    return size <= SMALL_BYTES and size - allocated < HOLES_KEPT


def _digest(kept: KeptFile) -> Digest:
    return Digest(kept.digest, kept.digest_of_all)


def _look(root: Root, path: bytes, directory: Directory, name: bytes) -> os.stat_result | None:
    """Return the stat of an entry, None if nothing is there. `path`: for the error. Raises RdcError."""
    try:
        return os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise root.failure(error, path, "look at it") from error


def _is_alike(change: Change, found: os.stat_result) -> bool:
    """Return whether an entry is the file that was recorded, or a copy of it."""
    return stat.S_ISREG(found.st_mode) and (found.st_size, packed_time(found.st_mtime_ns)) == (
        change.size,
        change.metadata.mtime_ns,
    )


def _is_missing(error: FileError) -> bool:
    """Return whether an error says that a directory is not there."""
    return isinstance(error.__cause__, FileNotFoundError)


def _taken(root: Root, change: Change, found: str) -> FileError:
    return refused(
        *(change.path, root.shown(change.path), "bring it back"),
        expected="a free name",
        found=found,
        advice="it was left alone; rename or remove it and run again",
    )
