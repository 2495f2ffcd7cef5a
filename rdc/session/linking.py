"""The hard links of a tree (--hard-links): names of files that have another name are made when that is there.

A file's first name, in the order of the walk, is brought up to date like any file; all others are left alone
until everything else is in place, and are then linked to it. So contents travel once, and a name keeps what
it has until it becomes the new file.
"""

from __future__ import annotations

import os
from itertools import islice

from rdc.errors import ExitCode, FileError, printable
from rdc.files.linked import Linked, link_file
from rdc.files.move import make_durable
from rdc.model.entries import Kind
from rdc.plan.compare import Change, Decision, Difference, difference
from rdc.plan.itemize import linking_code
from rdc.progress import ItemChanged, Problem
from rdc.session.directories import writing_code
from rdc.session.joined import Joined
from rdc.session.transfer import WHOLE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.model.entries import Identity
    from rdc.model.kept import Kept
    from rdc.session.directories import Directories
    from rdc.session.extras import Extras
    from rdc.session.landing import Landing
    from rdc.session.news import News
    from rdc.session.transfer import Transfers
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Entry, Manifest

__all__ = ["Linking", "names_here"]

NAMES_LOOKED_AT = 16
"""Further names of a new file at which its content is looked for: each costs two system calls."""


class Linking:
    """Goes through a table of links once."""

    def __init__(
        self,
        root: Root,
        entries: Manifest,
        landing: Landing,
        transfers: Transfers,
        directories: Directories,
        extras: Extras,
        news: News,
        *,
        kept: Kept,
        dry: bool,
        fsync: bool,
        by_size: bool = False,
    ) -> None:
        """`by_size`: a file of its size has its content, whatever its mtime."""
        self._by_size = by_size
        self._root = root
        self._entries = entries
        self._landing = landing
        self._transfers = transfers
        self._directories = directories
        self._extras = extras
        self._news = news
        self._kept = kept
        self._dry = dry
        self._fsync = fsync
        self._places: dict[int, bytes] = {}
        """Of each device, a directory that a link was made in."""

    def run(self, table: LinkTable, read_errors: int) -> None:
        """Makes the links that are missing; hands to the transfers what has to be a file of its own, because
        its first name could not be brought up to date, or because it cannot be linked to that."""
        for file, first in Joined(self._root, self._entries, self._kept).missing(table):
            entry = self._entries.entry(file)
            try:
                self._link(file, entry, first, read_errors)
            except FileError as error:
                self._news.report(Problem(writing_code(error), entry.path, str(error)))
        if self._fsync and self._places:
            try:
                make_durable(self._root, self._places.values())
            except FileError as error:
                self._news.report(Problem(writing_code(error), error.path, str(error)))

    def _link(self, file: int, entry: Entry, first_file: int, read_errors: int) -> None:
        first = self._entries.entry(first_file)
        size, mtime = self._landing.landed(first_file) or (first.size, first.metadata.mtime_ns)
        found, kind = self._regular(first.path), self._root.kind(entry.path)
        held = self._root.identity(entry.path) if kind is Kind.FILE else None
        ready = (
            found is not None
            and found.size == size
            and ((self._by_size and self._dry) or self._kept.mtime(found.mtime_ns) == self._kept.mtime(mtime))
        )
        joined = (
            found is not None
            and held is not None
            and (held.device, held.inode) == (found.device, found.inode)
        )
        if joined and (ready or not self._dry):
            return
        differing = self._difference(entry, held)
        code = linking_code(differing, new=held is None)
        if self._dry:
            self._landing.report(ItemChanged(code, entry.path, first.path))
            return
        if kind is Kind.DIRECTORY and not self._made_way(entry.path, read_errors):
            return
        self._directories.touch(os.path.dirname(entry.path))
        if (
            found is None
            or not ready
            or link_file(self._root, first.path, entry.path, found) is not Linked.DONE
        ):
            self._fetch(file, entry, kind, held, differing)
            return
        self._places.setdefault(found.device, os.path.dirname(entry.path))
        self._landing.report(ItemChanged(code, entry.path, first.path))

    def _regular(self, path: bytes) -> Identity | None:
        """The regular file at `path`."""
        try:
            return self._root.identity(path) if self._root.kind(path) is Kind.FILE else None
        except FileError:
            return None  # it, or its directory, could not be made: which was told

    def _difference(self, entry: Entry, held: Identity | None) -> Difference:
        if held is None:
            return Difference.NONE
        found = difference(Kind.FILE, entry.metadata, self._root.metadata(entry.path), kept=self._kept)
        return found if held.size == entry.size else found | Difference.SIZE

    def _made_way(self, path: bytes, read_errors: int) -> bool:
        kept = self._extras.make_way(path, read_errors)
        if kept is not None:
            text = f"{printable(path)}: a directory is in the way, {kept}"
            self._news.report(Problem(ExitCode.PARTIAL, path, text))
        return kept is None

    def _fetch(
        self, file: int, entry: Entry, kind: Kind | None, held: Identity | None, differing: Difference
    ) -> None:
        """As any other file; what it has already is compared as always."""
        if held is None:
            change = Change.CREATE if kind is None else Change.REPLACE
            self._landing.decide(file, Decision(change, -1, -1, Difference.NONE))
            self._transfers.create(file, entry.path, entry.size)
        elif differing & (Difference.SIZE if self._by_size else Difference.SIZE | Difference.TIME):
            self._landing.decide(file, Decision(Change.CONTENT, -1, -1, differing))
            self._transfers.update(file, entry.size)
        elif differing:
            decision = Decision(Change.METADATA, -1, -1, differing)
            self._landing.settle(entry.path, entry.metadata, decision, lambda now: now == held)


def names_here(root: Root, entries: Manifest, table: LinkTable, file: int) -> tuple[bytes, ...]:
    """One of the further names of a new file that may have its content here already."""
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
