"""Limits of chunks, of blocks below the chunk and of signature trees."""

from __future__ import annotations

CHUNK_MIN_LIMIT = 64
"""Bytes. The cut hash reads 64 bytes: with a smaller minimum, neighbouring cuts would depend on each
other."""

CHUNK_MAX_LIMIT = 16 << 20
"""Bytes. Both sides hold a whole chunk in memory while they hash and check it."""

CHUNK_RATIO_LIMIT = 8
"""Largest max_size / min_size: a wider window only spreads sizes without finding better cuts."""

BLOCK_SIZE_MIN = 16
BLOCK_SIZE_MAX = 64 << 10
"""Bytes of a block below the chunk. A fingerprint has 2 to 8 bytes, so smaller blocks gain nothing."""

NODE_RECORDS_MIN = 6
NODE_RECORDS_MAX = 26
"""A signature node has more than 6 and at most 26 records, about 16 on average. Ten edits of a file of 65,536
chunks then cost 603 references; with 64 records per node they cost 1,350."""

TREE_HEIGHT = 24
"""Levels of a signature tree: each level shrinks by a factor above 6, and 6^24 > 2^62 records."""

WINNOW_MAX_LIMIT = 4_096
"""Records in one winnowing window, far above any useful node: this limit bounds the ring of candidates."""

DESCENT_MAP_RECORDS = 1 << 20
"""Base records of one level that are indexed by reference at a time, about 150 bytes each. A longer level (a
file above 16 GiB) is indexed only below its nodes without a match."""
