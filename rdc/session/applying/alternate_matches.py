"""Looks for the entries of a directory in the alternate directories (--link-dest and its like)."""

from __future__ import annotations

from rdc.errors import FileError
from rdc.files.base.relative_path import join
from rdc.lean.records import dataclass
from rdc.model.entries import Kind, Listing, Metadata
from rdc.model.options import AlternateUse
from rdc.model.preserved import real_time
from rdc.plan.compare import Change
from rdc.plan.equal_times import with_equal_times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from rdc.plan.alternates import AlternateMatch
    from rdc.plan.compare import Comparison, Difference
    from rdc.session.applying.allowed_changes import ComparedDirectory
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.trees.alternate_directories import AlternateDirectories

__all__ = ["AlternateEntry", "AlternateMatches", "find_alternates"]


@dataclass(frozen=True, slots=True)
class AlternateEntry:
    """A file, symlink or special file of the source, and what an alternate directory has at its path."""

    file: int
    """Its row in the source's manifest."""
    path: bytes
    kind: int
    size: int
    """A device's is its number."""
    metadata: Metadata
    """As the source announced it."""
    target: bytes
    """Of a symlink."""
    match: AlternateMatch
    listed: Metadata
    """Of the entry in the alternate directory, when that was listed."""
    listed_size: int


@dataclass(frozen=True, slots=True)
class AlternateMatches:
    """What alternate directories have of one directory, by the row of the source's entry."""

    entries: Mapping[int, AlternateEntry]
    """All but directories. They are made from what was found."""
    directories: Mapping[int, AlternateMatch]
    """New directories, which are made as usual."""

    def difference(self, row: int) -> Difference | None:
        """How a new directory differs from the one that was found; None if none was found."""
        match = self.directories.get(row)
        return None if match is None else match.difference


def find_alternates(
    context: ApplyingContext,
    alternates: AlternateDirectories,
    directory: ComparedDirectory,
    comparison: Comparison,
) -> AlternateMatches:
    """Returns what the alternate directories have of the new entries, and of those that they replace."""
    listings = alternates.listings(context.at.root, directory.path)
    if not any(listings):
        return AlternateMatches({}, {})
    look = _Look(context, alternates, directory, listings)
    found: dict[int, AlternateMatch] = {}
    directories: dict[int, AlternateMatch] = {}
    fresh = {one.row for one in comparison.decisions if one.change in (Change.CREATE, Change.REPLACE)}
    for row in fresh - _replacing_others(directory, comparison):
        match = look.match(row)
        if match is not None and directory.listing.kinds[row] == Kind.DIRECTORY:
            directories[row] = match
        elif match is not None and not look.is_blocked(row):
            found[row] = match
    if context.at.options.alternates is not None and context.at.options.alternates.changes_existing:
        found.update(look.existing(fresh))
    return AlternateMatches({row: look.entry(row, match) for row, match in found.items()}, directories)


def _replacing_others(directory: ComparedDirectory, comparison: Comparison) -> Set[int]:
    """Symlinks and special files that replace another entry. As in rsync, only new ones are looked for
    elsewhere."""
    kinds = directory.listing.kinds
    return {
        one.row
        for one in comparison.decisions
        if one.change is Change.REPLACE and kinds[one.row] >= Kind.SYMLINK
    }


