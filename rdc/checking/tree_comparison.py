"""Compares the directories of two trees, and notes for each entry how it differs."""

from __future__ import annotations

from array import array

from rdc.checking.records import Aspect, CheckOptions
from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.paths import join
from rdc.files.facts.xattrs import read_directory_attributes, read_top_attributes
from rdc.model.entries import EMPTY_LISTING, Kind, Listing
from rdc.model.preserved import (
    ACCESS_ACL,
    DEFAULT_ACL,
    UNREADABLE,
    AttributeKinds,
    Preserved,
    pack_attributes,
    unpack_attributes,
)
from rdc.plan.compare import (
    Change,
    Decision,
    Difference,
    TimeLimits,
    compare,
    difference,
    time_limits,
    with_clamped_time,
    with_clamped_times,
)
from rdc.progress import Problem
from rdc.session.destination.directory_changes import AnnouncedDirectory
from rdc.session.trees.sites import check_included
from rdc.tree import filter_list
from rdc.tree.manifest import Manifest, RowMap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.files.root.root import Root
    from rdc.protocol.messages import Start
    from rdc.session.runtime.commands import EventRelay
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable


_UNKNOWN = 1 << 14
"""One end could not read the entry's directory, or does not enter it."""

_UNREAD = 1 << 15
"""The contents are not compared: they differ by size, or one end has no such file."""

_ASPECTS = _UNKNOWN - 1

_MISSING, _EXTRA, _KIND, _CONTENT = map(int, (Aspect.MISSING, Aspect.EXTRA, Aspect.KIND, Aspect.CONTENT))
_ABSENT = _MISSING | _EXTRA | _KIND | _UNKNOWN

_OF_METADATA = (
    (Difference.TIME, Aspect.TIME),
    (Difference.PERMISSIONS, Aspect.MODE),
    (Difference.OWNER, Aspect.OWNER),
    (Difference.GROUP, Aspect.GROUP),
)


