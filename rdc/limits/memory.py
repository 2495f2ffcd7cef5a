"""Limits of the memory that the entries of a tree, their extended attributes and spools may take."""

from __future__ import annotations

ENTRIES_MEMORY_SHARE = 2
"""Divisor of the machine's memory: by default a destination spends half of it on the entries that its source
announces. An entry takes 250 bytes, so 4 GiB of memory hold eight million. No fixed figure fits every
machine; a run that needs more than half would begin to swap. --max-memory overrides this limit."""

ENTRIES_MEMORY_DEFAULT = 1 << 30
"""Bytes for announced entries if the system does not report its memory: four million entries."""

ENTRIES_MEMORY_LEAST = 1 << 20
"""Smallest accepted --max-memory in bytes: some thousand entries."""

CHANGED_PATHS_BYTES = 32 << 20
"""Bytes for the paths of directories that a run changed, with 100 bytes of overhead each: 200,000 paths of
usual length. Beyond this limit the run does not record that its trees are in sync, and it reads the extended
attributes of all entries again."""

SPOOL_MEMORY_BYTES = 8 << 20
"""Bytes that a spool keeps in memory before it becomes a file: some 200,000 chunk records, a file of several
GB. Only huge files reach the disk, and a few spools stay far below the 250 MB that a side may use."""

RESERVED_AHEAD_BYTES = 64 << 20
"""Bytes of disk reserved for a file beyond those already received, and never more than were received. A peer
that only announces a size takes no space. Doubling up to this limit makes 23 calls for 1 GiB, and the file
lies in as few extents as with one call (measured on ext4)."""

MOUNT_POINTS = 1 << 18
"""Directories on other file systems that a source may name: more than twice what Linux allows in one mount
namespace (fs.mount-max). At some 100 bytes each they take 26 MB."""
