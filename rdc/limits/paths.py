"""Limits of paths, of directory listings and of filter rules."""

from __future__ import annotations

NAME_BYTES = 255
"""Bytes of one path component: NAME_MAX of every Linux file system in use."""

PATH_BYTES = 16_384
"""Bytes of a relative path. PATH_MAX (4,096) bounds one system call, not a tree walked by descriptors. Four
times as much fits every tree that programs make on purpose. A larger limit would let a peer make this side
join, check and open longer paths for each entry."""

PATH_DEPTH = 2_048
"""Components of a relative path: as many as PATH_MAX bytes can hold. Each entry may cost a look-up of every
directory above it, so depth multiplies the work that a peer causes."""

DIRECTORY_BYTES = 1 << 30
"""Bytes of memory for one directory while it is read: 160 per entry, plus its name and link target. Six
million entries with names of usual length fit, more than any file system lists in reasonable time."""

ENTRY_BYTES = 160
"""Bytes counted per entry besides its name and target: its row of columns, as much before sorting, and its
slot in the sort."""

KEY_BYTES = 1024
"""Bytes of the name of an object in a store: as many as S3 takes."""

LISTING_EMPTY_PAGES = 1000
"""Pages without an entry that one listing of a store may have in a row. A store that never ends a listing
would hold a walk for ever."""

AHEAD_BYTES = 8 << 20
"""Bytes of directories that a walk listed before it came to them, counted like DIRECTORY_BYTES: some 40,000
entries."""

PARTS_BYTES = 1 << 20
"""Bytes of the record of a directory of --partial-dir: the parts of some 5,000 files. Each interrupted run
leaves the parts of a few."""

FILTER_PATTERN_BYTES = 4_096
"""Bytes of one filter pattern: PATH_MAX. A longer pattern without wildcards matches no path that a user can
type."""

FILTER_RULES = 65_536
"""Filter rules per run. All rules without wildcards together cost one dictionary look-up per entry, so long
lists stay usable."""

FILTER_WILD_RULES = 4_096
"""Filter rules with wildcards per run. Each one may cost a match per entry, about half a microsecond. A
longer list would take milliseconds per entry, and a peer's rules times its entries could take hours."""

FILTER_BYTES = 4 << 20
"""Bytes of all filter patterns of one run. A peer sends them, and compiling them must take seconds at
most."""

FILTER_MERGE_DEPTH = 16
"""Merge files inside merge files. People nest two or three; a file that merges itself has no end."""

SELECTED_NAMES = 524_288
"""Names that several SRC or --files-from select in a run. A side keeps about 200 bytes of each, so a peer can
make it use 100 MiB."""

SELECTED_DIRECTORIES = 262_144
"""Directories above these names. A side keeps about 400 bytes of each, and the path."""

SELECTED_BYTES = 32 << 20
"""Bytes of these names and of the directories that they are below: 64 bytes each, as in usual trees."""

SELECTED_LIST_BYTES = SELECTED_BYTES + SELECTED_NAMES
"""Bytes of a list of --files-from: all names that a run takes, and what ends each."""

FILTER_DIRECTORY_RULES = 16
"""Names of per-directory rule files that hold at once. Each costs one look-up in each directory. People use
one to three."""

RULE_FILE_BYTES = 256 << 10
"""Bytes of one per-directory rule file. Each directory may have one, and a peer's tree has any number of
directories."""

RULE_FILES = 65_536
"""Per-directory rule files of a destination that are in memory at once, until the run has deleted."""
