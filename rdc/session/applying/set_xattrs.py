"""Sets the source's attributes on entries (--xattrs, --acls, --atimes): the last step of a sync.

Earlier changes to an entry would undo them: a write clears capabilities, chmod changes an ACL's mask, a new
version has no attributes. After a kill before this step, the next run finds the differing attributes.
"""

from __future__ import annotations

import errno
import os

from rdc.errors import ExitCode, FileChangedError, FileError, OutOfSpaceError, ProtocolError
from rdc.files.base.durability import sync_file_systems
from rdc.files.base.entry_check import identity_of
from rdc.files.base.relative_path import join
from rdc.files.facts.access_times import write_entry_access_time
from rdc.files.facts.apply_xattrs import write_entry_attributes
from rdc.files.facts.directory_xattrs import read_directory_attributes, read_entry_attributes
from rdc.lean.records import dataclass
from rdc.model.entries import Identity, Kind, Listing, Metadata
from rdc.model.preserved import (
    ACCESS_ACL,
    ACCESS_TIME,
    DEFAULT_ACL,
    UNREADABLE,
    AttributeKinds,
    Attributes,
    pack_attributes,
    unpack_attributes,
)
from rdc.plan.itemize import attributes_code
from rdc.progress import ItemChanged, Problem
from rdc.session.applying.chosen_directories import ChosenDirectories
from rdc.session.applying.writing_code import writing_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from rdc.session.applying.applying_context import ApplyingContext
    from rdc.session.trees.wanted_xattrs import WantedXattrs

__all__ = ["XattrSetter"]

_NO_DIRECTORY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


@dataclass(frozen=True, slots=True)
class _Entry:
    path: bytes
    kind: Kind
    mode: int
    size: int
    mtime_ns: int
    reported: bool
    """The run has reported the entry already."""


