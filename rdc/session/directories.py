"""What is done to directories, one by one as the comparison reaches them, and to all of them at the end.

Order: directories and links at once; file contents are handed to the transfers; then, once everything was
compared and nothing is outstanding, deletions, entries that had a directory in their way, and the metadata of
every directory that was touched, deepest first.
"""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import ExitCode, FileError, printable
from rdc.model.entries import Kind, Listing, Metadata
from rdc.plan.compare import Change, Comparison, Decision, Difference, compare, difference
from rdc.plan.itemize import itemize
from rdc.plan.rotation import rotated
from rdc.progress import ItemChanged, Problem
from rdc.records import dataclass, replace
from rdc.session.announcement import check_included
from rdc.session.rights import lend_rights
from rdc.tree.filters import FilterList
from rdc.tree.walk import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence, Set

    from rdc.files.confined import Root
    from rdc.model.entries import Identity
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.extras import Extras
    from rdc.session.landing import Landing
    from rdc.session.left_alone import LeftAlone
    from rdc.session.news import News
    from rdc.session.transfer import Transfers
    from rdc.session.wanted_attributes import WantedAttributes
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Manifest

__all__ = ["Announced", "Directories", "writing_code"]

MTIME_MAX = (1 << 63) - 1
"""Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Announced:
    """A directory that its parent's entries announced."""

    metadata: Metadata
    new: bool
    """Made in this run (or would be): nothing is in it."""
    touched: bool
    """Its own metadata has to be set at the end in any case."""
    lost: bool
    """It could not be made or read, or is not to be made: what is below it is not synced."""


