"""Walks several paths: each directory once, however it is reached, and all files as columns."""

from __future__ import annotations

import os
import stat
from functools import partial

from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable
from rdc.files.base.paths import failure, join, refused
from rdc.files.depth import ReadRate
from rdc.files.root.root import Root
from rdc.lean.records import Record, replace
from rdc.lean.typed import Protocol
from rdc.model.entries import Kind, PackedListing, strings
from rdc.progress import Event, Problem, Reporter, StopSignal, check_stop
from rdc.survey.walk.file_columns import Directory, FileColumns, FileRows
from rdc.tree import filter_list
from rdc.tree.filters import FilteredTree, FilterList
from rdc.tree.walk import WalkedDirectory, measuring_walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.files.own.output_file import Claims
    from rdc.model.selection import DirectoryRules, FilterRule
    from rdc.survey.walk.directory_rows import DirectoryRows


# StorageUse: what one run may ask of storage.


class StorageUse:
    """The calls in flight, and the bytes read in a second. Several trees share the rate."""

    def __init__(self, depth: int = 0, max_rate: int = 0) -> None:
        """`depth`: calls in flight at a time; 0: by their waits. `max_rate`: bytes a second; 0: no bound."""
        self._depth = depth
        self._rate: ReadRate | None = None
        if max_rate:
            self._rate = ReadRate(max_rate)

    @property
    def rate(self) -> ReadRate | None:
        """The limit on the bytes that are read in a second; None: there is none."""
        return self._rate

    def bind(self, root: Root) -> Root:
        """Return `root` as it obeys."""
        return root.having(replace(root.reads, depth=self._depth, rate=self._rate))


# UniqueWalk: walks several trees and visits each directory once, however often it is reached.


class UniqueWalk:
    """Directories are identified by device and inode. So paths that overlap and bind mounts that lead upwards
    are walked once. Directories below a root that cannot be read are reported by the path that the user would
    type."""

    def __init__(
        self,
        filters: FilterList,
        reporter: Reporter,
        *,
        one_file_system: bool,
        use: StorageUse = StorageUse(),  # noqa: B008 - it has no state
        stopped: Callable[[], bool] = lambda: False,
        met_again: Callable[[bytes], None] = lambda _: None,
        claims: Claims | None = None,
    ) -> None:
        """`use`: what the walk may ask of storage. `stopped`: asked before each directory; True
        ends the walk. `met_again`: called with the path, as the user would type it, of each directory that
        was visited before. `claims`: the results of this run. A file that one of them would replace ends the
        walk by a UsageError; directories that the run fills are left out and reported."""
        self._filters = filters
        self._reporter = reporter
        self._one_file_system = one_file_system
        self.use = use
        self._stopped = stopped
        self._met_again = met_again
        self.claims = claims
        self._entered: set[int] = set()

    def below(self, root: Root) -> Iterator[WalkedDirectory]:
        """Yield the directories of the tree at `root`, as `use` binds it, starting with itself. Raises
        FileError if `root` cannot be read."""
        if self._stopped():
            return
        top = root.identity(b"")
        if self._fills(top.device, top.inode):
            raise UsageError(
                f"{printable(root.shown(b''))}: this run would read it, and write its own files there; name"
                " another directory for them"
            )
        if not self._enters(top.device, top.inode):
            self._met_again(root.shown(b""))
            return

        def report(event: Event, /) -> None:
            if isinstance(event, Problem):
                event = Problem(event.code, root.shown(event.path_bytes), event.message)
            self._reporter(event)

        def descend(device: int, inode: int) -> bool:
            if self._stopped() or (self._one_file_system and device != top.device):
                return False
            if self._fills(device, inode):
                report(_left_out(root, directory, device, inode))
                return False
            if self._enters(device, inode):
                return True
            self._met_again(root.shown(_path_of(directory, device, inode)))
            return False

        filters = self._filters.at_source(FilteredTree(root))
        for directory in measuring_walk(root, filters, report, descend):
            if self.claims is not None and self.claims.existing:
                self.claims.check_rows(directory.inodes, partial(_shown, root, directory))
            yield directory

    def _fills(self, device: int, inode: int) -> bool:
        """Return whether the run writes its own files into a directory."""
        return self.claims is not None and (device, inode) in self.claims.directories

    def _enters(self, device: int, inode: int) -> bool:
        """Mark a directory as visited. Returns whether it was new."""
        before = len(self._entered)
        self._entered.add(device << 64 | inode)
        return len(self._entered) > before


