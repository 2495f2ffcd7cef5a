"""Limits of what a sync keeps to be undone."""

from __future__ import annotations

LINE_BYTES = 1 << 20
"""Bytes of one line of an undo journal: two paths of the longest kind in base64 take 45 KB, and a set of
extended attributes at most 90 KB."""

DIRECTORIES_KNOWN = 1 << 16
"""Directories that a sync remembers to have recorded. Beyond them it records some a second time."""

RECORDS = 100_000
"""Syncs that one destination may keep at a time: hourly ones of ten years."""