class _Look:
    """The look at one directory."""

    def __init__(
        self,
        context: ApplyingContext,
        alternates: AlternateDirectories,
        directory: ComparedDirectory,
        listings: Sequence[Listing],
    ) -> None:
        self._context = context
        self._alternates = alternates
        self._directory = directory
        self._listings = listings
        self._wanted = directory.listing
        self._compared = [with_equal_times(one, directory.listing, context.at.options) for one in listings]
        """The listings, with the times that --modify-window takes for those of the source."""
        xattrs = context.xattrs
        self._sets = {} if xattrs is None else xattrs.of(directory.first, len(directory.listing))

    def match(self, row: int) -> AlternateMatch | None:
        from rdc.plan.alternates import best_match

        return best_match(
            self._wanted,
            row,
            self._compared,
            preserved=self._context.at.preserved,
            options=self._context.at.options,
            same_attributes=self._same_attributes(row),
        )

    def _same_attributes(self, row: int) -> Callable[[int], bool] | None:
        """Tells whether the entry in an alternate directory has the extended attributes of this row."""
        xattrs = self._context.xattrs
        if xattrs is None or self._wanted.kinds[row] == Kind.DIRECTORY:
            return None
        from rdc.files.facts.directory_xattrs import read_entry_attributes
        from rdc.model.preserved import UNREADABLE, AttributeKinds, pack_attributes, unpack_attributes

        # A file in an alternate directory is read now and then, and a link to it is worth more than its time.
        kinds = xattrs.kinds & ~AttributeKinds.ACCESS_TIME
        path, wanted = self._path(row), self._sets.get(row, b"")
        if kinds != xattrs.kinds and wanted != UNREADABLE:
            wanted = pack_attributes(kinds.chosen(unpack_attributes(wanted)))

        def same(number: int) -> bool:
            try:
                there, name = self._alternates.roots[number].locate(path)
                found = read_entry_attributes(there.fd, name, kinds)
            except (FileError, OSError):
                return False
            return (pack_attributes(found) if found else b"") == wanted

        return same

    def is_blocked(self, row: int) -> bool:
        """Whether a directory has to make way first: then the file comes as if it had no alternate."""
        try:
            return self._context.at.root.kind(self._path(row)) is Kind.DIRECTORY
        except FileError:
            return False  # in a dry run, a file may be where a directory above would be made

    def existing(self, fresh: Set[int]) -> Iterator[tuple[int, AlternateMatch]]:
        """Yields the files that the destination has and that an alternate directory has as the source has
        them. A name that becomes a link to another file is left out."""
        context, here = self._context, self._directory.existing
        if context.at.options.ignore_existing or context.at.options.rereads or context.at.root.append_only:
            return
        rows_here = {name: at for at, name in enumerate(here.names)}
        linked = self._linked()
        for row in self._wanted.rows_of(Kind.FILE):
            at = rows_here.get(self._wanted.names[row])
            if row in fresh or row in linked or at is None or self._is_left(row, at):
                continue
            match = self.match(row)
            if match is not None and match.stands_for_all and not self._is_same_file(row, match):
                yield row, match

    def _is_left(self, row: int, at: int) -> bool:
        """Whether an option leaves the destination's file in row `at` alone, or it is no file."""
        options, here = self._context.at.options, self._directory.existing
        return (
            here.kinds[at] != Kind.FILE
            or options.is_left_for_size(self._wanted.sizes[row])
            or (options.update and real_time(here.mtimes[at]) > real_time(self._wanted.mtimes[row]))
        )

    def _linked(self) -> Set[int]:
        links, first = self._context.links, self._directory.first
        if links is None:
            return frozenset()
        return {links.files[at] - first for at in links.between(first, first + len(self._wanted))}

    def _is_same_file(self, row: int, match: AlternateMatch) -> bool:
        path = self._path(row)
        try:
            here = self._context.at.root.identity(path)
            there = self._alternates.roots[match.number].identity(path)
        except FileError:
            return True  # one of them vanished: nothing is to be done here
        linked = (here.device, here.inode) == (there.device, there.inode)
        return linked and self._alternates.use is AlternateUse.LINK

    def entry(self, row: int, match: AlternateMatch) -> AlternateEntry:
        wanted, there = self._wanted, self._listings[match.number]
        kind = wanted.kinds[row]
        return AlternateEntry(
            self._directory.first + row,
            self._path(row),
            kind,
            wanted.sizes[row],
            wanted.metadata(row),
            wanted.target(row) if kind == Kind.SYMLINK else b"",
            match,
            there.metadata(match.row),
            there.sizes[match.row],
        )

    def _path(self, row: int) -> bytes:
        return join(self._directory.path, self._wanted.names[row])