class Directories:
    """Turns compared directories into actions; remembers what is left for the end."""

    def __init__(
        self,
        root: Root,
        start: Start,
        options: SyncOptions,
        manifest: Manifest,
        landing: Landing,
        transfers: Transfers,
        extras: Extras,
        news: News,
        *,
        kept: Kept,
        new: bool,
        links: LinkTable | None = None,
        attributes: WantedAttributes | None = None,
        left: LeftAlone | None = None,
    ) -> None:
        """`extras`: takes what the source does not have. `links`: files that get their content as further
        names of others, so that nothing is to be done for them here; it grows as directories come.
        `attributes`: is told which entries differ in anything else. `left`: takes what the options leave
        alone."""
        self._left = left
        self._attributes = attributes
        self._links = links
        self._late: set[bytes] = set()
        """Directories in which something is done after all were compared."""
        self._root = root
        self._start = start
        self._options = options
        self._rules = FilterList(options.rules)
        self._manifest = manifest
        self._landing = landing
        self._transfers = transfers
        self._extras = extras
        self._news = news
        self._kept = kept
        self.expected = {b"": Announced(start.metadata, new, False, False)}
        """Directories whose entries have not been compared yet."""
        self.changed: set[bytes] = set()
        """Directories in which something was to be done: those to be looked at again."""
        self._touched: list[tuple[bytes, Metadata]] = []
        self._blocked: list[tuple[int, Decision]] = []

    def compare(
        self,
        path: bytes,
        first: int,
        listing: Listing,
        held: Listing | None,
        doubtful: Collection[int] = frozenset(),
    ) -> None:
        """Brings directory `path` from `held` to `listing`, whose rows are entries `first` and on.

        `held` None: it could not be read; it and all below are left alone. `doubtful`: rows whose content is
        compared in any case. ProtocolError for an entry that the rules leave out.
        """
        directory = self.expected.pop(path)
        if self._rules:
            check_included(path, self._as_told(path, listing), self._rules)
        if not path and not self._start.only:
            directory = self._top(directory)
        if directory.lost or held is None:
            if directory.touched and not directory.lost:
                self._touched.append((path, directory.metadata))
            self._announce_lost(path, listing, new=directory.new)
            if self._left is not None:
                # Nothing is made in it, and what cannot be read may be newer.
                self._left.add(range(first, first + len(listing)))
            return
        comparison = compare(
            listing, held, kept=self._kept, checksum=self._options.checksum, doubtful=doubtful
        )
        without: Set[int] = frozenset()
        if self._options.narrows:
            from rdc.plan.narrowing import narrow

            narrowed = narrow(comparison, listing, held, options=self._options, kept=self._kept)
            comparison, without = narrowed.comparison, narrowed.without
            self._extras.stay = self._extras.stay or narrowed.skipped
            if self._left is not None:
                self._left.add(first + row for row in narrowed.left)
        if self._links is not None:
            comparison = self._without_links(comparison, first, listing, self._links)
        changing = comparison or (self._options.delete and comparison.extra)
        lent = bool(changing) and not self._options.dry_run and lend_rights(self._root, path)
        touched = directory.touched or lent
        if self._attributes is not None:
            self._attributes.note_told([first + row for row in comparison.touched])
            for one in comparison.decisions:
                new = one.change in (Change.CREATE, Change.REPLACE)
                if one.change is not Change.CHECK or one.difference:
                    self._attributes.note_told((first + one.row,), new=new)
        decisions = {decision.row: decision for decision in comparison.decisions}
        singly = self._options.dry_run and not self._options.checksum
        if singly:
            # Told at once, and so in the order of their names.
            time = Difference.TIME
            decisions.update({row: Decision(Change.CONTENT, row, -1, time) for row in comparison.touched})
        links = listing.links() if decisions else {}
        moved = {} if self._options.dry_run else rotated(listing, held, comparison, self._kept)
        # Most entries of most directories need nothing: no step for those.
        for row in sorted(decisions.keys() | set(listing.rows_of(Kind.DIRECTORY))):
            entry, decision = join(path, listing.names[row]), decisions.get(row)
            if row in without:
                self.expected[entry] = Announced(listing.metadata(row), True, False, True)
            elif listing.kinds[row] == Kind.DIRECTORY:
                touched = self._directory(first + row, entry, listing.metadata(row), decision) or touched
            elif decision is not None:
                bases = tuple(join(path, name) for name in moved.get(row, ()))
                touched = self._entry(first + row, entry, listing, held, links, decision, bases) or touched
        self._many(first, listing, () if singly else comparison.touched, comparison.checked)
        touched = touched or bool(comparison.touched or comparison.checked)
        if comparison.extra and not (path == b"" and self._start.only):
            self._extras.add(path, held, comparison.extra)
            touched = touched or self._options.delete
        if touched or comparison:
            self.changed.add(path)
        if touched:
            self._touched.append((path, directory.metadata))

    def _as_told(self, path: bytes, listing: Listing) -> Listing:
        """A single file may have another name here; the rules are about the source's."""
        only = self._start.only
        return listing.named((only,)) if only and not path and len(listing) == 1 else listing

    def lent(self, path: bytes) -> None:
        """An expected directory was opened to its owner: its metadata are set again at the end."""
        self.expected[path] = replace(self.expected[path], touched=True)

    def keep(self, path: bytes) -> bool:
        """As `compare` where `held` equals `listing`, unless `path` is new or lost. What is below is not
        announced: nothing is wrong with it, as far as this directory goes."""
        directory = self.expected.get(path)
        if directory is None:
            return True
        if directory.new or directory.lost:
            return False
        del self.expected[path]
        if directory.touched:
            self.changed.add(path)
            self._touched.append((path, directory.metadata))
        return True

    def _without_links(
        self, comparison: Comparison, first: int, listing: Listing, links: LinkTable
    ) -> Comparison:
        left = self._left
        rows = {
            links.files[at] - first
            for at in links.between(first, first + len(listing))
            if left is None or left.is_linked(links.files[at], links.firsts[at])
        }
        if not rows:
            return comparison
        return Comparison(
            tuple(decision for decision in comparison.decisions if decision.row not in rows),
            comparison.extra,
            tuple(row for row in comparison.touched if row not in rows),
            tuple(row for row in comparison.checked if row not in rows),
        )

    def touch(self, path: bytes) -> None:
        """Something is going to be done in this directory, of which all others are compared by now: its
        metadata are set again at the end."""
        if path in self._late or (not path and self._start.only):
            return
        self._late.add(path)
        row = self._manifest.row(path) if path else None
        lend_rights(self._root, path)
        metadata = self._start.metadata if row is None else self._manifest.entry(row).metadata
        self._touched.append((path, metadata))

    @property
    def worked_in(self) -> Set[bytes]:
        """Directories in which anything was done."""
        return self.changed | self._late

    def _top(self, top: Announced) -> Announced:
        """The synced directory itself, which no listing names: rsync's './'."""
        if top.new:
            decision = Decision(Change.CREATE, -1, -1, Difference.NONE)
        else:
            held = self._root.metadata(b"")
            differing = difference(Kind.DIRECTORY, top.metadata, held, kept=self._kept)
            if not differing:
                return top
            decision = Decision(Change.METADATA, -1, -1, differing)
        code = itemize(Kind.DIRECTORY, decision, transferred=top.new, new=top.new)
        self._landing.report(ItemChanged(code, b"./"))
        if self._attributes is not None:
            self._attributes.root_told = True
        metadata = self._guarded(-1, top.metadata) if top.new else top.metadata
        return replace(top, metadata=metadata, touched=True)

    def _guarded(self, row: int, metadata: Metadata) -> Metadata:
        """What a new directory has until it gets its ACL."""
        if self._attributes is None:
            return metadata
        return replace(metadata, mode=self._attributes.guarded_mode(row, metadata.mode))

    def _announce_lost(self, path: bytes, listing: Listing, *, new: bool) -> None:
        for row in listing.rows_of(Kind.DIRECTORY):
            below = join(path, listing.names[row])
            self.expected[below] = Announced(listing.metadata(row), new, False, True)

    def _directory(self, row: int, path: bytes, metadata: Metadata, decision: Decision | None) -> bool:
        """Makes or keeps a subdirectory; True when that touches its parent."""
        new = decision is not None and decision.change in (Change.CREATE, Change.REPLACE)
        lost = False
        if new and not self._options.dry_run:
            try:
                # Not as it will be: until its contents are there only its owner may use it.
                if decision is not None and decision.change is Change.REPLACE:
                    self._root.replace_with_directory(path, 0o700)
                else:
                    self._root.make_directory(path, 0o700)
            except FileError as error:
                self._news.report(Problem(writing_code(error), path, str(error)))
                lost = True
        if new:
            metadata = self._guarded(row, metadata)
        self.expected[path] = Announced(metadata, new, decision is not None, lost)
        if decision is not None and not lost:
            code = itemize(Kind.DIRECTORY, decision, transferred=new, new=new)
            self._landing.report(ItemChanged(code, path + b"/"))
        return new

    def _entry(
        self,
        file: int,
        path: bytes,
        listing: Listing,
        held: Listing,
        links: Mapping[int, bytes],
        decision: Decision,
        bases: tuple[bytes, ...],
    ) -> bool:
        """Starts what a file or symlink needs; True when that touches its directory. `bases`: files here that
        may have its content, beside the one of its name."""
        kind = listing.kinds[decision.row]
        if decision.change is Change.REPLACE and self._is_directory(path):
            self._blocked.append((file, decision))
            return True
        if kind == Kind.SYMLINK:
            return self._symlink(path, links[decision.row], listing.metadata(decision.row), decision)
        if decision.change is Change.METADATA:
            self._landing.settle(path, listing.metadata(decision.row), decision, _as_listed(held, path))
            return False
        self._landing.decide(file, decision)
        if decision.change is Change.CHECK:
            self._transfers.check((file,))
        elif decision.change is not Change.CONTENT:
            self._transfers.create(file, path, listing.sizes[decision.row], bases)
        elif self._options.dry_run:
            self._landing.rehearse(file)
        else:
            size = listing.sizes[decision.row]
            if Difference.SIZE in decision.difference:
                self._transfers.update(file, size, bases)
            else:
                self._transfers.touch((file,), size)
        return True

    def _many(
        self, first: int, listing: Listing, touched_rows: Sequence[int], checked_rows: Sequence[int]
    ) -> None:
        """Starts what the files need that a comparison does not name one by one."""
        touched, checked = ([first + row for row in rows] for rows in (touched_rows, checked_rows))
        if self._options.checksum:
            self._landing.decide_many(touched, Change.CHECK, Difference.TIME)
            self._transfers.check(touched)
        elif touched:
            self._landing.decide_many(touched, Change.CONTENT, Difference.TIME)
            self._transfers.touch(touched, sum([listing.sizes[row] for row in touched_rows]))
        self._landing.decide_many(checked, Change.CHECK, Difference.NONE)
        self._transfers.check(checked)

    def _symlink(self, path: bytes, target: bytes, metadata: Metadata, decision: Decision) -> bool:
        moved = decision.change is not Change.METADATA
        if not self._options.dry_run:
            try:
                if moved:
                    new = decision.change is Change.CREATE
                    self._root.replace_symlink(path, target, metadata, owner=self._kept.owner, new=new)
                else:
                    self._root.set_metadata(path, Kind.SYMLINK, metadata, owner=self._kept.owner)
            except FileError as error:
                self._news.report(Problem(writing_code(error), path, str(error)))
                return moved
        new = decision.change in (Change.CREATE, Change.REPLACE)
        if moved and not new:
            decision = Decision(
                decision.change, decision.row, decision.held_row, decision.difference | Difference.CHECKSUM
            )
        code = itemize(Kind.SYMLINK, decision, transferred=moved, new=new)
        self._landing.report(ItemChanged(code, path, target))
        return moved

    def _is_directory(self, path: bytes) -> bool:
        return self._root.kind(path) is Kind.DIRECTORY

    # The end

    def give_up(self) -> None:
        """What is still expected was announced and never compared: the source has nothing in it, or could not
        read it. Their own metadata are set all the same.
        """
        for path, directory in self.expected.items():
            if directory.touched and not directory.lost:
                self.changed.add(path)
                self._touched.append((path, directory.metadata))
        self.expected = {}

    def unblock(self, read_errors: int) -> None:
        """Entries that had a directory in their way: it goes only now, and unless it is empty only with
        --delete."""
        for file, decision in self._blocked:
            entry = self._manifest.entry(file)
            path = entry.path
            kept = self._extras.make_way(path, read_errors)
            if kept is not None:
                text = f"{printable(path)}: a directory is in the way, {kept}"
                self._news.report(Problem(ExitCode.PARTIAL, path, text))
                continue
            if entry.kind == Kind.SYMLINK:
                self._symlink(path, entry.target, entry.metadata, decision)
                continue
            self._landing.decide(file, decision)
            self._transfers.create(file, path, entry.size)

    def finish(self) -> None:
        """Their own metadata last, children before parents: whatever was done inside changed their mtimes."""
        if self._options.dry_run:
            return
        for path, metadata in reversed(self._touched):
            if path == b"" and self._start.only:
                continue  # the root is not what was synced, but where it was put
            try:
                self._root.set_metadata(path, Kind.DIRECTORY, metadata, owner=self._kept.owner)
            except FileError as error:
                self._news.report(Problem(writing_code(error), path, str(error)))


def _as_listed(held: Listing, path: bytes) -> Callable[[Identity], bool]:
    """Whether the file at `path` has the size and mtime that were compared, by which its content is right."""
    row = bisect_left(held.names, path.rpartition(b"/")[2])
    listed = held.sizes[row], held.mtimes[row]
    # Listings have no times beyond the year 2262 (rdc.files.listing).
    return lambda now: (now.size, min(now.mtime_ns, MTIME_MAX)) == listed


def writing_code(error: FileError) -> ExitCode:
    """What vanishes at the destination is a failure to write; 24 speaks of the source."""
    return ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code
