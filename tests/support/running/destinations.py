"""A destination whose parts are made by a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rdc.catalog.signer import FileSigner
from rdc.files.root.root import Root
from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Start
from rdc.session.runtime.event_relay import EventRelay, TransferProgress
from rdc.session.transfer.destination import Destination, Terms
from rdc.session.trees.destination_root import DestinationRoot
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
    preserved = Preserved(owner=False)
    start = Start(b"", Kind.DIRECTORY, Metadata(0o755, 10**18, 0, 0), preserved)
    terms = Terms(options, FilterList(()), secret, FileSigner(workers=1))
    found = Destination(terms, DestinationRoot(root, None, False), start, events, preserved)
    found.begin(manifest, landing, partial_files, progress, seeks=True)
    return found