class TreeComparison:
    """Takes one directory after another. Rows are those of the far manifest, `wanted`.

    The far tree is SRC or DST. `_only_far` and `_only_near` are the aspects of entries that only one has.
    """

    def __init__(
        self,
        root: Root,
        start: Start,
        wanted: Manifest,
        own: Manifest,
        options: CheckOptions,
        preserved: Preserved,
        *,
        far_is_source: bool,
        is_closed: Callable[[bytes, bool], bool],
    ) -> None:
        """`start`: as this side names the entry. `own`: this end's tree, complete. `is_closed`: whether an
        end could not or must not read a directory; told whether the far end listed entries of it."""
        self._root = root
        self._start = start
        self._wanted = wanted
        self._own = own
        self._options = options
        self._preserved = preserved
        self._filters = filter_list(options.session.rules)
        self._is_closed = is_closed
        self._only_far, self._only_near = (_MISSING, _EXTRA) if far_is_source else (_EXTRA, _MISSING)
        self._notes = array("H")
        """By row: aspects and marks. Rows behind its end have none."""
        self._expected = {b"": AnnouncedDirectory(start.metadata, False, False, False)}
        self.top = Aspect.NONE
        """The differences of the compared directory itself."""
        self._near_rows: list[int] = []
        """Rows of `own` that only this end has, but for those below `_near_directories`."""
        self._near_directories: set[bytes] = set()
        """Directories of this end that the far end lacks."""

    # The interface of comparisons by manifest and by listing

    def announced(self, path: bytes) -> AnnouncedDirectory | None:
        """Return the directory at `path`, if it was announced and not compared yet."""
        return self._expected.get(path)

    def expect(self, path: bytes, announced: AnnouncedDirectory) -> None:
        """Announce the directory at `path`."""
        self._expected[path] = announced

    def restore_permissions_later(self, path: bytes) -> None:
        """Do nothing: a check changes no permissions."""

    def note_difference(self) -> None:
        """Entries beyond a mount point do not count."""

    def mark_unchanged(self, path: bytes) -> bool:
        """Like `compare` for a directory with equal listings; False if `compare` has to follow."""
        directory = self._expected.get(path)
        if directory is not None and (directory.new or directory.lost):
            return False
        self._expected.pop(path, None)
        return True

    def compare(self, path: bytes, first: int, listing: Listing, existing: Listing | None) -> None:
        """Compare a directory. `first`: the row of its first entry. `existing`: this end's entries; None if
        they could not be read. Raises ProtocolError for an entry that the rules exclude."""
        announced = self._expected.pop(path)
        if self._filters:
            check_included(path, listing, self._filters)
        if not path and not self._start.only:
            self.compare_top()
        if existing is None or announced.lost or self._is_closed(path, bool(listing)):
            for row in range(len(listing)):
                self._note(first + row, _UNKNOWN | _UNREAD)
            self._announce(path, listing, new=set(), lost=True)
            return
        existing = self._preserved.listing(existing)
        listing = with_clamped_times(listing, existing, lambda: self._limits(path), self._preserved).wanted
        found = compare(listing, existing, preserved=self._preserved, checksum=False)
        new = {
            decision.row
            for decision in found.decisions
            if self._note_decision(path, first, listing, existing, decision)
        }
        for row in found.touched if self._options.times else ():
            self._note(first + row, int(Aspect.TIME))
        self._compare_specials(first, listing, existing)
        self._announce(path, listing, new=new, lost=False)
        if found.extra:
            self._note_near(path, existing, found.extra)

    def _announce(self, path: bytes, listing: Listing, *, new: set[int], lost: bool) -> None:
        for row in listing.rows_of(Kind.DIRECTORY):
            directory = AnnouncedDirectory(listing.metadata(row), row in new, False, lost)
            self._expected[join(path, listing.names[row])] = directory

    def _note_decision(
        self, path: bytes, first: int, listing: Listing, existing: Listing, decision: Decision
    ) -> bool:
        """Note how an entry differs. Returns whether this end has no entry of its kind."""
        row, kind = decision.row, listing.kinds[decision.row]
        if decision.change in (Change.CREATE, Change.REPLACE):
            replaced = decision.change is Change.REPLACE
            self._note(first + row, (_KIND if replaced else self._only_far) | _UNREAD)
            if replaced and existing.kinds[decision.existing_row] == Kind.DIRECTORY:
                self._near_directories.add(join(path, listing.names[row]))
            return True
        aspects = self._of_metadata(decision.difference)
        if kind == Kind.FILE and decision.difference & Difference.SIZE:
            aspects |= _CONTENT | _UNREAD
        elif kind == Kind.SYMLINK and decision.change is Change.CONTENT:
            aspects |= int(Aspect.SYMLINK)
        self._note(first + row, aspects)
        return False

    def _of_metadata(self, found: Difference) -> int:
        aspects = Aspect.NONE
        for one, aspect in _OF_METADATA:
            if found & one:
                aspects |= aspect
        if not self._options.times:
            aspects &= ~Aspect.TIME
        if not self._options.modes:
            aspects &= ~Aspect.MODE
        return int(aspects)

    def _compare_specials(self, first: int, listing: Listing, existing: Listing) -> None:
        """Compare special files, which sync ignores, by their kind."""
        rows = listing.rows_of(Kind.SPECIAL)
        if not rows:
            return
        kinds = dict(zip(existing.names, existing.kinds, strict=True))
        for row in rows:
            kind = kinds.get(listing.names[row])
            if kind != Kind.SPECIAL:
                self._note(first + row, self._only_far if kind is None else _KIND)

    def _note_near(self, path: bytes, existing: Listing, rows: tuple[int, ...]) -> None:
        number = self._own.number(path)
        first = 0 if number is None else self._own.firsts[number]
        for row in rows:
            self._near_rows.append(first + row)
            if existing.kinds[row] == Kind.DIRECTORY:
                self._near_directories.add(join(path, existing.names[row]))

    def _limits(self, path: bytes) -> TimeLimits:
        return time_limits(self._root.file_system_type(path))

    def compare_top(self) -> None:
        """Compare the metadata of the compared directory itself, which no listing names."""
        existing = self._preserved.metadata(self._root.metadata(b""))
        existing = with_clamped_time(
            existing, self._start.metadata, lambda: self._limits(b""), self._preserved
        )
        found = difference(Kind.DIRECTORY, self._start.metadata, existing, preserved=self._preserved)
        self.top |= Aspect(self._of_metadata(found))

    # After all directories were compared

    def finish(self) -> None:
        """End the comparison: announced directories without a listing are empty or unreadable there."""
        for path in list(self._expected):
            number = self._own.number(path)
            if number is not None or not path:
                existing = EMPTY_LISTING if number is None else self._own.listing(number)
                self.compare(path, len(self._wanted), EMPTY_LISTING, existing)
        self._expected.clear()
        for number, path in enumerate(self._own.directories):
            if path in self._near_directories:
                listing = self._own.listing(number)
                self._note_near(path, listing, tuple(range(len(listing))))

    def _note(self, row: int, bits: int) -> None:
        if not bits:
            return
        if row >= len(self._notes):
            self._notes.frombytes(bytes(2 * (row + 1 - len(self._notes))))
        self._notes[row] |= bits

    def add(self, row: int, aspect: Aspect) -> None:
        """Note a further difference of an entry that both ends have."""
        self._note(row, int(aspect))

    def aspects(self, row: int) -> Aspect:
        """Return how an entry of the far tree differs."""
        return Aspect(self._bits(row) & _ASPECTS)

    def is_common(self, row: int) -> bool:
        """Return whether both ends have the entry, of one kind."""
        return not self._bits(row) & _ABSENT

    def has_content(self, row: int) -> bool:
        """Return whether the entry is a file whose content is to be compared."""
        return self._wanted.kinds[row] == Kind.FILE and not self._bits(row) & _UNREAD

    def _bits(self, row: int) -> int:
        return self._notes[row] if row < len(self._notes) else 0

    def noted(self) -> Iterator[tuple[int, Aspect]]:
        """Yield all rows of the far tree with differences so far."""
        for row, bits in enumerate(self._notes):
            if bits & _ASPECTS:
                yield row, Aspect(bits & _ASPECTS)

    @property
    def near_rows(self) -> list[int]:
        """Rows of `own` that only this end has, in order."""
        return sorted(self._near_rows)

    @property
    def only_near(self) -> Aspect:
        return Aspect(self._only_near)


