"""The entries of a destination when it was listed, and how verified contents become its files."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from contextlib import suppress

from rdc.errors import FileError, RdcError
from rdc.files.bulk.small_files import ListedFiles, NewVersions
from rdc.files.replace.commit_group import CommitGroup
from rdc.kernel import take_rows
from rdc.lean.records import replace
from rdc.lean.typed import NamedTuple
from rdc.model.entries import Identities, Identity, IdentityColumns, Kind, Metadata, PackedListing
from rdc.plan.compare import (
    DIFFERS,
    DIFFERS_IN_ACCESS,
    RENAMING,
    Change,
    Decision,
    Difference,
    FileDecisions,
    is_new,
    itemize,
)
from rdc.progress import ItemChanged, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.files.base.metadata import EntryCheck, Expected
    from rdc.files.bulk.open_many import OpenedFiles
    from rdc.files.replace.delayed_group import DelayedGroup
    from rdc.files.replace.replacement import Replacement
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.session.runtime.commands import EventRelay
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.manifest import Manifest


class Extraneous(NamedTuple):
    """An entry to be deleted."""

    path: bytes
    kind: int
    listed: Expected
    """The entry listed at its path; None: there was none. An entry that is not that one stays."""


class ListedEntries:
    """The identity of each existing entry that a run may change, by the entry's row in the source's manifest.

    An entry that is not noted here is new: nothing was at its path. So whoever changes an entry asks `of` and
    hands what it returns to the call that changes it, which compares it with what is there then.
    """

    def __init__(self) -> None:
        self._files = array("Q")
        self._identities = IdentityColumns()

    def note(self, files: Sequence[int], identities: Identities, rows: Sequence[int]) -> None:
        """Note what was listed for these entries, in `rows` of the destination's listing. Entries increase
        from call to call."""
        if self._files and files and files[0] <= self._files[-1]:
            raise ValueError(f"entry {files[0]} was noted after entry {self._files[-1]}")
        self._files.extend(files)
        self._identities.extend(identities, rows)

    def note_one(self, file: int, identity: Identity) -> None:
        """Note what was listed for one entry, which comes after those before."""
        if self._files and file <= self._files[-1]:
            raise ValueError(f"entry {file} was noted after entry {self._files[-1]}")
        self._files.append(file)
        self._identities.append(identity)

    def of(self, file: int) -> Identity | None:
        """Return what was listed at the path of an entry; None: nothing was there."""
        row = bisect_left(self._files, file)
        is_noted = row < len(self._files) and self._files[row] == file
        return self._identities[row] if is_noted else None

    def chosen(self, files: Sequence[int]) -> IdentityColumns | None:
        """Return what was listed for each of these entries; None if nothing was there for one of them. The
        entries increase, or come in any order."""
        first = bisect_left(self._files, files[0]) if files else 0
        if self._files[first : first + len(files)] == array("Q", files):
            return self._identities.chosen(range(first, first + len(files)))
        rows = [bisect_left(self._files, file) for file in files]
        # An entry that is not noted has the row where it would be: after the last, or that of another entry.
        if any(
            self._files[row : row + 1] != array("Q", (file,)) for row, file in zip(rows, files, strict=True)
        ):
            return None
        return self._identities.chosen(rows)

    def changed(
        self, files: Sequence[int], opened: OpenedFiles, rows: Sequence[int], check: EntryCheck
    ) -> list[int]:
        """Return the numbers of those `files`, which are open in `rows`, that are not as they were listed."""
        found = self.chosen(files)
        if found is None:
            return list(range(len(files)))
        columns = opened.devices, opened.inodes, opened.sizes, opened.mtimes, opened.ctimes
        return [
            number
            for number in found.differing(rows, *columns)
            if not check.is_still(found[number], opened.identity(rows[number]))
        ]


NEW_FILE = itemize(Kind.FILE, Decision(Change.CREATE, -1, -1, Difference.NONE), transferred=True, new=True)
"""The itemize code of a new file: most files of a first copy have it."""


class FileCommits:
    """Takes verified files and reports each once it is durable.

    At most one commit group is not durable yet. Files are named by their rows in the source's manifest.
    """

    def __init__(
        self,
        root: Root,
        entries: Manifest,
        events: EventRelay,
        *,
        fsync: bool,
        owner: bool,
        dry: bool,
        before_writing: Callable[[bytes], object],
        xattrs: WantedXattrs | None = None,
        delays: bool = False,
        comes_last: Callable[[bytes], bool] | None = None,
        on_identity: Callable[[bytes, Identity], None] | None = None,
    ) -> None:
        """`owner`: owners and groups are set. `dry`: nothing changes. `before_writing`: is called before
        content is written that a comparison of contents found to differ, with the file's directory.
        `delays`: nothing is in place before `land`. `comes_last`: files at these paths wait for `land_late`,
        and nothing comes as small files in bulk; None: none does. `on_identity`: as in CommitGroup. `xattrs`:
        learns which files differ; None if the run does not preserve extended attributes."""
        self._root = root
        self._entries = entries
        self._events = events
        self.owner = owner
        """True if the run sets owners and groups."""
        self._dry = dry
        self._before_writing = before_writing
        self._decisions = FileDecisions()
        self.listed = ListedEntries()
        """The entries at the paths of the files when they were listed. Nothing else is replaced or changed.
        """
        self._files: dict[bytes, int] = {}
        self._otherwise: dict[int, tuple[int, int]] = {}
        """Size and mtime of files that differ from their listing; see `landed`."""
        # Committed files do not enter the catalog: to cut a file and hash its chunks takes four times as long
        # as to hash it whole, and no later run asks about most.
        self._group = CommitGroup(
            root, fsync=fsync, on_commit=self._committed, on_error=self._failed, on_identity=on_identity
        )
        self._delayed: DelayedGroup | None = None
        if delays and not dry:
            self._group = self._delayed = self._delaying_group(fsync=fsync)
        self._comes_last = None if dry else comes_last
        self._late = self._delaying_group(fsync=fsync) if self._comes_last is not None else None
        self._held: DelayedGroup | None = None
        """Files that have a directory in their place."""
        self._held_paths: dict[bytes, Identity | None] = {}
        """Their paths, and the listed directories there."""
        self._fsync = fsync
        self.changed = self.created = self.planned = 0
        self.moved_files = 0
        """Renamed files; they are among the changed entries."""
        self._xattrs = xattrs
        self._link_paths: Callable[[int], Iterator[bytes]] | None = None
        self._copied: set[bytes] = set()
        """Paths in the commit group whose content was copied locally."""
        self.failed: set[int] = set()
        """Files whose commit failed: what is at their paths did not come from the source."""

    def _delaying_group(self, *, fsync: bool) -> DelayedGroup:
        from rdc.files.replace.delayed_group import DelayedGroup

        return DelayedGroup(self._root, fsync=fsync, on_commit=self._committed, on_error=self._failed)

    def link_paths_known(self, link_paths: Callable[[int], Iterator[bytes]]) -> None:
        """Set `link_paths`: it yields the paths that will become hard links to a file."""
        self._link_paths = link_paths

    def decide(self, file: int, decision: Decision) -> None:
        """Count a file to be fetched and store how it differs, for the report."""
        self.planned += 1
        if decision.change is not Change.CREATE:
            self._decisions.put((file,), decision.change, decision.difference)

    def decide_many(self, files: Sequence[int], change: Change, difference: Difference) -> None:
        """Like `decide` for many files in increasing order that differ in the same way."""
        self.planned += len(files)
        self._decisions.put(files, change, difference)

    def rehearse(self, file: int) -> None:
        """Report, in a dry run, a file that a real run would fetch."""
        self._account(self._entries.entry(file).path, self._decisions.pop(file))

    def differs(self, file: int) -> bool:
        """Note that the contents differ. Returns whether the new content has to be fetched.

        A dry run reports the file instead, and an append-only root refuses it."""
        old = self._decisions.pop(file)
        if self._root.append_only:
            self._failed(self._root.append_only_refusal(self._entries.entry(file).path, "replace it"))
            return False
        difference = Difference.NONE if old is None else old.difference
        self._decisions.put((file,), Change.CONTENT, difference | Difference.CHECKSUM)
        if self._xattrs is not None:
            self._xattrs.note_reported((file,))
        if self._dry:
            self.rehearse(file)
        else:
            self._before_writing(self._entries.entry(file).path.rpartition(b"/")[0])
        return not self._dry

    def same(self, file: int, metadata: Metadata | None, existing: Identity) -> None:
        """Note that a file's content is right and set its metadata.

        `metadata`: replaces the listed metadata. `existing`: the file whose content was compared.
        """
        decision = self._decisions.pop(file)
        if decision is None or not decision.difference:
            return
        entry = self._entries.entry(file)
        wanted = entry.metadata if metadata is None else metadata
        if not self._dry and not self._is_listed(file, existing):
            self._fail_changed(file, entry.path)
            return
        self._note_landed(file, existing.size, wanted)
        parts = decision.change is Change.CONTENT and not (self._dry or self._root.writes.overwrites)
        if parts and self._stays_elsewhere(file, entry.path):
            self._part(file, entry.path, wanted, decision, existing)
        else:
            self.set_metadata(entry.path, wanted, decision, existing)

    def _is_listed(self, file: int, existing: Identity) -> bool:
        """Return whether an existing file is the one that was listed."""
        listed = self.listed.of(file)
        return listed is not None and self._root.check.is_still(listed, existing)

    def _fail_changed(self, file: int, path: bytes) -> None:
        """Report a file that is not as it was listed. It stays as it is."""
        self._files[path] = file
        self._failed(self._root.another(path, None, self.listed.of(file), "change it"))

    def _stays_elsewhere(self, file: int, path: bytes) -> bool:
        """Return whether the local file has hard links that this run does not make the source's file.

        A new mtime would show at those, too. If size and mtime differ, the file then becomes one of its own,
        as in rsync. With --checksum, content alone decides."""
        try:
            names = self._root.link_count(path)
            if names < 2:
                return False
            existing = self._root.identity(path)
        except FileError:
            return False  # the next step that opens it reports why
        for further in self._link_paths(file) if self._link_paths is not None else ():
            with suppress(FileError):
                found = self._root.identity(further)
                names -= (found.device, found.inode) == (existing.device, existing.inode)
        return names > 1

    def _part(
        self, file: int, path: bytes, metadata: Metadata, decision: Decision, existing: Identity
    ) -> None:
        """Make the name a file of its own with a local copy of its content."""
        self._decisions.put((file,), decision.change, decision.difference)
        self._files[path] = file
        self._copied.add(path)
        metadata = self._for_existing(path, metadata)
        try:
            self._group.part(path, metadata, self.owner, existing)
        except FileError as error:
            self._failed(error)

    def _note_landed(self, file: int, size: int, metadata: Metadata) -> None:
        entry = self._entries.entry(file)
        if (size, metadata.mtime_ns) != (entry.size, entry.metadata.mtime_ns):
            self._otherwise[file] = (size, metadata.mtime_ns)

    def landed(self, file: int) -> tuple[int, int] | None:
        """Size and mtime of a committed file that the source changed between listing and reading it.

        None if they are as listed.
        """
        return self._otherwise.get(file)

    def set_metadata_many(self, files: Sequence[int], opened: OpenedFiles, rows: Sequence[int]) -> list[int]:
        """Like `same` for many files, which are `rows` of `opened`.

        Returns the files that changed since they were read. Nothing was done or reported for those.
        """
        # long because it handles many files at once, and a call for each would cost more than the work
        from rdc.files.bulk.open_many import CHANGED, FAILED, METADATA_SET

        codes = self._decisions.take(files)
        if 0 in codes.translate(DIFFERS):
            known = [number for number, code in enumerate(codes) if DIFFERS[code]]
            codes = bytes([codes[number] for number in known])
            files, rows = [files[number] for number in known], [rows[number] for number in known]
        if not files:
            return []
        foreign = [] if self._dry else self.listed.changed(files, opened, rows, self._root.check)
        if foreign:
            for number in foreign:
                self._fail_changed(files[number], self._entries.entry(files[number]).path)
            known = sorted(set(range(len(files))).difference(foreign))
            codes = bytes([codes[number] for number in known])
            files, rows = [files[number] for number in known], [rows[number] for number in known]
        if self._dry:
            outcomes = bytes([METADATA_SET]) * len(files)
        elif not self._root.storage.sets_found_whole:
            outcomes = bytes([FAILED]) * len(files)  # one by one: each keeps what is not preserved
        elif self._root.reads.fakes or (
            self._root.writes.sheds_acls and 1 in codes.translate(DIFFERS_IN_ACCESS)
        ):
            outcomes = bytes([FAILED]) * len(files)  # one by one: ACLs have to be removed first
        else:
            outcomes = opened.set_metadata(rows, files, self._entries, owner=self.owner)
        if outcomes.count(METADATA_SET) == len(files) and not self._events.lists_items:
            self.changed += len(files)
            return []
        changed = []
        paths = self._entries.paths(files)
        for file, row, path, code, outcome in zip(files, rows, paths, codes, outcomes, strict=True):
            decision = self._decisions.decision(code)
            if outcome == METADATA_SET:
                self.report(ItemChanged(itemize(Kind.FILE, decision, transferred=False, new=False), path))
                continue
            self._decisions.put((file,), decision.change, decision.difference)
            if outcome == CHANGED:
                changed.append(file)
            else:
                # The single form sets the metadata or reports the error with the path.
                self.same(file, None, opened.identity(row))
        return changed

    def set_metadata(self, path: bytes, metadata: Metadata, decision: Decision, expected: Identity) -> None:
        """Set the metadata of a file whose content stays, if the one at `path` is `expected`."""
        try:
            if not self._dry:
                self._group.set_metadata(path, metadata, self.owner, expected)
        except FileError as error:
            self._failed(error)
            return
        self.report(ItemChanged(itemize(Kind.FILE, decision, transferred=False, new=False), path))

    def is_new(self, file: int) -> bool:
        """Return whether nothing was at the file's path when the directories were compared."""
        return not self._decisions.has(file)

    def all_new(self, files: Sequence[int]) -> bool:
        """Return whether `is_new` holds for all of these files, which increase."""
        return not self._decisions.has_any(files[0], files[-1] + 1) or all(map(self.is_new, files))

    def commit(
        self, file: int, path: bytes, temporary: Replacement, metadata: Metadata, expected: Identity | None
    ) -> None:
        """Take over a verified temporary. It replaces only the file `expected`; None: nothing is there."""
        self._files[path] = file
        self._note_landed(file, temporary.size, metadata)
        if expected is not None:
            metadata = self._for_existing(path, metadata)
        group = self._group if self._held is None or path not in self._held_paths else self._held
        if self._late is not None and self._comes_last is not None and self._comes_last(path):
            group = self._late
        group.add(temporary, path, metadata, self.owner, expected)

    def _for_existing(self, path: bytes, metadata: Metadata) -> Metadata:
        """Return `metadata` for new content of the file at `path`, whose permissions stay as far as they are
        not preserved."""
        preserved = self._root.storage.preserved
        if preserved.keeps_all_modes:
            return metadata
        try:
            existing = self._root.metadata(path)
        except FileError:
            return metadata  # the commit finds another entry than expected, and says so
        return replace(metadata, mode=preserved.replaced_mode(metadata, existing))

    def stage_ahead(self, files: Sequence[ListedFiles], content: memoryview) -> int:
        """Write new files of the first of these directories together, where writes wait. Returns the number
        of directories; `commit_small` is called for each of them next."""
        return self._group.stage_ahead(files, content, self.owner)

    def commit_small(self, directory: bytes, listing: PackedListing, content: Buffer) -> list[int]:
        """Take over the concatenated, verified contents of new files of one directory.

        Returns the rows that could not be written. The caller tries those one by one.
        """
        return self._group.add_small(directory, listing, content, self.owner)

    def commit_versions(
        self, files: Sequence[int], paths: Sequence[bytes], content: Buffer
    ) -> tuple[list[int], list[int]]:
        """Take over the concatenated, verified contents of these files; each replaces only the file that was
        listed.

        Returns the rows whose old file changed meanwhile, and the rows that failed and have to be tried one
        by one. Nothing was written for either.
        """
        expected = self.listed.chosen(files)
        if expected is None:
            return list(range(len(files))), []
        if not self._root.storage.preserved.keeps_all_modes:
            return [], list(range(len(files)))  # one by one: each keeps permissions of its old version
        entries, rows = self._entries, array("Q", files)
        versions = NewVersions(
            paths,
            expected,
            *(
                take_rows(column, width, rows)
                for column, width in (
                    (entries.modes, 2),
                    (entries.sizes, 8),
                    (entries.mtimes, 8),
                    (entries.uids, 4),
                    (entries.gids, 4),
                )
            ),
        )
        self._files.update(zip(paths, files, strict=True))
        changed, failed = self._group.add_versions(versions, content, self.owner)
        for row in (*changed, *failed):
            self._files.pop(paths[row], None)
        return changed, failed

    def moved(self, file: int, old: bytes, existing: Identity) -> None:
        """Note that `existing` moved from `old` to the path of a new file; sets its metadata. A dry run only
        reports it."""
        self._decisions.pop(file)
        entry = self._entries.entry(file)
        if self._xattrs is not None:
            self._xattrs.note_moved(file)

        try:
            if not self._dry:
                self._group.set_metadata(entry.path, entry.metadata, self.owner, existing)
        except FileError as error:
            self._failed(error)
        self.moved_files += 1
        self.report(ItemChanged(RENAMING, old, entry.path))

    def flush(self) -> None:
        """Commit everything that waits in the group."""
        self._group.flush()
        for group in (self._held, self._late):
            if group is not None:
                group.flush()

    def hold(self, file: int, path: bytes) -> None:
        """Have a file wait beside the directory at its path until `put`."""
        if self._held is None:
            self._held = self._delaying_group(fsync=self._fsync)
        self._held_paths[path] = self.listed.of(file)

    def holds(self, path: bytes) -> bool:
        """Return whether the content of a file that has to wait is here."""
        return self._held is not None and self._held.waits(path)

    def put(self, path: bytes) -> None:
        """Commit a file that had to wait, in place of the directory that was listed, which is empty now."""
        if self._held is not None:
            self._held.land_one(path, self._held_paths.get(path))

    def drop_held(self) -> None:
        """Drop the files that were not put in their places. What is long stays for the next run to resume
        from."""
        if self._held is not None:
            self._held.flush()
            self._held.abandon()

    def land(self) -> None:
        """Commit everything, also what was held back until now."""
        self.flush()
        if self._delayed is not None:
            self._delayed.land()

    def land_late(self) -> None:
        """Commit the files that come last. Everything else is in place."""
        if self._late is not None:
            self._late.land()

    def drop_late(self) -> bool:
        """Drop the files that come last. Returns whether there were any."""
        if self._late is None:
            return False
        self._late.flush()
        found = self._late.waits_for_any
        self._late.abandon()
        return found

    def open(self, path: bytes) -> SourceFile:
        """Open a file that this run brought, in place or not. Raises FileError."""
        for group in (self._delayed, self._held, self._late):
            waiting = None if group is None else group.open_waiting(path)
            if waiting is not None:
                return waiting
        return self._root.open_read(path)

    def abandon(self) -> None:
        """Remove the temporaries of everything that waits."""
        self._group.abandon()
        for group in (self._held, self._late):
            if group is not None:
                group.abandon()

    def report(self, item: ItemChanged) -> None:
        """Count and report a changed entry."""
        self.count(new=is_new(item.change))
        self._events.report(item)

    def count(self, *, new: bool) -> None:
        """Count a changed entry without a report. `new`: nothing was at its path."""
        self.changed += 1
        self.created += new

    def _committed(self, path: bytes) -> None:
        # A path without an entry belongs to a new file that was committed with many others.
        file = self._files.pop(path, None)
        copied = path in self._copied
        if copied:
            self._copied.remove(path)
        if file is not None and self._xattrs is not None:
            # Also of a file that was fetched unlooked at (-I -W): it gets its line here, whatever differs.
            self._xattrs.note_reported((file,))
        self._account(path, None if file is None else self._decisions.pop(file), transferred=not copied)

    def _account(self, path: bytes, decision: Decision | None, *, transferred: bool = True) -> None:
        if decision is None:
            self.report(ItemChanged(NEW_FILE, path))
            return
        new = decision.change in (Change.CREATE, Change.REPLACE)
        self.report(ItemChanged(itemize(Kind.FILE, decision, transferred=transferred, new=new), path))

    def _failed(self, error: RdcError) -> None:
        path = error.path_bytes if isinstance(error, FileError) else b""
        file = self._files.pop(path, None)
        if file is not None:
            self.failed.add(file)
        self._copied.discard(path)
        self._events.report(Problem(error.code, path, str(error)))
