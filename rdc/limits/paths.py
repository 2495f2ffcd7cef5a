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

FILTER_RULES = 1 << 20
"""Filter rules per run: a list of a million paths, such as another program writes. All rules without
wildcards together cost a look-up per entry, so long lists stay usable. A side keeps 250 bytes of each."""

FILTER_BYTES = 64 << 20
"""Bytes of all filter patterns of one run: 64 for each of a million. A peer sends them."""

FILTER_WILD_BYTES = 4 << 20
"""Bytes of the filter patterns with wildcards of one run. They are states of one automaton, which takes up to
60 MB, and half a millisecond for a usual name. 500 usual patterns have 5,000 bytes and take half a
microsecond."""

DIRECTORY_WILD_BYTES = 1 << 20
"""Bytes of the patterns with wildcards that hold at once in one directory, where some are in files of the
tree. A hostile tree makes each of its entries cost 2 milliseconds, if its names have 255 bytes."""

FILTER_FILES = 4_096
"""Per-directory rule files that hold at once: each costs some microseconds per entry."""

FILTER_MERGE_DEPTH = 16
"""Merge files inside merge files. People nest two or three; a file that merges itself has no end."""

SELECTED_NAMES = 1 << 20
"""Names that several SRC or --files-from select in a run: a list of a million files. A side keeps about 150
bytes of each."""

SELECTED_DIRECTORIES = 524_288
"""Directories above these names. A side keeps about 300 bytes of each, and the path."""

SELECTED_BYTES = 64 << 20
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

RULE_FILES_BYTES = 16 << 20
"""Bytes of these files: 256 for each. Compiled they take some ten times as much."""
