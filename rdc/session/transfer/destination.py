"""A destination: what was asked of it (`Terms`), what its parts work with (`Destination`), and what a way
of transfer is (`Transfer`).
"""

from __future__ import annotations

import contextlib
import os
from collections import deque

from rdc.errors import ExitCode, FileError, one_line, printable
from rdc.files.base.paths import OWN_DIRECTORIES, is_temporary_of, join
from rdc.lean.records import Record, replace
from rdc.limits import FAILED_FILES, FAILED_OF_BASE, WRONG_CELLS
from rdc.model.entries import Identity, Kind, Metadata
from rdc.progress import Problem
from rdc.session.runtime.commands import LineMeter
from rdc.session.trees.destination_root import (
    DestinationRoot,
    DestinationStorage,
    asked_attributes,
    asked_metadata,
    known_facts,
    wants_listing,
)
from rdc.session.trees.sites import ANYWHERE, Site, with_made_mode
from rdc.tree.filters import FilteredTree, FilterList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Any, ClassVar

    from rdc.catalog.signer import FileSigner
    from rdc.catalog.store import SignatureStore
    from rdc.files.replace.delayed_group import Leftovers
    from rdc.files.replace.partial_directory import PartialDirectory
    from rdc.files.replace.replacement import Replacement
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.plan.ways import Line
    from rdc.protocol.messages import FileFailed, Message, Start
    from rdc.session.runtime.commands import Conversation, EventRelay, TransferProgress
    from rdc.session.transfer.commits import FileCommits
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.tree.manifest import Manifest
    from rdc.tree.selection import Selection


LEAF_BLOCK = 1024
"""Bytes of the first blocks asked for, together with a file's tree."""


# Guesses: bounds what a source may find out of local files by fingerprints that it made up.
#
# A destination looks for a source's fingerprints in its own files, and asks for the ranges that it did not
# find. So a source that has no such content learns which of its guesses are here. An honest one has the
# content: its claims hold, but for false matches, and its files come out right. One whose claims or files
# fail too often gets no more answers of that kind from the file that it guessed about, and then from none:
# everything else comes whole.


class Guesses:
    """The claims of a session, and those that did not hold."""

    def __init__(self) -> None:
        self._claimed: dict[bytes, int] = {}
        self._wrong: dict[bytes, int] = {}
        """Check blocks, by path of the base. Bases without a wrong one are not kept in the second."""
        self._failed: dict[bytes, int] = {}
        """Attempts, by path of the base."""
        self._failures = 0
        self._all_claimed = self._all_wrong = 0

    @property
    def spent(self) -> bool:
        """Return whether no local file is to be compared any more in this session."""
        if self._failures >= FAILED_FILES:
            return True
        return self._all_wrong > 0 and _too_many(self._all_wrong, self._all_claimed)

    def is_spent(self, path: bytes) -> bool:
        """Return whether the local file at `path` is not to be compared any more."""
        if self.spent or self._failed.get(path, 0) >= FAILED_OF_BASE:
            return True
        wrong = self._wrong.get(path, 0)
        return wrong > 0 and _too_many(wrong, self._claimed.get(path, 0))

    def claimed(self, paths: Iterable[bytes], cells: int) -> None:
        """Note that this many check blocks with content of the files at `paths` were claimed."""
        for path in paths if cells else ():
            self._claimed[path] = self._claimed.get(path, 0) + cells
        self._all_claimed += cells

    def wrong(self, paths: Iterable[bytes], cells: int) -> None:
        """Note that the source corrected this many of them."""
        for path in paths:
            self._wrong[path] = self._wrong.get(path, 0) + cells
        self._all_wrong += cells

    def failed(self, paths: Iterable[bytes]) -> None:
        """Note that what was made with content of the files at `paths` did not have the announced digest."""
        self._failures += 1
        for path in paths:
            self._failed[path] = self._failed.get(path, 0) + 1


