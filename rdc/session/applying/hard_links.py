"""Makes the hard links of a tree (--hard-links) after all other changes.

The run updates a file's first name, in walk order, like any file. It leaves the further names alone until
everything else is in place and then links them to the first. So contents travel once, and a name keeps its
old content until it becomes the new file.
"""

from __future__ import annotations

import os
from itertools import islice

from rdc.errors import FileError
from rdc.files.names.entry_names import Linked, link_file, make_durable
from rdc.files.root.listing_view import is_node
from rdc.model.entries import NODES, Kind
from rdc.plan.compare import Change, Decision, Difference, difference
from rdc.plan.itemize import itemize, linking_code
from rdc.progress import ItemChanged, Problem
from rdc.session.applying.existing_links import ExistingLinks
from rdc.session.applying.transfers import WHOLE_BYTES
from rdc.session.applying.writing_code import writing_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity
    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.applying.late_directories import LateDirectories
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Entry, Manifest

__all__ = ["HardLinks", "names_here"]

NAMES_LOOKED_AT = 16
"""Further names of a new file that are searched for its content. Each costs two system calls."""


class HardLinks:
    """Makes the missing hard links of a table. One run makes one pass."""

    def __init__(self, context: ApplyingContext, directories: LateDirectories) -> None:
        options = context.at.options
        self._by_size = options.size_only and not options.checksum
        """Equal sizes mean equal contents, whatever the mtimes (--size-only)."""
        self._root = context.at.root
        self._entries = context.at.manifest
        self._landing = context.at.landing
        self._transfers = context.transfers
        self._directories = directories
        self._blocked = context.blocked
        self._events = context.at.events
        self._preserved = context.at.preserved
        self._dry = options.dry_run
        self._fsync = options.fsync
        self._late: list[tuple[int, int]] = []
        """Files whose first names wait, and these."""
        self._linked_in: dict[int, bytes] = {}
        """For each device, a directory in which a link was made."""

    def run(self, table: LinkTable) -> None:
        """Makes the missing links.

        A name becomes a file of its own if the first name could not be brought up to date or if the link
        fails; the router then fetches its content. A name with a directory in its place waits for that, and
        so do the other names of a first name that waits.
        """
        for file, first in ExistingLinks(self._root, self._entries, self._preserved).missing(table):
            if self._entries.entry(first).path in self._blocked:
                self._late.append((file, first))
            else:
                self._try_to_link(file, first)

    def run_late(self) -> None:
        """Makes the links to names that had a directory in their place."""
        late, self._late = self._late, []
        for file, first in late:
            self._try_to_link(file, first)

    def _try_to_link(self, file: int, first: int) -> None:
        entry = self._entries.entry(file)
        try:
            self._link(file, entry, first, waits=True)
        except FileError as error:
            self._events.report(Problem(writing_code(error), entry.path, str(error)))

    def finish(self) -> None:
        """Makes all links durable."""
        linked, self._linked_in = self._linked_in, {}
        if self._fsync and linked:
            try:
                make_durable(self._root, linked.values())
            except FileError as error:
                self._events.report(Problem(writing_code(error), error.path, str(error)))

    def _link(self, file: int, entry: Entry, first_file: int, *, waits: bool) -> None:
        """Makes one name a link to its first name. `waits`: unless a directory is in its place."""
        # long because each step is safe only because of the checks before it
        first = self._entries.entry(first_file)
        size, mtime = self._landing.landed(first_file) or (first.size, first.metadata.mtime_ns)
        if entry.kind in NODES and entry.kind not in self._root.writes.nodes:
            return  # which was reported
        found, kind = self._found(first.path, first), self._kind(entry.path)
        existing, listed = self._found(entry.path, entry), self._landing.listed.of(file)
        ready = (
            found is not None
            and (entry.kind in NODES or found.size == size)
            and (
                (self._by_size and self._dry)
                or not self._preserved.is_timed(entry.kind)
                or self._preserved.same_time(mtime, found.mtime_ns)
            )
        )
        joined = (
            found is not None
            and existing is not None
            and (existing.device, existing.inode) == (found.device, found.inode)
        )
        if joined and (ready or not self._dry):
            return
        if kind is not None and self._root.append_only:
            raise self._root.append_only_refusal(entry.path, "make it a hard link")
        differing = self._difference(entry, existing)
        code = linking_code(entry.kind, differing, new=existing is None)
        if self._dry:
            self._landing.report(ItemChanged(code, entry.path, first.path))
            return
        if kind is Kind.DIRECTORY and waits:
            self._blocked.add(entry.path, lambda: self._link(file, entry, first_file, waits=False))
            return
        self._directories.touch(os.path.dirname(entry.path))
        if (
            found is None
            or not ready
            or link_file(self._root, first.path, entry.path, found, replaces=listed) is not Linked.DONE
        ):
            self._fetch(file, entry, kind, existing, differing)
            return
        self._linked_in.setdefault(found.device, os.path.dirname(entry.path))
        self._landing.report(ItemChanged(code, entry.path, first.path))

    def _kind(self, path: bytes) -> Kind | None:
        try:
            return self._root.kind(path)
        except FileError:
            if not self._dry:
                raise
            return None  # what is in the way above it would be replaced by a directory

    def _found(self, path: bytes, like: Entry) -> Identity | None:
        """The entry at `path`, if it is a regular file or the special file that `like` is; else None."""
        try:
            if like.kind in NODES:
                return (
                    self._root.identity(path)
                    if is_node(self._root, path, Kind(like.kind), like.size)
                    else None
                )
            return self._root.identity(path) if self._root.kind(path) is Kind.FILE else None
        except FileError:
            return None  # the file or its directory could not be made, which was reported

    def _difference(self, entry: Entry, existing: Identity | None) -> Difference:
        """How the file that has this name differs from the wanted file."""
        if existing is None:
            return Difference.NONE
        found = difference(
            entry.kind, entry.metadata, self._root.metadata(entry.path), preserved=self._preserved
        )
        alike = entry.kind in NODES or existing.size == entry.size
        return found if alike else found | Difference.SIZE

    def _fetch(
        self, file: int, entry: Entry, kind: Kind | None, existing: Identity | None, differing: Difference
    ) -> None:
        """Brings a name up to date as a file of its own."""
        if entry.kind in NODES:
            self._make_alone(file, entry, existing, differing)
        elif existing is None:
            change = Change.CREATE if kind is None else Change.REPLACE
            self._landing.decide(file, Decision(change, -1, -1, Difference.NONE))
            self._transfers.create(file, entry.path, entry.size)
        elif differing & (Difference.SIZE if self._by_size else Difference.SIZE | Difference.TIME):
            self._landing.decide(file, Decision(Change.CONTENT, -1, -1, differing))
            self._transfers.update(file, entry.size)
        elif differing:
            decision = Decision(Change.METADATA, -1, -1, differing)
            listed = self._landing.listed.of(file)
            if listed is None:
                raise self._root.another(entry.path, None, listed, "set its metadata")
            self._landing.set_metadata(entry.path, entry.metadata, decision, listed)

    def _make_alone(self, file: int, entry: Entry, existing: Identity | None, differing: Difference) -> None:
        """Makes a special file that cannot be a link, or sets its metadata. Raises FileError."""
        owner, new = self._preserved.owner, existing is None
        decision = Decision(Change.CREATE if new else Change.METADATA, -1, -1, differing)
        listed, metadata = self._landing.listed.of(file), entry.metadata
        if new:
            kind = Kind(entry.kind)
            self._root.replace_node(entry.path, kind, entry.size, metadata, owner=owner, expected=listed)
        elif listed is None:
            raise self._root.another(entry.path, None, listed, "set its metadata")
        elif differing:
            chosen = self._root.storage.of_found
            self._root.set_metadata(
                entry.path, Kind.SPECIAL, metadata, owner=owner, expected=listed, chosen=chosen
            )
        else:
            return
        code = itemize(entry.kind, decision, transferred=new, new=new)
        self._landing.report(ItemChanged(code, entry.path))


def names_here(root: Root, entries: Manifest, table: LinkTable, file: int) -> tuple[bytes, ...]:
    """The first local path among a new file's further names that may have its content; () if none has."""
    for other in islice(table.names(file), NAMES_LOOKED_AT):
        if other >= len(entries):
            break
        entry = entries.entry(other)
        try:
            kind = root.kind(entry.path)
            if kind is Kind.FILE and root.identity(entry.path).size == entry.size > WHOLE_BYTES:
                return (entry.path,)
        except FileError:
            continue
    return ()
