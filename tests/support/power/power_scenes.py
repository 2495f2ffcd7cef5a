"""Every command that writes, as a scene for a power cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.support.power import power_dedupes, power_removals, power_stores, power_syncs
from tests.support.power.power_checks import Scene

__all__ = ["SCENES"]

SCENES: dict[str, Callable[[Path, Path], Scene]] = {
    "sync": power_syncs.mixed,
    "sync --fewest-bytes": power_syncs.by_delta,
    "sync of many small files": power_syncs.bulk,
    "sync --hard-links": power_syncs.hard_links,
    "sync --remove-source-files": power_syncs.removing_source_files,
    "sync --backup-dir": power_syncs.backups,
    "sync --inplace": power_syncs.inplace,
    "sync --sparse": power_syncs.sparse,
    "sync of clones": power_syncs.cloned,
    "watch": power_syncs.watched,
    "dedupe": power_dedupes.linking,
    "dedupe over leftovers": power_dedupes.clearing,
    "dedupe --undo": power_dedupes.undoing,
    "dedupe of files not synced": power_dedupes.unsettled,
    "dedupe --journal": power_dedupes.journalled,
    "dupes --delete": power_removals.removing("delete"),
    "dupes --move": power_removals.removing("move"),
    "dupes --symlink": power_removals.removing("symlink"),
    "dupes, undone": power_removals.returning,
    "catalog": power_stores.catalogued,
    "scan -o": power_stores.outputs,
    "keys": power_stores.keys,
}
"""By what is run: builds the scene in an empty directory, with the recorder's library."""