def _too_many(wrong: int, claimed: int) -> bool:
    """Return whether more is wrong than an honest source's false matches are."""
    return wrong > WRONG_CELLS and 2 * wrong > claimed


# Partial files of interrupted runs: bases for the same files in this run, removed at its end.
#
# Only rdc's own temporaries count (rdc.files.replace.commit_group). Other entries with reserved names
# stay.


def _left_out(filters: FilterList, path: bytes) -> bool:
    try:
        return filters.excluded(path, False)
    except FileError:
        return True  # its rules cannot be read, so its directory is left alone, which the run reports


def refused_name(path: bytes) -> str:
    """Return the message for an entry of the source that is refused because of its name."""
    return (
        f"{printable(path)}: refused, because rdc keeps this form of names for its temporary files; rename it"
        " at the source"
    )


def left_alone(path: bytes) -> str:
    """Return the message for a local entry that has a reserved name and is not a temporary of rdc."""
    return (
        f"{printable(path)}: left alone: it has the name of a temporary file, but is no copy that rdc was"
        " making; look at it, then rename or remove it"
    )


class PartialFiles:
    """Entries with reserved names that listings found, by directory."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._names: dict[bytes, list[bytes]] = {}
        self.any_found = False
        """True if any listing found such names. Most runs find none."""
        self._elsewhere: list[Leftovers | PartialDirectory] = []
        if root.writes.distant is not None:
            from rdc.files.replace.delayed_group import Leftovers

            self._elsewhere.append(Leftovers(root, root.writes.distant))
        if root.writes.partials is not None:
            from rdc.files.replace.partial_directory import PartialDirectory

            if isinstance(root.writes.partials, PartialDirectory):
                self._elsewhere.append(root.writes.partials)
        self.any_found = any(self._elsewhere)
        self._owners: dict[bytes, Leftovers | PartialDirectory] = {}
        """The place of each path that begins with a slash."""

    def note(self, directory: bytes, names: list[bytes]) -> None:
        """Store the reserved names that a listing found in a directory."""
        self._names[directory] = names
        self.any_found = True

    def of(self, path: bytes) -> bytes | None:
        """Path of the longest partial copy that rdc made of `path`; None if there is none. It begins with a
        slash if the copy is in the directory of --temp-dir or --partial-dir.

        Removes shorter partial copies of the same file.
        """
        for store in self._elsewhere:
            found_there = store.of(path)
            if found_there is not None:
                self._owners[found_there] = store
                return found_there
        if not self._names:
            return None
        from rdc.files.replace.commit_group import is_own_partial

        directory, name = os.path.split(path)
        own = [found for found in self._names.get(directory, ()) if is_temporary_of(found, name)]
        sized = []
        # A temporary hard link to a finished file is no partial copy. The last sweep removes it: removing it
        # now changes the finished file's ctime, which looks like a write by another program.
        for found in own:
            try:
                here = self._root.directory(directory)
                entry = os.stat(found, dir_fd=here.fd, follow_symlinks=False)
                if is_own_partial(found, entry, os.fstat(here.fd)):
                    sized.append((entry.st_size, found))
            except (FileError, OSError):
                continue  # another run finished it
        if not sized:
            return None
        from rdc.files.replace.commit_group import sweep_temporaries

        sized.sort()
        sweep_temporaries(self._root, directory, [found for _, found in sized[:-1]])
        return join(directory, sized[-1][1])

    def open(self, path: bytes) -> SourceFile:
        """Open a partial file. Raises FileError."""
        store = self._owners.get(path)
        return self._root.open_read(path) if store is None else store.open(path)

    def remove(self, path: bytes) -> None:
        """Remove one partial file."""
        if path in self._owners:
            self._owners.pop(path).remove([path])
            return
        from rdc.files.replace.commit_group import sweep_temporaries

        directory, name = os.path.split(path)
        with contextlib.suppress(FileError):
            sweep_temporaries(self._root, directory, [name])
        self._names[directory] = [found for found in self._names.get(directory, ()) if found != name]

    def foreign(
        self, filters: FilterList, *, only: bytes | None, selection: Selection | None = None
    ) -> list[bytes]:
        """Return the paths of entries with reserved names that are not temporaries of rdc, except excluded
        ones.

        `only`: the one name that counts in the top directory; None: all count. `selection`: what counts;
        None: all.
        """
        if not self._names:
            return []  # most runs end here and import nothing
        from rdc.files.replace.commit_group import foreign_names

        found = []
        for directory, names in sorted(self._names.items()):
            try:
                foreign = foreign_names(self._root, directory, names)
            except FileError:
                continue  # the directory vanished
            counted = (
                name
                for name in foreign
                if (directory or (only in (None, name) and name not in OWN_DIRECTORIES))
                and (selection is None or selection.takes(directory, name))
            )
            found += [join(directory, name) for name in counted]
        return [path for path in found if not _left_out(filters, path)]

    def sweep(self) -> None:
        """Remove all remaining temporaries of rdc."""
        for store in self._elsewhere:
            store.remove()
        if not self._names:
            return
        from rdc.files.replace.commit_group import sweep_temporaries

        for directory, names in self._names.items():
            try:
                sweep_temporaries(self._root, directory, names)
            except FileError:
                continue  # the directory vanished
        self._names = {}


class Transfer:
    """One way in which content arrives. It is listed in Transfers from its first use on, which then asks it
    after each message whether it has something to send, and hands it the answers to its requests."""

    rank: ClassVar[int]
    """Its place in the list. What finds out how a file comes precedes what brings it."""
    answers: ClassVar[Collection[type[Message]]]
    """The messages that it may have asked for."""

    @property
    def idle(self) -> bool:
        """Return whether no request is outstanding and no file waits."""
        raise NotImplementedError

    @property
    def waits(self) -> bool:
        """Return whether `pump` may have something to send. After most messages it has nothing."""
        return not self.idle

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Send the requests that may go now. `planned`: all files are known."""
        raise NotImplementedError

    def expects(self, message: Any) -> bool:
        """Return whether a message of `answers` is for this one. If not, the next in the list is asked."""
        return True

    def take(self, message: Any, round_: int) -> Conversation[None]:
        """Take a message that it expects. Raises ProtocolError if the message does not fit."""
        raise NotImplementedError

    def close(self) -> None:
        """End the session. The next run resumes unfinished files from their partial files."""


