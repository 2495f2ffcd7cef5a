"""What the parts work with that turn compared directories into changes."""

from __future__ import annotations

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.applying.blocked_entries import BlockedEntries
    from rdc.session.applying.extraneous_entries import ExtraneousEntries
    from rdc.session.applying.file_router import FileRouter
    from rdc.session.applying.unarrived import Unarrived
    from rdc.session.landing.file_commits import FileCommits
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.trees.alternate_directories import AlternateDirectories
    from rdc.session.trees.destination_storage import DestinationStorage
    from rdc.session.trees.skipped_entries import SkippedEntries
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.filters import DestinationFilters
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Manifest
    from rdc.tree.selection import Selection

__all__ = ["ApplyingContext"]


@dataclass(frozen=True, slots=True)
class ApplyingContext:
    """One destination while it changes: the wanted tree, and the parts that take each kind of change."""

    root: Root
    new: bool
    """The destination's root directory is new."""
    start: Start
    options: SyncOptions
    filters: DestinationFilters
    storage: DestinationStorage
    """The file system, and what both sides preserve."""
    manifest: Manifest
    """The source's. A file is named by its row."""
    landing: FileCommits
    router: FileRouter
    extraneous: ExtraneousEntries
    """Collects the entries that the source does not have."""
    unarrived: Unarrived
    """Knows which new entries did not arrive."""
    blocked: BlockedEntries
    """Takes entries with a directory in their place."""
    events: EventRelay
    links: LinkTable | None
    """The source's hard links, which grow as directories arrive. Nothing else is done for a file that becomes
    a hard link. None: hard links are not preserved."""
    xattrs: WantedXattrs | None
    """Learns which entries differ in anything but attributes. None: attributes are not preserved."""
    alternates: AlternateDirectories | None
    """Directories that may have files of the destination; None: the run has none."""
    skipped: SkippedEntries | None
    """Collects the entries that options and reserved names leave alone. None: nobody asks."""
    has_top: bool
    """The root directory itself takes part, with its metadata."""
    selection: Selection | None
    """What takes part; None for all that the source announces."""
    uses_content: bool
    """As in SessionTerms."""

    @property
    def preserved(self) -> Preserved:
        """What both sides preserve, as far as is known by now."""
        return self.storage.preserved
