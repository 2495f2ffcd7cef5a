"""The record that the parts of one destination share, made once from what both sides announced."""

from __future__ import annotations

from rdc.records import dataclass, replace
from rdc.session.trees.destination_root import ANYWHERE, asked_attributes, asked_metadata, wants_listing
from rdc.session.trees.destination_storage import DestinationStorage, known_facts
from rdc.session.trees.made_modes import with_made_mode
from rdc.tree.filters import FilteredTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.files.replace.staged_clones import StagedClones
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.destination.in_sync_pairs import InSyncStore
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.trees.destination_root import DestinationRoot, Site
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.tree.filters import DestinationFilters, FilterList
    from rdc.tree.selection import Selection

__all__ = ["DestinationContext", "SessionTerms", "destination_context", "mapping_of"]


@dataclass(frozen=True, slots=True)
class DestinationContext:
    """One destination: where it is, what the run wants of it, and what its parts work with."""

    destination_root: DestinationRoot
    start: Start
    """The source's announcement, with the metadata that both sides preserve."""
    options: SyncOptions
    filters: DestinationFilters
    """The session's, as they count here."""
    secret: bytes
    """Key of the session's short digests."""
    signer: FileSigner
    events: EventRelay
    described: Preserved
    """What this side announced that it preserves."""
    agreed: Preserved
    """What both sides preserve, by what they announced. Digests cover it."""
    storage: DestinationStorage
    """The file system, and what it turns out to preserve."""
    pack: bool
    """Ask for literals that are compressed with their surroundings."""
    clones: StagedClones | None
    """Clones of the source's files, if the source is in this process."""
    selection: Selection | None = None
    """What takes part; None for all that the source announces."""
    owners: OwnerMapping | None = None
    """What owners of the source become; None for the same numbers."""
    uses_content: bool = True
    """As in SessionTerms."""

    @property
    def preserved(self) -> Preserved:
        """What both sides preserve, as far as is known by now."""
        return self.storage.preserved

    @property
    def has_top(self) -> bool:
        """Whether the root directory itself takes part, with its metadata."""
        return _has_top(self.start, self.selection)


@dataclass(frozen=True, slots=True)
class SessionTerms:
    """What holds for every run of one session at a destination."""

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
    """What takes part; None for all that the source announces."""
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
    def in_sync_store(self) -> InSyncStore | None:
        """Where pairs of trees are remembered that need nothing; None: nowhere."""
        return self.signer.catalog if self.uses_content else None

    def has_top(self, start: Start) -> bool:
        """Whether the root directory itself takes part, with its metadata."""
        return _has_top(start, self.selection)


def _has_top(start: Start, selection: Selection | None) -> bool:
    return not start.only and (selection is None or selection.top_counts)


def mapping_of(options: SyncOptions) -> OwnerMapping | None:
    """What owners become by these options; None for the same numbers. Raises UsageError for names that this
    machine does not have."""
    if not options.maps_owners:
        return None
    from rdc.session.trees.owner_mapping import owner_mapping

    return owner_mapping(options)


def destination_context(
    terms: SessionTerms,
    destination_root: DestinationRoot,
    start: Start,
    events: EventRelay,
    described: Preserved,
) -> DestinationContext:
    """The context of a run. `start`: as the source announced it."""
    preserved = described.both(start.kept)
    options, root, catalog = terms.options, destination_root.root, terms.signer.catalog
    asked = replace(asked_metadata(options), attributes=described.attributes)
    if not root.storage.is_learned:
        root.rely_on(known_facts(root, catalog), learned=False)
    root.storage.agree(asked, start.kept, insists=bool(options.owner))
    storage = DestinationStorage(root, catalog, events.report, options, asked)
    if terms.owners is not None:
        terms.owners.applies = preserved.owner
    tree = FilteredTree(destination_root.root, start.only, destination_root.served, terms.selection)
    deletes = options.delete or options.delete_missing_args
    filters = terms.filters.at_destination(tree, delete=deletes, delete_excluded=options.delete_excluded)
    return DestinationContext(
        destination_root=destination_root,
        start=replace(
            start, metadata=with_made_mode(preserved.metadata(start.metadata), start.entry, preserved)
        ),
        options=options,
        filters=filters,
        secret=terms.secret,
        signer=terms.signer,
        events=events,
        described=described,
        agreed=preserved,
        storage=storage,
        pack=terms.pack,
        clones=terms.clones,
        selection=terms.selection,
        owners=terms.owners,
        uses_content=terms.uses_content,
    )
