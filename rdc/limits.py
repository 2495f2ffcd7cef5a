"""Every bound rdc enforces, in one place, each with its reason; lengths are checked before allocation."""

from __future__ import annotations

__all__ = [
    "CHUNK_MAX_LIMIT",
    "CHUNK_MIN_LIMIT",
    "CHUNK_RATIO_LIMIT",
    "FILTER_BYTES",
    "FILTER_PATTERN_BYTES",
    "FILTER_RULES",
    "PATH_BYTES",
    "NAME_BYTES",
    "NODE_RECORDS_MAX",
    "NODE_RECORDS_MIN",
    "TREE_HEIGHT",
    "WINNOW_MAX_LIMIT",
]

CHUNK_MIN_LIMIT = 64
"""Bytes. The cut hash reads 64 bytes: a smaller minimum would make neighbouring cuts depend on each other."""

CHUNK_MAX_LIMIT = 16 << 20
"""Bytes. A chunk is held in memory whole while it is hashed and checked, on both sides."""

CHUNK_RATIO_LIMIT = 8
"""max_size / min_size at most: wider windows only spread sizes without finding better cuts."""

NODE_RECORDS_MIN = 6
NODE_RECORDS_MAX = 26
"""Records in a signature node lie in (6, 26], about 16: ten edits of a 65,536-chunk file then cost 603
references, where 64 a node cost 1,350."""

TREE_HEIGHT = 24
"""Levels of a signature tree: each level shrinks by more than 6, and 6^24 > 2^62 records."""

WINNOW_MAX_LIMIT = 4_096
"""Records in one winnowing window at most: bounds the ring of candidates, far above any useful node."""

NAME_BYTES = 255
"""Bytes of one path component: NAME_MAX of every Linux file system in use."""

PATH_BYTES = 65_536
"""Bytes of a relative path. PATH_MAX (4,096) bounds one system call, not a tree walked by descriptors."""

FILTER_PATTERN_BYTES = 4_096
"""Bytes of one filter pattern: PATH_MAX, since a longer pattern without wildcards matches no path a user can
type."""

FILTER_RULES = 65_536
"""Rules of one run. Rules without wildcards cost one dictionary look-up together, so lists of that size are
usable."""

FILTER_BYTES = 4 << 20
"""Bytes of all patterns of one run: a peer sends them, and compiling them must stay a matter of seconds."""

DESCENT_MAP_RECORDS = 1 << 20
"""Base records of one level indexed by reference at a time, about 150 bytes each; a longer level (a file past
16 GiB) is indexed only below its nodes that did not match."""

FILE_BYTES = (1 << 63) - 1
"""Largest file length: off_t is signed."""
