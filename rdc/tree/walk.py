"""Walks a confined tree, a directory at a time, in the order that both sides of a sync agree on."""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.relative_path import join
from rdc.files.depth.list_ahead import ListAhead
from rdc.lean.typed import NamedTuple
from rdc.model.entries import (
    EMPTY_LISTING,
    NO_INODES,
    BadEntry,
    Kind,
    Listed,
    PackedInodes,
    PackedListing,
    strings,
)
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.progress import Reporter
    from rdc.tree.filters import FilterList
    from rdc.tree.selection import Selection

__all__ = ["Walk", "WalkedDirectory", "lookalikes", "measuring_walk", "passed_over"]


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
        on_special: Callable[[bytes], None] | None = None,
        known: Callable[[bytes], PackedListing | None] | None = None,
        enter: Callable[[bytes], bool] | None = None,
        descend: Callable[[int, int], bool] | None = None,
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
        it stays in its parent's listing.
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
        self._descend = descend
        self._selection = selection
        self._lasting = lasting
        self._restricted = bool(filters) or (only, selection, lasting) != (None, None, None)
        self.read_errors = 0

    def __iter__(self) -> Iterator[WalkedDirectory]:
        # Whether a directory is read at all is decided when its turn comes.
        lister = ListAhead(
            self._root, ahead=self._enter is None and self._known is None and self._selection is None
        )
        try:
            yield from self._directories(lister)
        finally:
            lister.close()

    def _directories(self, lister: ListAhead) -> Iterator[WalkedDirectory]:
        # long because it runs once for each directory, where calls cost more than the work
        todo = [self._start]
        while todo:
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
