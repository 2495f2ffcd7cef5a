"""A destination whose parts are made by a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdc.catalog.signer import FileSigner
from rdc.files.root.root import Root
from rdc.model.sync import SyncOptions
from rdc.session.runtime.commands import EventRelay, TransferProgress
from rdc.session.transfer.destination import Destination, Guesses, Terms
from rdc.tree.filters import FilterList

if TYPE_CHECKING:
    from rdc.tree.manifest import Manifest


def destination_at(
    root: Root,
    manifest: Manifest,
    landing: Any,
    partial_files: Any,
    events: EventRelay,
    progress: TransferProgress,
    *,
    options: SyncOptions,
    secret: bytes = bytes(16),
) -> Destination:
    """Make a destination that has agreed nothing with a source and assumes nothing of the file system."""
    found = Destination.__new__(Destination)
    found.terms = Terms(options, FilterList(()), secret, FileSigner(workers=1))
    found.root, found.options, found.events = root, options, events
    found.secret, found.signer, found.pack = secret, found.terms.signer, True
    found.clones = found.alternates = None
    found.dry, found.whole, found.uses_content = options.dry_run, False, True
    found.guesses = Guesses()
    found.begin(found.root, manifest, landing, partial_files, progress, seeks=True)
    return found
