"""Walks a confined tree, a directory at a time, in the order both sides of a sync agree on."""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import ExitCode, FileError, printable
from rdc.model.entries import Kind, strings
from rdc.progress import Problem
from rdc.records import dataclass
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.files.confined import Root
    from rdc.model.entries import Listing, PackedInodes, PackedListing
    from rdc.progress import Reporter
    from rdc.tree.filters import FilterList

__all__ = ["ListedDirectory", "PackedDirectory", "PackedWalk", "Walk", "join"]


DIRECTORY, SPECIAL = int(Kind.DIRECTORY), int(Kind.SPECIAL)


def join(directory: bytes, name: bytes) -> bytes:
    """Relative path of `name` in `directory`; b'' is the root."""
    return directory + b"/" + name if directory else name


class PackedDirectory(NamedTuple):
    """One directory of a packed walk: its relative path and the entries that the filters leave."""

    path: bytes
    listing: PackedListing


@dataclass(frozen=True, slots=True)
class ListedDirectory:
    """One directory of a walk: its relative path and the entries that the filters leave."""

    path: bytes
    listing: Listing


class PackedWalk:
    """Pre-order: a directory's listing, then those of its subdirectories by name. Never follows links.

    An unreadable directory is reported, counted in `read_errors` and passed over; a directory that vanished
    in between is reported with exit code 24. An unreadable root is raised. Special files are named once and
    left in the listing, so that the other side does not take their counterparts for extra. `only` leaves one
    entry of the root, with what is below it.

    Without rules, no step of Python is taken for an entry that is neither a directory nor special. Links are
    not followed and a directory has one parent, so that no cycle can be walked.
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
        known: Callable[[bytes], PackedListing | None] | None = None,
        enter: Callable[[bytes], bool] | None = None,
        on_inodes: Callable[[bytes, PackedInodes], None] | None = None,
    ) -> None:
        """`start`: the directory to begin with; paths are of the root all the same. `on_temporaries` takes a
        directory and the names of temporaries in it. `known` may give a directory's entries (after filters)
        without a look at the directory. `enter` is asked of each directory before it is read, the first too,
        whether to go into it. `on_inodes` takes each directory that was looked at, and which files its
        entries are, before it comes."""
        self._root = root
        self._filters = filters
        self._report = reporter
        self._only = only
        self._start = start
        self._on_temporaries = on_temporaries
        self._known = known
        self._enter = enter
        self._on_inodes = on_inodes
        self.read_errors = 0

    def __iter__(self) -> Iterator[PackedDirectory]:
        todo = [self._start]
        while todo:
            path = todo.pop()
            known = self._known(path) if self._known is not None else None
            try:
                if self._enter is not None and not self._enter(path):
                    continue
                listing, inodes = self._list(path) if known is None else (known, None)
            except FileError as error:
                if path == self._start:
                    raise
                self.read_errors += 1
                self._report(Problem(error.code, path, str(error)))
                continue
            if known is None:
                if self._filters or self._only is not None:
                    rows = self._selected(path, listing)
                    if len(rows) < len(listing):
                        listing, inodes = listing.rows(rows), None if inodes is None else inodes.rows(rows)
                if inodes is not None and self._on_inodes is not None:
                    self._on_inodes(path, inodes)
            kinds = listing.kinds
            if DIRECTORY in kinds or SPECIAL in kinds:
                directories, specials = listing.rows_of(Kind.DIRECTORY), listing.rows_of(Kind.SPECIAL)
                names = strings(listing.names)
                for row in specials:
                    self._skip(join(path, names[row]))
                yield PackedDirectory(path, listing)
                todo += [join(path, names[row]) for row in reversed(directories)]
            else:
                yield PackedDirectory(path, listing)

    def _list(self, path: bytes) -> tuple[PackedListing, PackedInodes | None]:
        if self._on_temporaries is None:
            return self._read(path, None)
        stale: list[bytes] = []
        found = self._read(path, stale.append)
        if stale:
            self._on_temporaries(path, stale)
        return found

    def _read(
        self, path: bytes, on_temporary: Callable[[bytes], None] | None
    ) -> tuple[PackedListing, PackedInodes | None]:
        if self._on_inodes is not None:
            return self._root.list_inodes(path, on_temporary=on_temporary)
        return self._root.list_packed(path, on_temporary=on_temporary), None

    def _selected(self, path: bytes, listing: PackedListing) -> Sequence[int]:
        """The rows that `only` and the filters leave."""
        rows: Sequence[int] = range(len(listing))
        if path == b"" and self._only is not None:
            rows = _single(listing, self._only)
        if not self._filters:
            return rows
        excluded, names, kinds = self._filters.excluded, strings(listing.names), listing.kinds
        return [row for row in rows if not excluded(join(path, names[row]), kinds[row] == Kind.DIRECTORY)]

    def _skip(self, path: bytes) -> None:
        text = f"{printable(path)}: skipped, neither file, directory nor symlink"
        self._report(Problem(ExitCode.OK, path, text))


class Walk:
    """A PackedWalk with its listings unpacked: the same directories in the same order, the same reports."""

    def __init__(
        self, root: Root, filters: FilterList, reporter: Reporter, only: bytes | None = None
    ) -> None:
        self._packed = PackedWalk(root, filters, reporter, only)

    @property
    def read_errors(self) -> int:
        """Directories that could not be read so far."""
        return self._packed.read_errors

    def __iter__(self) -> Iterator[ListedDirectory]:
        for path, listing in self._packed:
            yield ListedDirectory(path, listing.unpacked())


def _single(listing: PackedListing, name: bytes) -> list[int]:
    names = strings(listing.names)
    row = bisect_left(names, name)
    return [row] if names[row : row + 1] == [name] else []