def _shown(root: Root, directory: WalkedDirectory, row: int) -> bytes:
    return root.shown(join(directory.path, strings(directory.listing.names)[row]))


def _path_of(parent: WalkedDirectory, device: int, inode: int) -> bytes:
    """Return the path of a directory in `parent`."""
    rows = parent.listing.rows_of(Kind.DIRECTORY)
    row = next(row for row in rows if parent.inodes.identity(row) == (device, inode))
    return join(parent.path, strings(parent.listing.names)[row])


def _left_out(root: Root, parent: WalkedDirectory, device: int, inode: int) -> Problem:
    path = _path_of(parent, device, inode)
    text = f"{printable(root.shown(path))}: left out, since this run writes its own files there"
    return Problem(ExitCode.OK, path, text)


# Lists everything below the paths of a search. Entries that several paths reach are listed once.


class EntryChoice(Protocol):
    """Chooses entries while they are walked, so that others take no memory."""

    def has_file(self, path: bytes, size: int) -> bool:
        """Return whether a file that is given by itself is chosen."""

    def rows(self, directory: bytes, listing: PackedListing) -> list[int]:
        """Return the chosen files of one directory, by their rows. `directory`: as the user would type it,
        ending in a slash."""


def walk_paths(
    paths: Sequence[bytes],
    rules: Sequence[FilterRule | DirectoryRules],
    reporter: Reporter,
    *,
    one_file_system: bool,
    use: StorageUse = StorageUse(),  # noqa: B008 - it has no state
    stop: StopSignal | None = None,
    choice: EntryChoice | None = None,
    claims: Claims | None = None,
    directories: DirectoryRows | None = None,
) -> tuple[FileColumns, int]:
    """Return all regular files at and below `paths`, and the number of all entries there. A path that is a
    symlink is followed; links below are not. Raises StoppedError once `stop` is set.

    `use`: what the walk and later reads of files may ask of storage. Patterns are relative to each path.
    Rows are in the order of `paths`: an entry that several paths reach is listed at the first of them. A file
    given by itself is listed as given, filters or not. What cannot be read is reported and left out. With a
    `choice` everything is walked even so, and only what it chooses is listed. `directories` receives each
    directory that is walked, and a Directory has its number there. Raises UsageError for a file that a result
    of this run would replace, by `claims`.
    """
    stopped = (lambda: False) if stop is None else stop.is_set
    filters = filter_list(rules)
    if directories is not None:
        reporter = directories.noting(reporter)
    walk = UniqueWalk(
        filters, reporter, one_file_system=one_file_system, use=use, stopped=stopped, claims=claims
    )
    gathering = _Gathering(walk, reporter, choice, directories)
    gathering.run(paths)
    check_stop(stop)
    return gathering.files, gathering.entries


class _SingleFile(Record):
    """A file given by itself."""

    root: Root
    parent: Directory
    name: bytes
    found: os.stat_result

    @property
    def key(self) -> tuple[int, bytes]:
        """The number of the entry's directory, and the entry's name: no other entry has both."""
        return _number(os.fstat(self.root.fileno())), self.name


