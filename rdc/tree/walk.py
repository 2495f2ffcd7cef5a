"""Walks a confined tree, a directory at a time, in the order that both sides of a sync agree on."""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.depth.list_ahead import ListAhead
from rdc.model.entries import EMPTY_LISTING, NO_INODES, Kind, strings
from rdc.progress import Problem
from rdc.records import dataclass
from rdc.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing, PackedInodes, PackedListing
    from rdc.progress import Reporter
    from rdc.tree.filters import FilterList
    from rdc.tree.selection import Selection

__all__ = ["ListedDirectory", "PackedDirectory", "PackedWalk", "Walk", "lookalikes", "passed_over"]


DIRECTORY, SPECIAL = int(Kind.DIRECTORY), int(Kind.SPECIAL)


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
    """Yields directories in pre-order: a directory, then its subdirectories by name. Links are never
    followed.

    An unreadable directory is reported, counted in `read_errors` and skipped; one that vanished is reported
    with exit code 24. An unreadable root raises FileError. Special files are reported once and stay in the
    listing, so that the other side does not take their counterparts for extraneous. Entries with a reserved
    name (rdc.files.base.temporary_names) are in no listing; those that no temporary could have are reported.

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
        known: Callable[[bytes], PackedListing | None] | None = None,
        enter: Callable[[bytes], bool] | None = None,
        on_inodes: Callable[[bytes, PackedInodes], None] | None = None,
        selection: Selection | None = None,
        lasting: Container[bytes] | None = None,
    ) -> None:
        """`only` restricts the walk to one entry of the root and everything below it, and `selection` to what
        it selects. `lasting`: the directories that take part; None for all.

        `start` is the directory to begin with; paths stay relative to the root. `on_temporaries` receives a
        directory and its reserved names, and then none is reported. `on_lookalike` receives the path of each
        reserved name that no temporary could have, instead of `reporter`. `known` may return a directory's
        filtered entries, and then the directory is not read. `enter` decides for each directory, including
        the first, whether it is read. `on_inodes` receives each directory that was read, with its inodes,
        before it is yielded.
        """
        self._root = root
        self._filters = filters
        self._report = reporter
        self._only = only
        self._start = start
        self._on_temporaries = on_temporaries
        self._on_lookalike = on_lookalike
        self._known = known
        self._enter = enter
        self._on_inodes = on_inodes
        self._selection = selection
        self._lasting = lasting
        self._restricted = bool(filters) or (only, selection, lasting) != (None, None, None)
        self.read_errors = 0

    def __iter__(self) -> Iterator[PackedDirectory]:
        # Whether a directory is read at all is decided when its turn comes.
        ahead = self._enter is None and self._known is None and self._selection is None
        lister = ListAhead(self._root, inodes=self._on_inodes is not None, ahead=ahead)
        try:
            yield from self._directories(lister)
        finally:
            lister.close()

    def _directories(self, lister: ListAhead) -> Iterator[PackedDirectory]:
        # long because it runs once for each directory, where calls cost more than the work
        todo = [self._start]
        while todo:
            path = todo.pop()
            known = self._known(path) if self._known is not None else None
            try:
                if self._enter is not None and not self._enter(path):
                    continue
                listing, inodes = self._list(path, lister, todo) if known is None else (known, None)
                if known is None and self._restricted:
                    rows = self._selected(path, listing)
                    if len(rows) < len(listing):
                        listing, inodes = listing.rows(rows), None if inodes is None else inodes.rows(rows)
            except FileError as error:
                if path == self._start:
                    raise
                self.read_errors += 1
                self._report(Problem(error.code, path, str(error)))
                continue
            if inodes is not None and self._on_inodes is not None:
                self._on_inodes(path, inodes)
            kinds = listing.kinds
            if DIRECTORY in kinds or SPECIAL in kinds:
                names = strings(listing.names)
                if SPECIAL in kinds:
                    for row in listing.rows_of(Kind.SPECIAL):
                        self._skip(join(path, names[row]))
                yield PackedDirectory(path, listing)
                todo += [join(path, names[row]) for row in reversed(listing.rows_of(Kind.DIRECTORY))]
            else:
                yield PackedDirectory(path, listing)

    def _list(
        self, path: bytes, lister: ListAhead, following: Sequence[bytes]
    ) -> tuple[PackedListing, PackedInodes | None]:
        if self._selection is not None and self._selection.is_closed(path):
            return EMPTY_LISTING.packed(), None if self._on_inodes is None else NO_INODES
        found = lister.take(path, following)
        if reserved := found.reserved:
            if self._on_temporaries is not None:
                self._on_temporaries(path, reserved)
            else:
                only = None if path else self._only
                for entry in lookalikes(path, reserved, self._filters, only, self._selection):
                    self._pass_over(entry)
        return found.listing, found.inodes

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
        text = f"{printable(path)}: skipped, neither file, directory nor symlink"
        self._report(Problem(ExitCode.OK, path, text))


class Walk:
    """A PackedWalk with unpacked listings: the same directories, order and reports."""

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
    from rdc.files.base.temporary_names import OWN_DIRECTORIES, PARTS_NAME, is_temporary

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