class XattrSetter:
    """Sets the attributes of all wanted entries in one pass."""

    def __init__(self, context: ApplyingContext, wanted: WantedXattrs) -> None:
        self._left = context.skipped
        self._chosen = ChosenDirectories(context)
        self._alternates = context.at.alternates
        self._root = context.at.root
        self._entries = context.at.manifest
        self._wanted = wanted
        self._landing = context.at.landing
        self._events = context.at.events
        self._preserved = context.at.preserved
        self._dry = context.at.options.dry_run
        self._fsync = context.at.options.fsync
        self._uses_content = context.at.uses_content
        self._changed = False

    def run(self, top: Metadata | None, *, within: AbstractSet[bytes] | None = None) -> None:
        """Sets all attributes that differ, or only those of entries that differ in something else: the
        source must not learn whether attributes are equal then.

        `top`: the root directory's metadata; None if its attributes do not count. `within`: directories in
        which the run changed something; all others are known to be right. Raises ProtocolError for attributes
        of entries that were not listed.
        """
        if self._wanted.highest > len(self._entries):
            raise ProtocolError(f"attributes of entry {self._wanted.highest - 1}, which was not listed")
        for number, path in enumerate(self._entries.directories):
            if within is None or path in within:
                self._directory(number, path)
        if top is not None:
            wanted = self._wanted.of_root()
            if wanted != UNREADABLE and (self._uses_content or self._wanted.root_reported):
                self._entry(_Entry(b"", Kind.DIRECTORY, top.mode, 0, 0, self._wanted.root_reported), wanted)
        if self._changed and self._fsync:
            sync_file_systems([self._root.fileno()])

    def _directory(self, number: int, path: bytes) -> None:
        """Sets the attributes of one directory's entries."""
        first, listing = self._entries.firsts[number], self._entries.listing(number)
        sets = self._wanted.of(first, len(listing))
        # A new entry may have inherited an ACL from its directory, but no other attributes.
        kinds = self._wanted.kinds
        inherits = AttributeKinds.ACL in kinds
        rows = [
            row
            for row, kind in enumerate(listing.kinds)
            if kinds.of(kind)
            and (sets.get(row) or inherits or not self._wanted.is_new(first + row))
            and sets.get(row) != UNREADABLE
            and self._may_look_at(first + row)
            and not self._keeps_own(first + row)
            and not (kind == Kind.DIRECTORY and self._chosen.keeps_own(join(path, listing.names[row])))
        ]
        right = self._right_rows(path, listing, sets) if rows else set()
        for row in rows:
            if row not in right:
                kind, reported = Kind(listing.kinds[row]), self._wanted.is_reported(first + row)
                name, mode = listing.names[row], listing.modes[row]
                landed = self._landing.landed(first + row)
                size, mtime = landed or (listing.sizes[row], listing.mtimes[row])
                self._entry(_Entry(join(path, name), kind, mode, size, mtime, reported), sets.get(row, b""))

    def _may_look_at(self, row: int) -> bool:
        """Whether what is done may depend on the attributes that an entry has."""
        if self._uses_content:
            return True
        # An append-only root refuses all others, which would tell whether theirs differ.
        return self._wanted.is_new(row) if self._root.append_only else self._wanted.is_reported(row)

    def _keeps_own(self, row: int) -> bool:
        """Whether an entry was left alone, or is a file in another tree as well."""
        if self._left is not None and row in self._left:
            return True
        return self._alternates is not None and self._alternates.is_linked(row)

    def _right_rows(self, path: bytes, listing: Listing, sets: dict[int, bytes]) -> AbstractSet[int]:
        """The rows whose attributes are right. `_entry` checks the others and reports read errors."""
        names = b"".join([name + b"\0" for name in listing.names])
        kinds, right = self._wanted.kinds, set(range(len(listing))) - sets.keys()
        try:
            for row, _, there in read_directory_attributes(self._root, path, names, kinds):
                existing = there if isinstance(there, OSError) else kinds.of(listing.kinds[row]).chosen(there)
                if not isinstance(existing, OSError) and pack_attributes(existing) == sets.get(row, b""):
                    right.add(row)
                else:
                    right.discard(row)
        except FileError:
            return set()
        return right

    def _entry(self, entry: _Entry, wanted: bytes) -> None:
        """Sets the attributes of one entry if they differ, and reports the change or the error."""
        path, kinds = entry.path, self._wanted.kinds.of(entry.kind)
        try:
            directory, name = self._root.locate(path)
            found = read_entry_attributes(directory.fd, name, kinds, fakes=self._root.reads.fakes)
            existing = pack_attributes(found)
            if existing == wanted or not self._is_unchanged(entry, self._root.identity(path)):
                return
            if not self._dry:
                self._write(entry, unpack_attributes(existing), unpack_attributes(wanted))
                self._changed = True
        except (FileNotFoundError, FileChangedError):
            return  # missing: not made, which was reported, or a dry run; or another program replaced it
        except OSError as error:
            failed = self._root.failure(error, path, "read its extended attributes")
            self._events.report(Problem(ExitCode.PARTIAL, path, str(failed)))
            return
        except FileError as error:
            # A missing directory was reported already.
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _NO_DIRECTORY:
                self._events.report(Problem(writing_code(error), path, str(error)))
            return
        except OutOfSpaceError as error:
            # Many file systems have little room for attributes and report that as a full disk.
            self._events.report(Problem(ExitCode.PARTIAL, path, str(error)))
            return
        if not entry.reported:
            before, after = dict(unpack_attributes(existing)), dict(unpack_attributes(wanted))
            names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
            code = attributes_code(
                entry.kind,
                acl=bool(names & {ACCESS_ACL, DEFAULT_ACL}),
                xattr=bool(names - {ACCESS_ACL, DEFAULT_ACL, ACCESS_TIME}),
                time=ACCESS_TIME in names,
            )
            self._landing.report(ItemChanged(code, _shown(entry)))

    def _write(self, entry: _Entry, existing: Attributes, wanted: Attributes) -> None:
        """Writes what differs, the access time last."""

        def is_meant(now: os.stat_result) -> bool:
            return self._is_unchanged(entry, identity_of(now))

        kinds = self._wanted.kinds.of(entry.kind) & ~AttributeKinds.ACCESS_TIME
        extended = kinds.chosen(wanted)
        if kinds.chosen(existing) != extended:
            write_entry_attributes(
                self._root, entry.path, entry.kind, extended, kinds, entry.mode, is_meant=is_meant
            )
        if AttributeKinds.ACCESS_TIME in self._wanted.kinds:
            write_entry_access_time(self._root, entry.path, entry.kind, wanted, is_meant=is_meant)

    def _is_unchanged(self, entry: _Entry, found: Identity) -> bool:
        """Whether a file has the content to which the attributes belong."""
        return entry.kind is not Kind.FILE or (
            found.size == entry.size
            and (
                not self._preserved.is_timed(Kind.FILE)
                or self._preserved.same_time(entry.mtime_ns, found.mtime_ns)
            )
        )


def _shown(entry: _Entry) -> bytes:
    """The entry's path as reported items show it."""
    return (entry.path or b".") + b"/" if entry.kind is Kind.DIRECTORY else entry.path
