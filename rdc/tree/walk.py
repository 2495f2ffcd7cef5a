"""Walks a confined tree, a directory at a time, in the order that both sides of a sync agree on."""

from __future__ import annotations

import errno
from bisect import bisect_left
from time import perf_counter_ns

from rdc.errors import ExitCode, FileError, RdcError, printable
from rdc.files.base.paths import OWN_DIRECTORIES, PARTS_NAME, is_temporary, join
from rdc.files.depth import DEPTH_MOST, WAIT_NANOSECONDS, Depth, Depths, Looking, RowsSeen
from rdc.files.root.lister import RUN_DIRECTORIES
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple, Protocol
from rdc.limits import AHEAD_BYTES, DIRECTORY_BYTES, ENTRY_BYTES
from rdc.model.entries import (
    EMPTY_LISTING,
    NO_INODES,
    BadEntry,
    Kind,
    Listed,
    ListedDirectories,
    PackedInodes,
    PackedListing,
    strings,
)
from rdc.progress import Problem, Reporter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from rdc.files.root.lister import Run
    from rdc.files.root.root import Root
    from rdc.lean.threads import Task, Threads
    from rdc.tree.filters import FilteredTree, FilterList
    from rdc.tree.selection import Selection


# ListAhead: lists the directories of a walk, and the next ones ahead while each makes the walk wait.
#
# A walk knows which directories come next: those of its stack. Listed ahead, they wait for storage together.
# The walk still gets one after the other, in its own order. A directory that cannot be listed ahead, or is
# large, is listed when its turn comes, so that errors and memory are those of a walk without this.

WINDOW_DIRECTORIES = 16
"""Directories that are looked at together. Half of them have to be slow, so that a processor that was busy
with others once is no reason for threads."""


class Listable(Protocol):
    """A tree whose directories can be listed: a Root."""

    @property
    def depths(self) -> Depths: ...

    @property
    def lists_ahead(self) -> bool:
        """Return whether threads may list several directories at a time."""

    def list_unviewed(
        self, path: bytes, *, limit: int = DIRECTORY_BYTES, looking: Looking | None = None
    ) -> Listed: ...

    def list_many(self, todo: Sequence[bytes], *, looking: Looking) -> Run | None: ...

    def viewed(self, path: bytes, listed: Listed) -> Listed: ...


class _Ahead(Record):
    """The result of one thread for one directory."""

    listed: Listed | None
    """None if it could not be listed within the bound."""
    waited: int
    """Nanoseconds."""
    no_descriptor: bool

    @property
    def size(self) -> int:
        """Bytes, as the bound counts them."""
        if self.listed is None:
            return 0
        return ENTRY_BYTES * self.listed.listing.count + len(self.listed.listing.names)


class _TimedLooks:
    """Stands for the depth at which the entries of a directory are looked at, and keeps the time they took.

    It is measured where no other thread of Python is waited for.
    """

    def __init__(self, depth: Depth) -> None:
        self._depth = depth
        self.elapsed = 0
        """Nanoseconds of the last directory."""

    @property
    def now(self) -> int:
        return self._depth.now

    @property
    def most(self) -> int:
        return self._depth.most

    def saw(self, seen: RowsSeen) -> None:
        self.elapsed = seen.elapsed
        self._depth.saw(seen)