class _Gathering:
    def __init__(
        self,
        walk: UniqueWalk,
        reporter: Reporter,
        choice: EntryChoice | None,
        directories: DirectoryRows | None,
    ) -> None:
        self._walk = walk
        self._directories = directories
        self._choice = choice
        self._report = reporter
        self.files = FileColumns()
        self.entries = 0
        """Entries of all kinds that were met, once for each name."""
        self._named: dict[int, set[bytes]] = {}
        """Names of files given by themselves, by the number of their directory."""
        self._listed: set[tuple[int, bytes]] = set()
        """Keys of those that are listed."""
        self._parents: dict[bytes, Root] = {}

    def run(self, paths: Sequence[bytes]) -> None:
        # A walk must know the files given after its directory, so all are looked at before it.
        for path, one in [(path, self._opened(path)) for path in paths]:
            self.files.firsts.append(len(self.files))
            try:
                if isinstance(one, bytes):
                    self._add_tree(one)
                elif one is not None:
                    self._add_file(one)
            except UsageError:
                raise
            except RdcError as error:
                self._report(Problem(error.code, path, str(error)))

    def _opened(self, path: bytes) -> bytes | _SingleFile | None:
        """Return the path of a directory, or a file given by itself. None for anything else: it is
        reported."""
        try:
            found = os.stat(path)
            if stat.S_ISDIR(found.st_mode):
                return path
            one = self._single(path, found)
        except FileError as error:
            self._report(Problem(error.code, path, str(error)))
        except (OSError, ValueError) as error:
            self._report_missing(path, error)
        else:
            directory, name = one.key
            self._named.setdefault(directory, set()).add(name)
            return one
        return None

    def _report_missing(self, path: bytes, error: OSError | ValueError) -> None:
        if isinstance(error, ValueError):
            refusal: RdcError = refused(
                path,
                path,
                "look at it",
                expected="a path without NUL bytes",
                found="one",
                advice="correct it",
            )
        elif isinstance(error, FileNotFoundError):
            refusal = refused(
                path,
                path,
                "look at it",
                expected="a file or directory",
                found="nothing",
                advice="check the spelling and run again",
            )
        else:
            refusal = failure(error, path, path, "look at it")
        self._report(Problem(refusal.code, path, str(refusal)))

    def _single(self, path: bytes, found: os.stat_result) -> _SingleFile:
        """Open the directory of a file given by itself. Raises FileError and UsageError."""
        if not stat.S_ISREG(found.st_mode):
            raise refused(
                path,
                path,
                "look into it",
                expected="a file or directory",
                found="a special file",
                advice="leave it out",
            )
        if self._walk.claims is not None:
            self._walk.claims.check(found.st_dev, found.st_ino, path)
        directory, name = os.path.split(path)
        if os.path.islink(path):
            directory, name = os.path.split(os.path.realpath(path))
        root = self._parents.get(directory)
        if root is None:
            root = self._parents[directory] = self._walk.use.bind(Root.open(directory or b"."))
        shown = os.path.join(directory, b"") if directory else b""
        return _SingleFile(root, Directory(root, b"", shown), name, found)

    def _add_file(self, one: _SingleFile) -> None:
        key = one.key
        if key in self._listed:
            return
        self._listed.add(key)
        if self._choice is None or self._choice.has_file(one.parent.shown + one.name, one.found.st_size):
            self.entries += 1
            self.files.add(one.parent, FileRows.of_file(one.name, one.found))

    def _add_tree(self, path: bytes) -> None:
        root = self._walk.use.bind(Root.open(path))
        prefix = os.path.join(path, b"")
        for found in self._walk.below(root):
            below = found.path + b"/" if found.path else b""
            number = -1
            if self._directories is not None:
                number = self._directories.add(len(self.files.firsts) - 1, root, found)
            directory = Directory(root, below, prefix + below, number)
            listing = found.listing
            rows = (
                listing.rows_of(Kind.FILE)
                if self._choice is None
                else self._choice.rows(directory.shown, listing)
            )
            self.entries += listing.count
            if self._named:
                rows = self._unlisted(root, found, rows)
            self.files.add(directory, FileRows.of_listing(listing, found.inodes, rows))

    def _unlisted(self, root: Root, found: WalkedDirectory, rows: list[int]) -> list[int]:
        """Return the files in `rows` of a directory that were not listed as given. Note files given by
        themselves after it, which are listed here."""
        number = _number(os.fstat(root.directory(found.path).fd))
        named = self._named.get(number)
        if not named:
            return rows
        names = strings(found.listing.names)
        left = []
        for row in rows:
            if names[row] in named:
                key = number, names[row]
                if key in self._listed:
                    continue
                self._listed.add(key)
            left.append(row)
        return left


def _number(found: os.stat_result) -> int:
    """Return one number that identifies a file on this machine."""
    return found.st_dev << 64 | found.st_ino
