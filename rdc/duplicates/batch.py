"""Batch: takes names from files that have the content of others, many at a time, so that they share their
syncs.

A batch goes through these steps. Files are leased, compared and written into the journal. The journal and the
files that stay are made durable. The names leave their files. The directories are made durable. What was
displaced is removed. rdc.files.names.name_change has the argument for each name; rdc.files.names.leased_files
does the same for many names at once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress

from rdc.duplicates.journal import Change, DirectoryState, KeptFile
from rdc.errors import FileError, printable
from rdc.files.base.paths import changed, leading_to
from rdc.files.base.syscalls import share_of_descriptors
from rdc.files.base.taking_names import make_durable
from rdc.files.facts.extents import Sharing, measure_sharing
from rdc.files.facts.xattrs import read_attributes
from rdc.files.names.leased_files import LeasedFiles, Outcome, Place, Step, difference
from rdc.files.names.name_change import Delete, Link, Move, Symlink, displaced_name
from rdc.files.root.root import Root
from rdc.lean.records import Record, field
from rdc.limits import PATH_BYTES
from rdc.model.duplicates import Action, Instance, RemovalOptions, RootedPath
from rdc.model.entries import Metadata
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.duplicates.group import Inode, Tree
    from rdc.duplicates.journal import JournalWriter
    from rdc.duplicates.run_totals import RunTotals
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.names.name_change import NameChange

BATCH_DESCRIPTORS = 1_600
"""Open files and directories of one batch; fewer if the limit of descriptors is low. The waits for the disk,
some milliseconds each, are then a small part of the work."""

BATCH_BYTES = 64 << 20
"""Bytes compared in one batch, or one file of any size. This takes a tenth of a second from memory, a second
from a disk. Meanwhile, programs that open one of its files for writing wait."""


class Task(Record):
    """One file, all of whose names go, or become names of another."""

    action: Action
    original: Inode
    duplicate: Inode
    destinations: tuple[bytes, ...] = ()
    """For each name, where it goes, or the text of its link; () for other actions."""
    refused: Callable[[int, FileError], bool] | None = None
    """Called with the errno if the file that stays cannot be linked to in that place. Returns whether the
    error is dealt with; else it is reported."""

    def destination(self, number: int) -> bytes:
        return self.destinations[number] if self.destinations else b""


class _Ready(Record, frozen=False):
    """A task whose files are leased and were found equal."""

    task: Task
    file: int
    """Number of the duplicate among the leased files."""
    original: int
    kept: KeptFile
    freed: Sharing
    finished: int = 0
    """Names that are done."""
    refused: bool = False
    """True if the file that stays takes no name of this one: the others are not tried."""


class _Name(Record, frozen=False):
    """One name of a ready task."""

    ready: _Ready
    number: int
    step: Step
    change: NameChange | None = None
    """The object that changes this name alone; made when it is needed."""

    @property
    def path(self) -> RootedPath:
        return self.ready.task.duplicate.names[self.number]


class _Opened(Record, frozen=False):
    """The directories of one batch, each opened once, and afresh."""

    trees: Sequence[Tree]
    _found: dict[tuple[int, bytes], Directory] = field(default_factory=dict)

    def of(self, name: RootedPath) -> Directory:
        """Raise RdcError."""
        key = name.root, name.path.rpartition(b"/")[0]
        directory = self._found.get(key)
        if directory is None:
            root = self.trees[name.root].root
            directory = self._found[key] = root.directory(key[1], fresh=True)
        return directory


class Batch:
    """Collects tasks and executes them, when they are many and at `flush`. In a dry run it only computes what
    they would free."""

    def __init__(
        self,
        trees: Sequence[Tree],
        totals: RunTotals,
        journal: JournalWriter | None,
        paths: RemovalPaths | None = None,
    ) -> None:
        """`journal`: required if the options of `totals` say `apply`. `paths`: required by tasks that
        move."""
        self._trees = trees
        self._totals = totals
        self._journal = journal
        self._paths = paths
        self._most = share_of_descriptors(BATCH_DESCRIPTORS)
        self._tasks: list[Task] = []
        self._files: set[int] = set()
        self._directories: set[tuple[int, bytes]] = set()
        self._bytes = 0
        self._executing = False
        self._recorded: set[tuple[bytes, bytes]] = set()
        """Directories whose state is in the journal."""
        self._made: set[bytes] = set()
        """Directories that were made for moved files, or were there."""

    def add(self, task: Task) -> None:
        """Take over a task. Raises RdcError if the batch is executed and that fails."""
        self._tasks.append(task)
        self._files |= {id(task.original), id(task.duplicate)}
        for name in (*task.original.names[:1], *task.duplicate.names):
            self._directories.add((name.root, name.path.rpartition(b"/")[0]))
        self._bytes += task.duplicate.facts.identity.size
        full = len(self._files) + len(self._directories) >= self._most or self._bytes >= BATCH_BYTES
        if full and not self._executing:
            self.flush()

    def flush(self) -> None:
        """Execute all tasks, and those that come of them. Raises RdcError; what was not begun is dropped."""
        while self._tasks:
            tasks, self._tasks = self._tasks, []
            self._files, self._directories, self._bytes = set(), set(), 0
            self._executing = True
            try:
                self._execute(tasks)
            finally:
                self._executing = False
            self._totals.advance(sum([task.duplicate.facts.identity.size for task in tasks]))

    def _execute(self, tasks: Sequence[Task]) -> None:
        opened = _Opened(self._trees)
        tasks, numbers, places = self._places(tasks, opened)
        if not tasks:
            return
        with LeasedFiles(places) as leased:
            ready = self._compare(tasks, numbers, leased)
            if not self._totals.options.apply:
                for one in ready:
                    for number in range(len(one.task.duplicate.names)):
                        self._done(one, number)
                return
            names = [name for one in ready for name in self._names(one, leased, opened)]
            if names:
                self._record(ready, names, leased, opened)
                self._carry_out(names, leased)

    # Lease and compare

    def _places(
        self, tasks: Sequence[Task], opened: _Opened
    ) -> tuple[list[Task], dict[int, int], list[Place]]:
        """Return where the files of the tasks are opened, each once, and the number of each by its inode's
        id. Tasks whose directories cannot be opened are reported and left out."""
        found: list[Task] = []
        numbers: dict[int, int] = {}
        places: list[Place] = []
        for task in tasks:
            try:
                for inode in (task.original, task.duplicate):
                    if id(inode) not in numbers:
                        name = inode.names[0]
                        directory = opened.of(name)
                        numbers[id(inode)] = len(places)
                        root = self._trees[name.root].root
                        places.append(Place(root, name.path, directory, name.path.rpartition(b"/")[2]))
            except FileError as error:
                self._totals.problem(error)
                continue
            found.append(task)
        return found, numbers, places

    def _compare(self, tasks: Sequence[Task], numbers: dict[int, int], leased: LeasedFiles) -> list[_Ready]:
        """Return the tasks whose two files are leased and equal. The others are reported; a file that stays,
        once."""
        ready: list[_Ready] = []
        together: dict[int, list[Task]] = {}
        for task in tasks:
            together.setdefault(numbers[id(task.original)], []).append(task)
        for original, group in together.items():
            try:
                self._check_same(group[0].original, original, leased)
                same = [task for task in group if self._is_alike(task, original, numbers, leased)]
                files = [numbers[id(task.duplicate)] for task in same]
                digest, equal = self._equal(same, original, files, leased)
            except FileError as error:
                self._totals.problem(error)
                continue
            kept = self._kept(group[0].original, original, digest, leased)
            for task, file, outcome in zip(same, files, equal, strict=True):
                if isinstance(outcome, FileError):
                    self._totals.problem(outcome)
                elif not outcome:
                    self._totals.problem(self._differs(task, "the content of its duplicate"))
                else:
                    try:
                        freed = measure_freed(leased, original, file)
                    except FileError as error:
                        self._totals.problem(error)
                        continue
                    ready.append(_Ready(task, file, original, kept, freed))
        return ready

    def _equal(
        self, tasks: Sequence[Task], original: int, files: Sequence[int], leased: LeasedFiles
    ) -> tuple[bytes, list[bool | FileError]]:
        """Return the digest of the original, and for each of `files` whether it is equal, or why it cannot be
        compared. A dry run trusts the digests of a search."""
        options = self._totals.options
        if not tasks or (not options.apply and self._totals.searched):
            return b"", [True] * len(tasks)
        digest = options.apply and tasks[0].action is not Action.LINK
        return leased.compare(original, files, digest=digest)

    def _is_alike(self, task: Task, original: int, numbers: dict[int, int], leased: LeasedFiles) -> bool:
        """Return whether the duplicate is leased, the file that was found, and has what a link would lose."""
        file = numbers[id(task.duplicate)]
        try:
            self._check_same(task.duplicate, file, leased)
            if task.action is Action.LINK:
                one, other = leased.facts(original), leased.facts(file)
                if one.metadata != other.metadata or leased.attributes(original) != leased.attributes(file):
                    what = difference(leased.file(original), leased.file(file))
                    raise self._differs(task, f"the {what} of its duplicate")
        except FileError as error:
            self._totals.problem(error)
            return False
        return True

    def _check_same(self, inode: Inode, number: int, leased: LeasedFiles) -> None:
        found, expected = leased.facts(number), inode.facts.identity
        if (found.device, found.inode) != (expected.device, expected.inode):
            name = inode.names[0]
            raise changed(name.path, self._shown(name), "the file that was there", "another one")

    def _differs(self, task: Task, expected: str) -> FileError:
        name = task.duplicate.names[0]
        return changed(name.path, self._shown(name), expected, "another")

    def _kept(self, inode: Inode, number: int, digest: bytes, leased: LeasedFiles) -> KeptFile:
        name, facts = inode.names[0], leased.facts(number)
        return KeptFile(self._trees[name.root].real, name.path, facts.inode, facts.size, digest)

    # The names of a task

    def _names(self, one: _Ready, leased: LeasedFiles, opened: _Opened) -> list[_Name]:
        """Return nothing if the task cannot be carried out, which is reported."""
        facts = leased.facts(one.file)
        kept = one.task.original.names[0]
        try:
            there = opened.of(kept)
            found = []
            for number, name in enumerate(one.task.duplicate.names):
                last = name.path.rpartition(b"/")[2]
                displaced = displaced_name(last, facts.size, facts.metadata)
                step = Step(
                    opened.of(name),
                    last,
                    displaced,
                    one.file,
                    one.original,
                    there,
                    kept.path.rpartition(b"/")[2],
                    first=not number,
                )
                found.append(_Name(one, number, step))
        except FileError as error:
            self._totals.problem(error)
            return []
        return found

    def _change(self, name: _Name, leased: LeasedFiles) -> NameChange:
        """Return the object that changes this name alone. Raises RdcError."""
        if name.change is None:
            task, step = name.ready.task, name.step
            root, path = self._trees[name.path.root].root, name.path.path
            files = leased.file(step.file), leased.file(step.original)
            directories = step.directory, step.original_directory
            destination = task.destination(name.number)
            if task.action is Action.LINK:
                name.change = Link(root, path, *files, directories)
            elif task.action is Action.DELETE:
                name.change = Delete(root, path, *files, directories)
            elif task.action is Action.SYMLINK:
                name.change = Symlink(root, path, *files, destination, directories)
            else:
                if self._paths is None:
                    raise ValueError("files are moved by paths only")
                into = self._paths.into()
                name.change = Move(
                    root, path, *files, into=into, destination=destination, directories=directories
                )
        return name.change

    # The journal, and what will stand for two

    def _record(
        self, ready: Sequence[_Ready], names: Sequence[_Name], leased: LeasedFiles, opened: _Opened
    ) -> None:
        """Write the journal and make the files that stay durable. Raises RdcError; nothing has changed
        then."""
        if self._journal is None:
            raise ValueError("names are taken from files with a journal only")
        directories: list[DirectoryState] = []
        if ready[0].task.action is not Action.LINK:
            for name in names:
                self._add_states(name.path, directories)
        self._journal.write(
            [self._record_of(name, leased) for name in names], directories, self._to_be_made(names)
        )
        originals = {one.original: one for one in ready}
        kept = [] if ready[0].task.action is Action.LINK else [name.step.original_directory for name in names]
        try:
            make_durable([leased.fileno(number) for number in originals], kept)
        except OSError as error:
            first = ready[0].task.original.names[0]
            root = self._trees[first.root].root
            raise root.failure(error, first.path, "write it to disk before others go") from error

    def _record_of(self, name: _Name, leased: LeasedFiles) -> Change:
        one, task = name.ready, name.ready.task
        facts = leased.facts(one.file)
        moves = task.action is Action.MOVE and self._paths is not None
        return Change(
            *(task.action, self._trees[name.path.root].real, name.path.path, one.kept, facts.inode),
            *(facts.metadata, facts.atime_ns, leased.attributes(one.file)),
            self._paths.destination_top if moves and self._paths is not None else b"",
            task.destination(name.number),
        )

    def _add_states(self, name: RootedPath, states: list[DirectoryState]) -> None:
        """Add the states of the directories above a name, up to its tree's, that are not recorded yet."""
        tree = self._trees[name.root]
        path = name.path
        while path:
            path = path.rpartition(b"/")[0]
            if (tree.real, path) in self._recorded:
                return
            self._recorded.add((tree.real, path))
            with suppress(FileError):  # an undo that has to make it again gives it the usual metadata
                states.append(_state_of(tree, path))

    def _to_be_made(self, names: Sequence[_Name]) -> list[tuple[bytes, bytes]]:
        """Return the directories that moved files need and that are not there, parents first. Raises
        RdcError."""
        found: list[tuple[bytes, bytes]] = []
        if self._paths is None:
            return found
        for name in names:
            if name.ready.task.action is Action.MOVE:
                for path in self._paths.missing_parents(name.ready.task.destination(name.number)):
                    if path not in self._made:
                        self._made.add(path)
                        found.append((self._paths.destination_top, path))
        return found

    # Depart, make durable, finish

    def _carry_out(self, names: Sequence[_Name], leased: LeasedFiles) -> None:
        departed: list[_Name] = []
        try:
            names = self._copy(names, leased)
            outcomes = self._together(names, leased.displace)
            departed += [name for name, one in zip(names, outcomes, strict=True) if one is Outcome.DONE]
            for name, outcome in zip(names, outcomes, strict=True):
                if outcome is Outcome.DONE or name.ready.refused:
                    continue
                if self._try(name, leased, depart=outcome is Outcome.UNTOUCHED):
                    departed.append(name)
            self._sync_directories(departed)
            # The last comes first, as a stack: what an exception leaves is undone from the end.
            departed.reverse()
            outcomes = self._together(departed, leased.remove)
            while departed:
                name, outcome = departed.pop(), outcomes.pop()
                if outcome is Outcome.DONE or self._try(name, leased, depart=None):
                    self._done(name.ready, name.number)
        finally:
            # Reached with names only after a disk failure or a signal.
            for name in departed:
                self._change(name, leased).undo()

    def _copy(self, names: Sequence[_Name], leased: LeasedFiles) -> list[_Name]:
        """Make the durable copies that moves to another file system need. Names for which that fails are
        reported and left out."""
        if self._paths is None or names[0].ready.task.action is not Action.MOVE:
            return list(names)
        moves: list[tuple[_Name, NameChange]] = []
        try:
            fds = []
            for name in names:
                try:
                    self._paths.make_parents(name.ready.task.destination(name.number))
                    move = self._change(name, leased)
                    moves.append((name, move))
                    fd = move.stage()
                except FileError as error:
                    self._totals.problem(error)
                    if moves and moves[-1][0] is name:
                        moves.pop()
                    continue
                if fd is not None:
                    fds.append(fd)
            self._paths.sync_made()
            make_durable(fds)
            placed: list[_Name] = []
            directories = []
            for name, move in moves:
                try:
                    directory = move.place()
                except FileError as error:
                    self._totals.problem(error)
                    continue
                placed.append(name)
                if directory is not None:
                    directories.append(directory)
            make_durable([], directories)
        except BaseException as error:
            for _, move in moves:
                move.discard()
            if isinstance(error, OSError):
                raise self._paths.into().failure(error, b"", "make the copies durable") from error
            raise
        return placed

    def _together(self, names: Sequence[_Name], call: Callable[..., list[Outcome]]) -> list[Outcome]:
        """Take a step for all names at once, where C has it."""
        action = names[0].ready.task.action if names else Action.MOVE
        if action not in (Action.LINK, Action.DELETE):
            return [Outcome.UNTOUCHED] * len(names)
        return call([name.step for name in names], exchange=action is Action.LINK)

    def _sync_directories(self, names: Sequence[_Name]) -> None:
        if not names:
            return
        directories: list[Directory] = []
        for name in names:
            directories += [name.step.directory] if name.change is None else name.change.directories
        try:
            make_durable([], directories)
        except OSError as error:
            first = names[0].path
            root = self._trees[first.root].root
            raise root.failure(error, first.path, "make the change durable") from error

    def _try(self, name: _Name, leased: LeasedFiles, *, depart: bool | None) -> bool:
        """Depart alone; check what has departed if `depart` is False, finish if it is None."""
        change: NameChange | None = None
        try:
            change = self._change(name, leased)
            if depart is None:
                change.finish()
            elif depart:
                change.depart(first=name.step.first)
            else:
                change.check_departed()
        except FileError as error:
            task = name.ready.task
            refusal = None if change is None else change.refusal
            # Once some of its names are changed, it stays with that file.
            ask = None if name.number else task.refused
            if refusal is not None and ask is not None and ask(refusal, error):
                name.ready.refused = True
            else:
                self._totals.problem(error)
            return False
        return True

    def _done(self, one: _Ready, number: int) -> None:
        """Report one name. Only the last one frees the file."""
        one.finished += 1
        task = one.task
        last = one.finished == len(task.duplicate.names)
        size = task.duplicate.facts.identity.size if last else 0
        freed = one.freed if last else Sharing(0, 0)
        destination = task.destination(number)
        if self._paths is not None:
            destination = self._paths.shown_destination(destination)
        done = Instance(
            task.action,
            self._shown(task.duplicate.names[number]),
            self._shown(task.original.names[0]),
            size,
            freed.own,
            freed.perhaps,
            destination,
            freed.compressed,
            freed.held,
        )
        self._totals.done(done, files=int(last))

    def _shown(self, name: RootedPath) -> bytes:
        return self._trees[name.root].root.shown(name.path)