class FileQueue(deque[int]):
    """Files that wait to be requested, in the order in which they were added."""

    def drained(self, most: int) -> tuple[int, ...]:
        """Take up to `most` files from the front and sort them, because requests name files in order."""
        taken = [self.popleft() for _ in range(min(most, len(self)))]
        return tuple(sorted(taken))


class DeferredFiles:
    """New files, deferred until the comparison is complete: only then is it known where their content may be.
    They stay in the order in which they were listed."""

    def __init__(self) -> None:
        self._files = FileQueue()
        self._hints: dict[int, tuple[bytes, ...]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Add a file that does not exist locally. `bases`: local files that may have its content."""
        self._files.append(file)
        if bases:
            self._hints[file] = bases

    def drained(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Take all files, each with its bases."""
        while self._files:
            file = self._files.popleft()
            yield file, self._hints.pop(file, ())


# A destination: what was asked of it (`Terms`), and what its parts work with (`Destination`).


class Terms(Record):
    """The terms that hold for every run of one session at a destination."""

    options: SyncOptions
    filters: FilterList
    """Not yet bound to a tree."""
    secret: bytes
    """Key of the session's short digests."""
    signer: FileSigner
    pack: bool = True
    """Ask for literals that are compressed with their surroundings."""
    clones: StagedClones | None = None
    """Clones of the source's files, if the source is in this process."""
    selection: Selection | None = None
    """The entries that are included; None for all that the source announces."""
    owners: OwnerMapping | None = None
    """The mapping of the source's owners; None for the same numbers."""
    here: bool = False
    """The source is in this process."""
    uses_content: bool = True
    """True if content and extended attributes of entries that are here may serve for new ones and be
    compared with them. False for a source that must not learn of them: it sends whole what differs by kind,
    size or time."""

    def wants_listing(self, path: bytes, site: Site = ANYWHERE) -> bool:
        """Return whether to ask for the source's whole listing at once."""
        if not self.uses_content and asked_attributes(self.options):
            return True  # a digest of the tree would compare attributes
        return wants_listing(path, self.options, site)

    @property
    def in_sync_store(self) -> SignatureStore | None:
        """Return where pairs of trees are remembered that need nothing; None: nowhere."""
        return self.signer.catalog if self.uses_content else None

    def has_top(self, start: Start) -> bool:
        """Return whether the root directory itself is included, with its metadata."""
        return not start.only and (self.selection is None or self.selection.top_counts)


def mapping_of(options: SyncOptions) -> OwnerMapping | None:
    """Return what owners become by these options; None for the same numbers. Raises UsageError for names that
    this machine does not have."""
    if not options.maps_owners:
        return None
    from rdc.session.trees.owner_mapping import owner_mapping

    return owner_mapping(options)


class Destination:
    """One destination in one run: its tree, the source's tree, and what brings content from one into the
    other.

    The attributes from `manifest` on are set by `begin`, once there is something to change.
    """

    manifest: Manifest
    """The source's. A file is named by its row."""
    landing: FileCommits
    partial_files: PartialFiles
    """The files of earlier runs."""
    progress: TransferProgress
    seeks: bool
    """The destination has files, which may have the content of new ones."""

    def __init__(
        self,
        terms: Terms,
        destination_root: DestinationRoot,
        start: Start,
        events: EventRelay,
        described: Preserved,
    ) -> None:
        """`start`: as the source announced it. `described`: what this side announced that it preserves."""
        # long because it only stores what was agreed
        agreed = described.both(start.kept)
        options, root, catalog = terms.options, destination_root.root, terms.signer.catalog
        asked = replace(asked_metadata(options), attributes=described.attributes)
        if not root.storage.is_learned:
            root.rely_on(known_facts(root, catalog, fakes=root.reads.fakes), learned=False)
        root.storage.agree(asked, start.kept, insists=bool(options.owner))
        self.terms = terms
        self.options = options
        self.destination_root = destination_root
        self.root = root
        self.new = destination_root.new
        """The destination's root directory is new."""
        self.alternates = destination_root.alternates
        """Directories that may have files of the destination; None: the run has none."""
        self.described = described
        self.agreed = agreed
        """The metadata that both sides preserve, by their announcements. Digests cover them."""
        self.storage = DestinationStorage(root, catalog, events.report, options, asked)
        """The file system, and what it turns out to preserve."""
        if terms.owners is not None:
            terms.owners.applies = agreed.owner
        tree = FilteredTree(root, start.only, destination_root.served, terms.selection)
        deletes = options.delete or options.delete_missing_args
        self.filters = terms.filters.at_destination(
            tree, delete=deletes, delete_excluded=options.delete_excluded
        )
        """The session's, as they apply here."""
        self.start = replace(
            start, metadata=with_made_mode(agreed.metadata(start.metadata), start.entry, agreed)
        )
        """The source's announcement, with the metadata that both sides preserve."""
        self.events = events
        self.dry = options.dry_run
        """A dry run: the session reports changes and makes none."""
        self.secret, self.signer, self.pack, self.clones = (
            terms.secret,
            terms.signer,
            terms.pack,
            terms.clones,
        )
        self.selection, self.owners, self.uses_content = terms.selection, terms.owners, terms.uses_content
        self.whole = options.whole_file or not terms.uses_content
        """Changed files come whole."""
        self.meter = LineMeter()
        self.guesses = Guesses()
        """The source's claims about local content that did not hold."""

    def begin(
        self,
        root: Root,
        manifest: Manifest,
        landing: FileCommits,
        partial_files: PartialFiles,
        progress: TransferProgress,
        *,
        seeks: bool,
    ) -> None:
        """Set what content is brought in with. `root`: the tree with the policy of this run."""
        self.root = root
        self.manifest = manifest
        self.landing = landing
        self.partial_files = partial_files
        self.progress = progress
        self.seeks = seeks and self.uses_content

    def at(self, start: Start) -> Destination:
        """Return the context with another announcement."""
        other = Destination.__new__(Destination)
        other.__dict__.update(self.__dict__, start=start)
        return other

    @property
    def line(self) -> Line | None:
        """Return what is known of the line to the source; None: that decides nothing."""
        from rdc.plan.ways import line_of

        return None if self.whole else line_of(self.options, here=self.terms.here)

    @property
    def preserved(self) -> Preserved:
        """Return what both sides preserve, as far as is known by now."""
        return self.storage.preserved

    @property
    def has_top(self) -> bool:
        """Return whether the root directory itself is included, with its metadata."""
        return self.terms.has_top(self.start)

    def new_version(
        self,
        path: bytes,
        expected: Identity | None,
        size: int,
        *,
        allocated: int | None = None,
        reserved: bool = True,
    ) -> Replacement:
        """Return what the new content of `path` is written to, of at most `size` bytes.

        `expected`: the entry that is there, None for nothing. `allocated`, `reserved`: as in Replacement.
        Raises RdcError.
        """
        if self.root.writes.overwrites and expected is not None and self.root.kind(path) is Kind.FILE:
            from rdc.files.replace.overwrite import Overwrite

            return Overwrite(self.root, path, expected, size=size, allocated=allocated)
        if self.root.writes.distant is not None:
            from rdc.files.replace.delayed_group import DistantReplacement

            return DistantReplacement(
                self.root, path, expected_size=size, allocated=allocated, reserved=reserved
            )
        from rdc.files.replace.replacement import Replacement

        return Replacement(self.root, path, expected_size=size, allocated=allocated, reserved=reserved)

    def flush_links(self, path: bytes) -> bool:
        """Commit what waits, if the file at `path` is written into and has other names, one of which may
        wait. Returns whether it did: the file may have changed."""
        if not self.root.writes.overwrites:
            return False
        try:
            if self.root.link_count(path) < 2:
                return False
        except FileError:
            return False  # the next step that opens it reports why
        self.landing.flush()
        return True

    def expected(self, file: int, path: bytes) -> Identity | None:
        """Return what a new version replaces: the entry that was listed at `path`; None: nothing was
        there."""
        listed = self.landing.listed.of(file)
        if listed is not None:
            self.flush_links(path)
        return listed

    def metadata(self, file: int, mtime_ns: int | None) -> Metadata:
        """Return the listed metadata, with another mtime if the file changed between listing and reading."""
        metadata = self.manifest.entry(file).metadata
        return metadata if mtime_ns is None else replace(metadata, mtime_ns=mtime_ns)

    def may_come(self, file: int, size: int) -> bool:
        """Return whether to accept a file whose size may have changed since it was listed; reports a refusal.

        The comparison of directories has checked the listed size already.
        """
        if not self.options.is_left_for_size(size):
            return True
        entry = self.manifest.entry(file)
        path = entry.path
        if size == entry.size:
            return True
        self.events.report(
            Problem(
                ExitCode.VANISHED,
                path,
                f"{printable(path)}: changed while it was synced: expected"
                f" {entry.size} bytes, found {size}, which --min-size or --max-size leaves"
                " alone; run again once it is left alone",
            )
        )
        return False

    def unsent(self, failure: FileFailed) -> None:
        """Report that the source could not read a file."""
        path = self.manifest.entry(failure.file).path
        self.events.report(Problem(failure.code, path, one_line(failure.message)))

    def problem(self, path: bytes, error: FileError) -> None:
        """Report that a file could not be written. Exit code 24, which is about the source, becomes 23."""
        code = ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code
        self.events.report(Problem(code, path, str(error)))
