"""Reports the entries of a directory that a run leaves as they are, for -ii and -vv."""

from __future__ import annotations

from rdc.files.base.relative_path import join
from rdc.model.entries import Kind
from rdc.model.options import leads_outside
from rdc.plan.itemize import unchanged_code
from rdc.progress import ItemChanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncOptions
    from rdc.plan.compare import Comparison
    from rdc.session.applying.allowed_changes import ComparedDirectory
    from rdc.session.runtime.event_relay import EventRelay

__all__ = ["report_unchanged"]


def report_unchanged(
    directory: ComparedDirectory, comparison: Comparison, options: SyncOptions, events: EventRelay
) -> None:
    """Reports the entries in which `comparison`, of the directory's listings, found no difference.

    An entry that an option skips is not among them, as in rsync.
    """
    listing = directory.listing
    busy = {decision.row for decision in comparison.decisions}
    busy.update(comparison.touched, comparison.checked)
    targets = listing.links()
    for row, kind in enumerate(listing.kinds):
        is_directory = kind == Kind.DIRECTORY
        skipped = (options.ignore_existing and not is_directory) or (
            kind == Kind.FILE and options.is_left_for_size(listing.sizes[row])
        )
        if options.safe_links and row in targets:
            skipped = skipped or leads_outside(targets[row], join(directory.path, listing.names[row]))
        if row not in busy and not skipped and kind != Kind.SPECIAL:
            path = join(directory.path, listing.names[row])
            code = unchanged_code(kind)
            events.report(ItemChanged(code, path + b"/" if is_directory else path, targets.get(row)))