class ListAhead:
    """Lists directories ahead of one walk over `root`, which lists each directory once."""

    def __init__(self, root: Listable, *, ahead: bool = True) -> None:
        """`ahead`: False if the walk leaves out directories of its stack."""
        self._root = root
        self._may = ahead and root.lists_ahead
        self._depth = root.depths.listing
        self._looks = _TimedLooks(root.depths.looking)
        self._tasks: dict[bytes, Task[_Ahead]] = {}
        self._running: list[Task[_Ahead]] = []
        self._ahead_bytes = 0
        """Bytes of what was listed ahead and not taken yet."""
        self._alone: tuple[bytes, Listed] | None = None
        """The next directory, which `take_many` has listed and left to `take`."""
        self._threads: Threads | None = None
        self._slow = self._looked = self._elapsed = self._waited = 0

    def take(self, path: bytes, following: Sequence[bytes]) -> Listed:
        """List one directory. `following`: those that come after it, the next one last. Raises RdcError."""
        if self._alone is not None and self._alone[0] == path:
            listed, self._alone = self._alone[1], None
            return self._root.viewed(path, listed)
        if not self._may or (self._depth.now == 1 and not self._tasks):
            return self._list_alone(path)
        begun = perf_counter_ns()
        if self._depth.now > 1:
            self._submit(path, following)
        task = self._tasks.pop(path, None)
        if task is None:
            return self._list_alone(path)
        ahead = task.result()
        if task not in self._running:
            self._ahead_bytes -= ahead.size
        else:
            self._running.remove(task)
        elapsed = perf_counter_ns() - begun
        calls = 1 if ahead.listed is None else 1 + ahead.listed.listing.count
        # A directory counts as one row, whose wait is that of a mean call.
        self._depth.saw(RowsSeen(1, 1, ahead.waited // calls, elapsed, ahead.no_descriptor, 0))
        if ahead.listed is None:
            return self._root.viewed(path, self._root.list_unviewed(path))
        return self._root.viewed(path, ahead.listed)

    def take_many(self, todo: list[bytes]) -> ListedDirectories | None:
        """List directories of `todo`, the last one first, and those in them before others.

        `todo` is then what is left. None, or none at all: the last one is to be taken alone, as always while
        calls wait.
        """
        if self._depth.now > 1 or self._tasks or self._alone is not None:
            return None
        run = self._root.list_many(todo[-RUN_DIRECTORIES:], looking=self._looks)
        if run is None:
            return None
        self._count_looks(run.looked, run.slow, run.waited, run.elapsed)
        todo[-RUN_DIRECTORIES:] = run.todo
        if run.alone is not None:
            self._alone = run.alone
            todo.append(run.alone[0])
        return run.directories

    def _list_alone(self, path: bytes) -> Listed:
        listed = self._root.list_unviewed(path, looking=self._looks)
        waited, self._looks.elapsed = self._looks.elapsed, 0
        mean = waited // (1 + listed.listing.count)
        self._count_looks(1, mean > WAIT_NANOSECONDS, mean, waited)
        return self._root.viewed(path, listed)

    def _count_looks(self, looked: int, slow: int, waited: int, elapsed: int) -> None:
        """Count directories that were looked at, and those whose mean call was slow. `waited`: nanoseconds of
        a mean call of each; `elapsed`: of all calls."""
        self._looked += looked
        self._slow += slow
        self._elapsed += elapsed
        self._waited += waited
        if self._looked >= WINDOW_DIRECTORIES:
            counted = self._waited if 2 * self._slow >= self._looked else 0
            self._depth.saw(RowsSeen(self._looked, self._looked, counted, self._elapsed, 0, 0))
            self._slow = self._looked = self._elapsed = self._waited = 0

    def _submit(self, path: bytes, following: Sequence[bytes]) -> None:
        """Begin to list `path` and the next ones, as many as the depth and the bound let be."""
        self._count_ended()
        if self._threads is None:
            from rdc.lean.threads import Threads

            self._threads = Threads(max(self._depth.now, DEPTH_MOST), "rdc walk")
        limit = (AHEAD_BYTES - self._ahead_bytes) // self._depth.now
        # Few directories share the calls in flight.
        others = len(self._running) + len(following)
        looking = Depth(max(1, self._depth.now // (1 + others)))
        at = len(following)
        last = max(0, at - 4 * self._depth.now)
        while len(self._running) < self._depth.now and self._ahead_bytes <= AHEAD_BYTES // 2:
            if path not in self._tasks:
                try:
                    task = self._threads.submit(self._try, path, limit, looking)
                except RuntimeError:
                    self._depth.saw(RowsSeen(0, 0, 0, 0, 0, 1))
                    return
                self._tasks[path] = task
                self._running.append(task)
            at -= 1
            if at < last:
                return
            path = following[at]

    def _count_ended(self) -> None:
        running = []
        for task in self._running:
            if task.done():
                self._ahead_bytes += task.result().size
            else:
                running.append(task)
        self._running = running

    def _try(self, path: bytes, limit: int, looking: Depth) -> _Ahead:
        """List a directory in a thread."""
        begun = perf_counter_ns()
        listed, no_descriptor = None, False
        try:
            listed = self._root.list_unviewed(path, limit=limit, looking=looking)
        except RdcError as error:
            cause = error.__cause__
            no_descriptor = isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE)
        return _Ahead(listed, perf_counter_ns() - begun, no_descriptor)

    def close(self) -> None:
        """End the threads, when the calls in flight have ended. May be called again."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()
        self._running.clear()
        if self._threads is not None:
            self._threads.close()
            self._threads = None


DIRECTORY, SPECIAL = int(Kind.DIRECTORY), int(Kind.SPECIAL)


class WalkedDirectory(NamedTuple):
    """One directory of a walk: its relative path, the entries that the filters leave, and their inodes."""

    path: bytes
    listing: PackedListing
    inodes: PackedInodes


class Walk:
    """Yields directories in pre-order: a directory, then its subdirectories by name. Links are never
    followed.

    An unreadable directory is reported, counted in `read_errors` and skipped; one that vanished is reported
    with exit code 24. An entry that cannot be looked at is left out, and reported and counted unless the
    filters exclude it. An unreadable root raises FileError. Special files are reported once and stay in the
    listing, so that the other side does not take their counterparts for extraneous. Entries with a reserved
    name (rdc.files.base.paths) are in no listing; those that no temporary could have are reported.

    Without filter rules, entries that are neither directories nor special cost no Python step each. A
    directory has one parent and links are not followed, so no walk can enter a cycle.
    """

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        reporter: Reporter,
        only: bytes | None = None,
        *,
        start: bytes = b"",
        on_temporaries: Callable[[bytes, list[bytes]], None] | None = None,
        on_lookalike: Callable[[bytes], None] | None = None,
        on_special: Callable[[bytes], None] | None = None,
        known: Callable[[bytes], PackedListing | None] | None = None,
        enter: Callable[[bytes], bool] | None = None,
        descend: Callable[[int, int], bool] | None = None,
        device: int | None = None,
        selection: Selection | None = None,
        lasting: Container[bytes] | None = None,
    ) -> None:
        """`only` restricts the walk to one entry of the root and everything below it, and `selection` to what
        it selects. `lasting`: the directories that take part; None for all.

        `start` is the directory to begin with; paths stay relative to the root. `on_temporaries` receives a
        directory and its reserved names, and then none is reported. `on_lookalike` receives the path of each
        reserved name that no temporary could have, and `on_special` that of each special file, instead of
        `reporter`. `known` may return a directory's filtered entries, and then the directory is not read and
        has NO_INODES. `enter` decides for each directory, including the first, whether it is read. `descend`
        receives device and inode number of each directory below the first, and decides whether it is walked;
        it stays in its parent's listing. `device`, which is that of the first directory, decides so, too.
        """
        self._root = root
        self._filters = filters
        self._report = reporter
        self._only = only
        self._start = start
        self._on_temporaries = on_temporaries
        self._on_lookalike = on_lookalike
        self._on_special = on_special
        self._known = known
        self._enter = enter
        self._descend = descend if device is None else lambda found, _inode: found == device
        self._selection = selection
        self._lasting = lasting
        self._restricted = bool(filters) or (only, selection, lasting) != (None, None, None)
        # A directory with others of another device in it is listed alone in any case.
        self._decides = (enter, known, descend) != (None, None, None)
        self.read_errors = 0

    def __iter__(self) -> Iterator[WalkedDirectory]:
        # The walk decides about a directory when its turn comes.
        lister = ListAhead(
            self._root, ahead=self._enter is None and self._known is None and self._selection is None
        )
        try:
            yield from self._directories(lister, [self._start])
        finally:
            lister.close()

    def many(self, *, single: bool = False) -> Iterator[ListedDirectories]:
        """Yield the same directories, many at a time where none of them calls for a decision or a report.

        `single`: one at a time in any case, for who reads more of each when its turn comes.
        """
        if single or self._restricted or self._decides:
            for path, listing, inodes in self:
                yield ListedDirectories.of(path, listing, inodes)
            return
        lister = ListAhead(self._root)
        todo = [self._start]
        try:
            while todo:
                listed = lister.take_many(todo)
                if listed is not None and listed.walked:
                    yield listed
                    continue
                for path, listing, inodes in self._directories(lister, todo, 1):
                    yield ListedDirectories.of(path, listing, inodes)
        finally:
            lister.close()

    def _directories(
        self, lister: ListAhead, todo: list[bytes], turns: int = -1
    ) -> Iterator[WalkedDirectory]:
        """Yield the directories of `todo` and those below them. `turns`: how many, -1 for all."""
        # long because it runs once for each directory, where calls cost more than the work
        while todo and turns:
            turns -= 1
            path = todo.pop()
            known = self._known(path) if self._known is not None else None
            try:
                if self._enter is not None and not self._enter(path):
                    continue
                if known is None:
                    found = self._list(path, lister, todo)
                    listing, inodes = found.listing, found.inodes
                else:
                    listing, inodes = known, NO_INODES
            except FileError as error:
                if path == self._start:
                    raise
                self.read_errors += 1
                self._report(Problem(error.code, path, str(error)))
                continue
            kinds = listing.kinds
            if DIRECTORY in kinds or SPECIAL in kinds:
                names = strings(listing.names)
                if SPECIAL in kinds:
                    for row in listing.rows_of(Kind.SPECIAL):
                        self._skip(join(path, names[row]))
                yield WalkedDirectory(path, listing, inodes)
                below: Iterable[int] = reversed(listing.rows_of(Kind.DIRECTORY))
                if self._descend is not None:
                    rows = listing.rows_of(Kind.DIRECTORY)
                    below = reversed([row for row in rows if self._descend(*inodes.identity(row))])
                todo += [join(path, names[row]) for row in below]
            else:
                yield WalkedDirectory(path, listing, inodes)

    def _list(self, path: bytes, lister: ListAhead, following: Sequence[bytes]) -> Listed:
        """Return the entries of a directory that take part, and report the others. Raises FileError."""
        if self._selection is not None and self._selection.is_closed(path):
            return Listed(EMPTY_LISTING.packed(), NO_INODES)
        found = lister.take(path, following)
        only = None if path else self._only
        if found.reserved:
            if self._on_temporaries is not None:
                self._on_temporaries(path, list(found.reserved))
            else:
                for entry in lookalikes(path, found.reserved, self._filters, only, self._selection):
                    self._pass_over(entry)
        for bad in found.bad:
            self._take_bad(path, bad, only)
        return found.rows(self._selected(path, found.listing)) if self._restricted else found

    def _take_bad(self, directory: bytes, bad: BadEntry, only: bytes | None) -> None:
        """Report an entry that could not be looked at, if it takes part."""
        entry = join(directory, bad.name)
        if (
            only not in (None, bad.name)
            or (self._selection is not None and not self._selection.takes(directory, bad.name))
            or self._filters.excluded(entry, bad.is_directory)
        ):
            return
        self.read_errors += 1
        self._report(Problem(ExitCode.PARTIAL, entry, str(self._root.unlisted(entry, bad))))

    def _pass_over(self, path: bytes) -> None:
        # Not a bound method in on_lookalike's place: the cycle would keep the root's descriptor open.
        if self._on_lookalike is not None:
            self._on_lookalike(path)
        else:
            self._report(Problem(ExitCode.OK, path, passed_over(path)))

    def _selected(self, path: bytes, listing: PackedListing) -> Sequence[int]:
        """Return the rows that `only`, the selection, the filters and the lasting directories leave."""
        rows = self._included(path, listing)
        if self._lasting is None or DIRECTORY not in listing.kinds:
            return rows
        names, kinds, lasting = strings(listing.names), listing.kinds, self._lasting
        return [row for row in rows if kinds[row] != DIRECTORY or join(path, names[row]) in lasting]

    def _included(self, path: bytes, listing: PackedListing) -> Sequence[int]:
        """Return the rows that `only`, the selection and the filters leave."""
        rows: Sequence[int] = range(len(listing))
        if path == b"" and self._only is not None:
            rows = _single(listing, self._only)
        selection = self._selection
        selected = None if selection is None else selection.names(path)
        if not self._filters and selected is None:
            return rows
        names, kinds = strings(listing.names), listing.kinds
        if selected is not None:
            rows = [row for row in rows if names[row] in selected]
        if not self._filters:
            return rows
        excluded = self._filters.excluded
        return [
            row
            for row in rows
            if not excluded(join(path, names[row]), kinds[row] == Kind.DIRECTORY)
            # No rule keeps a selected path from the directories above it.
            or (selection is not None and selection.is_above(join(path, names[row])))
        ]

    def _skip(self, path: bytes) -> None:
        if self._on_special is not None:
            self._on_special(path)
            return
        text = f"{printable(path)}: skipped, neither file, directory nor symlink"
        self._report(Problem(ExitCode.OK, path, text))


def measuring_walk(
    root: Root,
    filters: FilterList,
    reporter: Reporter,
    descend: Callable[[int, int], bool] | None = None,
) -> Walk:
    """Return a walk that only measures. Special files are not reported, because nothing is done with them,
    and messages name other entries as the user would type them."""

    def report_lookalike(path: bytes) -> None:
        reporter(Problem(ExitCode.OK, path, passed_over(root.shown(path))))

    def ignore(path: bytes) -> None:
        pass

    return Walk(root, filters, reporter, on_lookalike=report_lookalike, on_special=ignore, descend=descend)


def lookalikes(
    directory: bytes,
    reserved: Iterable[bytes],
    filters: FilterList,
    only: bytes | None = None,
    selection: Selection | None = None,
) -> list[bytes]:
    """Return the paths of entries whose reserved names no temporary could have: users' files, or files that
    `rdc dedupe` set aside.

    Excluded entries are left out, and what syncs keep to be undone. `only` restricts the result to one name,
    `selection` to what it selects.
    """
    return [
        join(directory, name)
        for name in reserved
        if not (name in (*OWN_DIRECTORIES, PARTS_NAME) or is_temporary(name))
        and only in (None, name)
        and (selection is None or selection.takes(directory, name))
        and not filters.excluded(join(directory, name), False)
    ]


def passed_over(shown: bytes) -> str:
    """Return the message for an entry that is skipped because its name is reserved. `shown` is its path in
    messages."""
    return (
        f"{printable(shown)}: passed over, because rdc keeps this form of names for its temporary files;"
        " rename it to have it taken"
    )


def _single(listing: PackedListing, name: bytes) -> list[int]:
    names = strings(listing.names)
    row = bisect_left(names, name)
    return [row] if names[row : row + 1] == [name] else []


# Directories that hold nothing but directories: --prune-empty-dirs has them take no part.

_DIRECTORY = int(Kind.DIRECTORY)


def lasting_directories(
    walk: Iterable[WalkedDirectory], filters: FilterList, tree: FilteredTree
) -> set[bytes]:
    """Return the paths of directories with something below them that is no directory, or that a rule
    protects.

    `walk`: all directories of `tree`, parents first. `filters`: the rules of the run.
    """
    # Only rules that protect by name keep a directory, not those that exclude, as in rsync.
    protecting = filters.at_destination(tree, delete=True, delete_excluded=True).protected
    lasting: set[bytes] = {b""}
    for path, listing, _ in walk:
        kinds = listing.kinds
        if kinds.count(_DIRECTORY) < len(kinds):
            _add(lasting, path)
        if protecting and _DIRECTORY in kinds:
            names = strings(listing.names)
            for row in listing.rows_of(Kind.DIRECTORY):
                below = join(path, names[row])
                if _is_protected(below, protecting):
                    _add(lasting, below)
    return lasting


def _add(lasting: set[bytes], path: bytes) -> None:
    while path not in lasting:
        lasting.add(path)
        path = path.rpartition(b"/")[0]


def _is_protected(path: bytes, protecting: FilterList) -> bool:
    try:
        return protecting.excluded(path, True)
    except FileError:
        return True  # its rules cannot be read, so it takes part
