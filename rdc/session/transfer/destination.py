"""A destination: what was asked of it (`Terms`), and what its parts work with (`Destination`)."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, one_line, printable
from rdc.files.replace.replacement import Replacement
from rdc.lean.records import dataclass, replace
from rdc.model.entries import Kind
from rdc.progress import Problem
from rdc.session.landing.guesses import Guesses
from rdc.session.trees.destination_root import ANYWHERE, asked_attributes, asked_metadata, wants_listing
from rdc.session.trees.destination_storage import DestinationStorage, known_facts
from rdc.session.trees.made_modes import with_made_mode
from rdc.tree.filters import FilteredTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.catalog.store import SignatureStore
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.model.entries import Identity, Metadata
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import FileFailed, Start
    from rdc.session.landing.file_commits import FileCommits
    from rdc.session.landing.partial_files import PartialFiles
    from rdc.session.runtime.event_relay import EventRelay, TransferProgress
    from rdc.session.trees.destination_root import DestinationRoot, Site
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.tree.filters import FilterList
    from rdc.tree.manifest import Manifest
    from rdc.tree.selection import Selection


@dataclass(frozen=True, slots=True)
class Terms:
    """What was asked: it holds for every run of one session at a destination."""

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
    """What owners of the source become; None for the same numbers."""
    uses_content: bool = True
    """Whether content and extended attributes of entries that are here may serve for new ones and be
    compared with them. False for a source that must not learn of them: it sends whole what differs by kind,
    size or time."""

    def wants_listing(self, path: bytes, site: Site = ANYWHERE) -> bool:
        """Whether to ask for the source's whole listing at once."""
        if not self.uses_content and asked_attributes(self.options):
            return True  # a digest of the tree would compare attributes
        return wants_listing(path, self.options, site)

    @property
    def in_sync_store(self) -> SignatureStore | None:
        """Where pairs of trees are remembered that need nothing; None: nowhere."""
        return self.signer.catalog if self.uses_content else None

    def has_top(self, start: Start) -> bool:
        """Whether the root directory itself is included, with its metadata."""
        return not start.only and (self.selection is None or self.selection.top_counts)


def mapping_of(options: SyncOptions) -> OwnerMapping | None:
    """What owners become by these options; None for the same numbers. Raises UsageError for names that this
    machine does not have."""
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
    """Those of earlier runs."""
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
            root.rely_on(known_facts(root, catalog), learned=False)
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
        """What both sides preserve, by what they announced. Digests cover it."""
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
        self.guesses = Guesses()
        """Which of the source's claims about local content did not hold."""

    def begin(
        self,
        manifest: Manifest,
        landing: FileCommits,
        partial_files: PartialFiles,
        progress: TransferProgress,
        *,
        seeks: bool,
    ) -> None:
        """Sets what content is brought in with."""
        self.manifest = manifest
        self.landing = landing
        self.partial_files = partial_files
        self.progress = progress
        self.seeks = seeks and self.uses_content

    def at(self, start: Start) -> Destination:
        """The same with another announcement."""
        other = Destination.__new__(Destination)
        other.__dict__.update(self.__dict__, start=start)
        return other

    @property
    def preserved(self) -> Preserved:
        """What both sides preserve, as far as is known by now."""
        return self.storage.preserved

    @property
    def has_top(self) -> bool:
        """Whether the root directory itself is included, with its metadata."""
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
        """What the new content of `path` is written to, of at most `size` bytes.

        `expected`: the entry that is there, None for nothing. `allocated`, `reserved`: as in Replacement.
        Raises RdcError.
        """
        if self.root.writes.overwrites and expected is not None and self.root.kind(path) is Kind.FILE:
            from rdc.files.replace.overwrite import Overwrite

            return Overwrite(self.root, path, expected, size=size, allocated=allocated)
        if self.root.writes.distant is not None:
            from rdc.files.replace.distant_replacement import DistantReplacement

            return DistantReplacement(
                self.root, path, expected_size=size, allocated=allocated, reserved=reserved
            )
        return Replacement(self.root, path, expected_size=size, allocated=allocated, reserved=reserved)

    def flush_links(self, path: bytes) -> bool:
        """Commits what waits, if the file at `path` is written into and has other names, one of which may
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
        """What a new version replaces: the entry that was listed at `path`; None: nothing was there."""
        listed = self.landing.listed.of(file)
        if listed is not None:
            self.flush_links(path)
        return listed

    def metadata(self, file: int, mtime_ns: int | None) -> Metadata:
        """The listed metadata, with another mtime if the file changed between listing and reading."""
        metadata = self.manifest.entry(file).metadata
        return metadata if mtime_ns is None else replace(metadata, mtime_ns=mtime_ns)

    def may_come(self, file: int, size: int) -> bool:
        """Whether to accept a file whose size may have changed since it was listed; reports a refusal.

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
        """Reports that the source could not read a file."""
        path = self.manifest.entry(failure.file).path
        self.events.report(Problem(failure.code, path, one_line(failure.message)))

    def problem(self, path: bytes, error: FileError) -> None:
        """Reports that a file could not be written. Exit code 24, which is about the source, becomes 23."""
        code = ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code
        self.events.report(Problem(code, path, str(error)))
