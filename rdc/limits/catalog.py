"""Limits of the catalog of signatures and of the journals of hard links."""

from __future__ import annotations

CATALOG_BYTES = 512 << 20
"""Bytes of the catalog's file before the least recently used signatures are removed: those of some two
million small files, or of 200 GB of large ones."""

CATALOG_ENTRY_BYTES = 64 << 20
"""Bytes of one encoded signature in the catalog: a file of about 29 GB. Decoding takes twice that in memory,
and a side may use 250 MB. Larger files are signed each time."""

CATALOG_BATCH_BYTES = 4 << 20
CATALOG_BATCH_ENTRIES = 2_048
"""Encoded signatures written per transaction (about 10 ms): what a kill loses."""

CATALOG_IN_SYNC = 10_000
"""Pairs of trees remembered as in sync, 32 bytes each: more than one machine syncs."""

REMEMBERED_FILE_SYSTEMS = 256
"""File systems of which the facts are remembered, less than 100 bytes each: more than a machine mounts in a
month."""

JOURNAL_BYTES = 1 << 30
"""Bytes of a journal of hard links: four million of them at paths of usual length."""

JOURNALS_READ = 1000
"""Journals of earlier runs, newest first, that a run reads to clean up after an interrupted one: more than a
year of daily runs."""