def compare_links(
    tree: TreeComparison, wanted: Manifest, links: LinkTable, own: Manifest, own_links: LinkTable
) -> None:
    """Note files that share an inode with other files at one end than at the other.

    Only files that both ends have count, so a missing name makes no difference of its other names.
    """
    rows = RowMap(own, wanted)
    there = _groups(links, lambda row: row if row < len(wanted) and tree.is_common(row) else None)
    here = _groups(own_links, lambda row: _common(tree, rows.row(row)))
    for row in sorted(there.keys() | here.keys()):
        if there.get(row) != here.get(row):
            tree.add(row, Aspect.LINKS)


def _common(tree: TreeComparison, row: int | None) -> int | None:
    return row if row is not None and tree.is_common(row) else None


def _groups(links: LinkTable, mapped: Callable[[int], int | None]) -> dict[int, frozenset[int]]:
    """Return, by row, all rows that name the same file. Rows whose file has only one name are left out."""
    names: dict[int, list[int]] = {}
    for file, first in links:
        names.setdefault(first, [first]).append(file)
    found: dict[int, frozenset[int]] = {}
    for rows in names.values():
        group = frozenset(row for row in map(mapped, rows) if row is not None)
        if len(group) > 1:
            found.update(dict.fromkeys(group, group))
    return found


def compare_attributes(
    tree: TreeComparison, root: Root, wanted: Manifest, xattrs: WantedXattrs, events: EventRelay, *, top: bool
) -> None:
    """Note entries whose extended attributes differ. `top`: those of the compared directory count."""
    for number, path in enumerate(wanted.directories):
        first, listing = wanted.firsts[number], wanted.listing(number)
        sets = xattrs.of(first, len(listing))
        rows = [
            row
            for row, kind in enumerate(listing.kinds)
            if kind < Kind.SPECIAL and sets.get(row) != UNREADABLE and tree.is_common(first + row)
        ]
        here = _own_sets(root, path, listing, xattrs.kinds, events) if rows else None
        if here is None:
            continue
        for row in rows:
            if here.get(row) != UNREADABLE:
                tree.add(first + row, _differing(sets.get(row, b""), here.get(row, b"")))
    wanted_top = xattrs.of_root()
    if top and wanted_top != UNREADABLE:
        try:
            own_top = pack_attributes(read_top_attributes(root, xattrs.kinds))
        except OSError as error:
            _report(events, b"", error)
            return
        tree.top |= _differing(wanted_top, own_top)


def _own_sets(
    root: Root, path: bytes, listing: Listing, kinds: AttributeKinds, events: EventRelay
) -> dict[int, bytes] | None:
    """Return the packed attributes of a directory's entries by row; None if the directory cannot be read."""
    found: dict[int, bytes] = {}
    names = b"".join([name + b"\0" for name in listing.names])
    try:
        for row, name, attributes in read_directory_attributes(root, path, names, kinds):
            if isinstance(attributes, OSError):
                _report(events, join(path, name), attributes)
                found[row] = UNREADABLE
            else:
                found[row] = pack_attributes(attributes)
    except FileError as error:
        events.report(Problem(ExitCode.PARTIAL, path, str(error)))
        return None
    return found


def _report(events: EventRelay, path: bytes, error: OSError) -> None:
    why = error.strerror or type(error).__name__
    shown = printable(path or b".")
    text = f"{shown}: cannot read its extended attributes: {why}"
    events.report(Problem(ExitCode.PARTIAL, path, text))


def _differing(there: bytes, here: bytes) -> Aspect:
    if there == here:
        return Aspect.NONE
    before, after = dict(unpack_attributes(there)), dict(unpack_attributes(here))
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    lists = {ACCESS_ACL, DEFAULT_ACL}
    return (Aspect.ACLS if names & lists else Aspect.NONE) | (Aspect.XATTRS if names - lists else Aspect.NONE)