def measure_freed(leased: LeasedFiles, original: int, file: int) -> Sharing:
    """Return what removing a file frees: its blocks that no other file shares. Raises FileError."""
    allocated = leased.facts(file).allocated
    if leased.is_plain(file):
        return Sharing(0, allocated)
    one, other = leased.file(original), leased.file(file)
    try:
        return measure_sharing(
            *(one.fileno(), 0, other.fileno(), 0, max(other.identity.size, allocated)), whole_extents=False
        )
    except OSError:
        return Sharing(0, allocated)


def _state_of(tree: Tree, path: bytes) -> DirectoryState:
    """Return the state of a directory. Raises RdcError."""
    directory = tree.root.directory(path)
    with tree.root.failing(path, "look at it", reading=True):
        found = os.fstat(directory.fd)
        with leading_to(directory.fd, directory.fd, b".") as entry:
            attributes = read_attributes(entry)
    metadata = Metadata(
        stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid
    )
    return DirectoryState(tree.real, path, metadata, attributes)


# Where duplicates go


class RemovalPaths:
    """The target of each removed duplicate: its path below the directory of `move`, or the text of its link.

    The paths are a function of the trees and options, so a dry run gives the same.
    """

    def __init__(self, trees: Sequence[Tree], options: RemovalOptions) -> None:
        self._trees = trees
        self._options = options
        tops = [tree.real for number, tree in enumerate(trees) if number in options.sources]
        # Different names differ below the directory that all PATHs are in. So no two go to one place.
        self._common = os.path.commonpath(tops) if tops else b"/"
        self._into: Root | None = None
        self._changed: dict[bytes, Directory] = {}
        """Directories in which others were made, and that are not durable yet."""

    def destination(self, name: RootedPath, original: RootedPath) -> bytes:
        """Return where the file at `name` goes, or the text of the link to `original`; b"" for `delete`.

        Raises FileError if it cannot go there.
        """
        if self._options.action is Action.MOVE:
            return self._destination(name)
        if self._options.action is Action.SYMLINK:
            return self._link_text(name, original)
        return b""

    def shown_destination(self, destination: bytes) -> bytes:
        if self._options.action is Action.MOVE:
            return os.path.join(self._options.destination, destination)
        return destination

    @property
    def destination_top(self) -> bytes:
        """The absolute path of the directory that `move` fills."""
        return self._options.destination

    def missing_parents(self, destination: bytes) -> list[bytes]:
        """Return the directories above `destination` that are not there, parents first."""
        return [path for path in _parents(destination) if not os.path.isdir(self.shown_destination(path))]

    def make_parents(self, destination: bytes) -> None:
        """Make the directories above `destination`. Raises RdcError."""
        into = self.into()
        for path in _parents(destination):
            if into.make_directory(path):
                self._changed[path] = into.locate(path, fresh=True)[0]

    def sync_made(self) -> None:
        """Make the directories durable that were made. Raises OSError."""
        changed, self._changed = self._changed, {}
        make_durable([], changed.values())

    def into(self) -> Root:
        """Return the directory that `move` fills; it is made if need be. Raises RdcError."""
        if self._into is None:
            self._into = Root.open(self._options.destination, create=True, writable=True)
        return self._into

    def close(self) -> None:
        if self._into is not None:
            self._into.close()

    def _destination(self, name: RootedPath) -> bytes:
        destination = os.path.relpath(self._trees[name.root].real_path(name.path), self._common)
        path = os.path.join(self._options.destination, destination)
        if os.path.lexists(path):
            raise self._refused(name, "move it", "a free name for it", f"that {printable(path)} is taken")
        return destination

    def _link_text(self, name: RootedPath, original: RootedPath) -> bytes:
        if original.root not in self._options.sources:
            raise self._refused(
                *(name, "make it a symbolic link", "an equal file below the PATHs"),
                "one outside of them, to which a link would lead out",
            )
        directory = os.path.dirname(self._trees[name.root].real_path(name.path))
        text = os.path.relpath(self._trees[original.root].real_path(original.path), directory)
        if len(text) >= PATH_BYTES:
            raise self._refused(
                name, "make it a symbolic link", f"a text below {PATH_BYTES} bytes", f"{len(text)}"
            )
        return text

    def _refused(self, name: RootedPath, doing: str, expected: str, found: str) -> FileError:
        root = self._trees[name.root].root
        return root.refused(
            name.path, doing, expected=expected, found=found, advice="the file was left alone"
        )


def _parents(path: bytes) -> list[bytes]:
    """Return the directories above a relative path, the topmost first."""
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[: count + 1]) for count in range(len(parts))]
