"""Limits of the search for similar files and folders."""

from __future__ import annotations

SIMILAR_FILES = 1 << 26
"""Files in one index of traits: 67 million, 2 GB of memory. Their numbers fit 32 bits."""

SIMILAR_MATCHES = 1024
"""Files that one query can ask for. A base is chosen among a handful; this limit keeps the heap in the
cache."""

SIMILAR_BATCH = 64
"""Queries answered per pass over an index, with the interpreter's lock held for one pass: 10 ms for a million
files."""

SIMILAR_PAIRS = 1 << 20
"""Candidate pairs of one search that wait for comparison: 8 bytes each, briefly 16. Comparing a million may
take half a minute. Weaker pairs beyond this limit are dropped and counted."""

FOLDER_PAIRS = 1 << 18
"""Pairs of directories whose common bytes are counted at a time, some 200 bytes each."""

SIMILAR_WINDOW = 65_536
"""Neighbours compared with each file, among those that share two of its traits, in a search for all pairs. A
million unrelated files share two traits with 244 others. Without this limit a million related files would
take half a million million comparisons, eighteen times."""

SPANNING_WINDOW = 4_096
"""Neighbours compared with each file in a search for groups only. Similar files beyond this limit are nearly
always connected through others; 131,072 files that are all similar take ten seconds."""
