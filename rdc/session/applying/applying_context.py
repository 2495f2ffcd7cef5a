"""What the parts work with that turn compared directories into changes."""

from __future__ import annotations

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.applying.blocked_entries import BlockedEntries
    from rdc.session.applying.extraneous_entries import ExtraneousEntries
    from rdc.session.applying.transfers import Transfers
    from rdc.session.applying.unarrived import Unarrived
    from rdc.session.transfer.destination import Destination
    from rdc.session.trees.skipped_entries import SkippedEntries
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable


@dataclass(frozen=True, slots=True)
class ApplyingContext:
    """A destination while it changes, and the parts that take each kind of change."""

    at: Destination
    transfers: Transfers
    extraneous: ExtraneousEntries
    """Collects the entries that the source does not have."""
    unarrived: Unarrived
    """Knows which new entries did not arrive."""
    blocked: BlockedEntries
    """Takes entries with a directory in their place."""
    links: LinkTable | None
    """The source's hard links, which grow as directories arrive. Nothing else is done for a file that becomes
    a hard link. None: hard links are not preserved."""
    xattrs: WantedXattrs | None
    """Learns which entries differ in anything but attributes. None: attributes are not preserved."""
    skipped: SkippedEntries | None
    """Collects the entries that options and reserved names leave alone. None: nobody asks."""
