"""Limits of a session, of a watch and a daemon, and of what is kept between runs."""

from __future__ import annotations

# Limits of a session: files in flight, bases, trees, events, and the memory they take together.

WINDOW_SECONDS = (1 << 31) - 1
"""Seconds by which times may differ and be equal, at most: as many as rsync takes."""

# What a session keeps in memory, keeps open or has under way.

SOURCE_TREES_BYTES = 64 << 20
"""Bytes of signature trees that a source keeps between two requests: the trees of 20 GB of files. Other files
are signed again for the next request."""

CACHED_CONTENT_BYTES = 32 << 20
"""Bytes of small files that each side keeps in memory between requests about them, so no file is opened five
times. They are half of what a release of Linux compares. Further files are opened anew for each request."""

CACHED_FILE_BYTES = 64 << 10
"""Bytes of one file kept so: opening and closing a smaller file takes longer than reading it."""

SMALL_FILE_BYTES = 128 << 10
"""Bytes of the largest file that shares a message with others; at least four share one. A message of its own
costs some 50 microseconds per side, about as long as hashing and copying this many bytes."""

DEPTH_LIMIT = 64
"""Most calls to storage that --depth has in flight on one tree. Each takes a thread with a stack of 256 KiB,
and may take a descriptor. rows_at_once.h has the same."""

RATE_LEAST = 1 << 20
"""Least bytes a second of --max-rate. A run that is asked to end waits for reads of some megabytes."""

OPENED_FILES = 256
"""Files open at a time for a common comparison: a group that shares a reference. A low limit of descriptors
reduces it."""

OPENED_FILES_LEAST = 16
"""Smallest group that is compared in columns: assembling columns costs a smaller group more than it saves."""

ROOTS_REMEMBERED = 1 << 18
"""Entries of the largest tree whose small files' roots stay in memory (10 MB) and out of the catalog. For a
larger tree they go into the catalog."""

REMOVED_FILES = 1 << 20
"""Files that exist only at the destination and are remembered as rename candidates, with name, size and mtime
(about 80 bytes each). Beyond this limit a moved file is fetched like any other."""

SIGNED_RENAME_CANDIDATES = 32_768
"""Rename candidates whose root and traits are kept after the first read, about 400 bytes each. Others are
read again."""

EQUAL_ROOTS = 65_536
"""Files under way by descent whose root is remembered, about 130 bytes each. Others with the same content
wait for them instead of being fetched. Beyond this limit each equal file is fetched."""

EQUAL_FILES = 65_536
"""Files sent whole that a source may name instead of sending their content again, about 200 bytes each, and
files that it names so. Beyond this limit each equal file is sent."""

BASES_PER_FILE = 3
"""Bases of a file besides the one at its own path: each is read and searched."""

GUARDED_ENTRIES = 100
"""Entries of a destination from which on --guard looks at it. In a smaller one a share means little."""

ALTERNATE_DIRECTORIES = 20
"""Alternate directories of one run, as in rsync. Each costs a look for every new file."""

OPEN_BASES = 64
"""Base files kept open because other files are built from them and their own new versions may arrive first. A
low limit of descriptors reduces it. Beyond this limit such a file may cost a repair."""

TREES_IN_FLIGHT = 16_384
"""Files compared by descent at a time. Further files wait, which costs round trips."""

TREES_IN_FLIGHT_BYTES = 64 << 20
"""Estimated bytes of trees and look-up tables of all files in descent, or one file of any size."""

SMALL_MANIFEST = 200
"""Entries of the largest differing manifest that is listed whole: about 3 KB, as much as a descent costs."""

BUNDLE_BYTES = 2 << 20
"""Bytes of the changed files of one bundle, which each side assembles in memory. With 1 MiB, and half as much
packed at a time, a release of Linux took half as many block messages again. With 4 MiB, and twice as much
packed, it took 2 % more bytes (measured)."""

BUNDLED_FILE_BYTES = 512 << 10
"""Bytes of one file of a bundle. A descent takes both sides a millisecond or two, a file of a bundle a third
of that. From one release of Linux to the next, 54 of 56 deltas were of files between 192 KiB and this
size."""

BUNDLE_FILES = 256
"""Files per bundle: as many as are open at a time."""

BUNDLE_FILES_LEAST = 8
"""Smallest number of changed files that makes a bundle. Fewer are described singly, in more detail."""

BUNDLE_CHUNKS = 65_536
"""Chunks of a bundle's longer files: with the shortest chunks allowed there are fewer."""

BUNDLES_CACHED_BYTES = 96 << 20
"""Bytes of bundled content that each side keeps in memory between requests: enough for most runs, 85 MB for a
release of Linux. A million entries take a side 113 MB besides. Content beyond this limit is read again each
time, up to four times."""

BUNDLES_IN_FLIGHT = 256
"""Bundles under way at a time, at most 512 MB of files. Further bundles wait, which costs round trips."""

PROBLEMS_WAITING = 4_096
"""Problems that wait to be sent to the far side, at most 4 KiB of text each: 16 MiB. Beyond this limit only
their number is sent."""

UNTOLD_EVENTS = 4_096
"""Problems of one turn that a source keeps for a user at the far side, some 200 bytes each. Beyond this limit
problems of a tree with more unreadable entries are dropped."""

TIMEOUT_SECONDS = 1_000_000
"""Largest --timeout: eleven days. poll(2) counts milliseconds in 31 bits, which end after 24 days."""

BANDWIDTH_LEAST = 512
"""Bytes per second: rsync's own smallest --bwlimit. Below it a session's first messages would take
minutes."""


# The memory that the entries of a tree, their extended attributes and spools may take.

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

SHORT_PATH = 96
"""Longest path, in bytes, that tables and waiting events store whole. Of longer paths they store the parent
once for many. Most paths are no longer. A peer announces an entry in at least eight bytes. Storing its path
therefore costs at most twelve times as much."""

FAILED_FILES = 16
"""Attempts of a session to make files of local content that fail, before everything comes whole. An honest
source causes one only by chance, or by a file that changes in a way that nothing shows."""

FAILED_OF_BASE = 4
"""The same for one local file. A file that is requested has two attempts."""

WRONG_CELLS = 64
"""Check blocks of local content that a source may correct even if most of what was claimed is wrong. Of an
honest source's some are, by false matches of short fingerprints."""


# Limits of a watch: changes that wait to be read, and time between full comparisons.

TOUCHED_DIRECTORIES = 65_536
"""Directories and renames remembered from one burst of changes, some 10 MB. Beyond this limit the whole tree
is read, which then costs less than reading so many directories singly."""

RETRIED_FILES = 65_536
"""Files remembered as still being written. Beyond this limit the oldest one waits for the next comparison of
the whole trees."""

QUIET_SECONDS = 1.0
"""Seconds without a turn before the command of --on-sync runs. An editor or a checkout is done by then, and a
person does not wait for it."""

RESCAN_SECONDS = 31_536_000
"""Largest number of seconds between two comparisons of whole trees: a year. A larger value means "never"."""


CONNECT_SECONDS = 30
"""Seconds for a TCP connection and the TLS handshake with a daemon together. A distant daemon needs one
second; a lost packet or two need some more."""

HANDSHAKE_BYTES = 64 << 10
"""Bytes accepted from an unauthenticated peer. Its half of a TLS 1.3 handshake with one of rdc's certificates
is about 1 KiB. What it sends ahead of the answer is a few KiB, except options with long filter lists."""

KEY_FILE_BYTES = 64 << 10
"""Bytes of a file with a key or a certificate: rdc's own have 1 KiB, other RSA certificates a few."""

TRUSTED_KEYS = 10_000
"""Certificates per key directory: a daemon reads all of them at each reload."""

CERTIFICATES_PER_NAME = 4
"""Certificates trusted under one name: the old and the new one during a key change, and two forgotten
ones."""

EXPIRY_NOTICE_DAYS = 14
"""Days before a certificate's expiry from which the other side warns. They leave time to have a new
certificate trusted everywhere, and are too few for the warning to be ignored by then."""

DAEMON_TIMEOUT_SECONDS = 120
"""Default --timeout over rdc://, since TCP alone never notices a lost peer. It is half of a daemon's idle
limit, so keepalives come in time for both sides."""

SETTINGS_BYTES = 1 << 20
"""Bytes of a configuration file: thousands of modules."""

SETTINGS_KEY_PARTS = 32
"""Parts of a dotted key in a configuration file; the deepest setting has four. Python's TOML reader takes
time in the square of this number: half a million parts would block a reload for an hour."""


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


LINE_BYTES = 1 << 20
"""Bytes of one line of an undo journal: two paths of the longest kind in base64 take 45 KB, and a set of
extended attributes at most 90 KB."""

DIRECTORIES_KNOWN = 1 << 16
"""Directories that a sync remembers to have recorded. Beyond them it records some a second time."""

RECORDS = 100_000
"""Syncs that one destination may keep at a time: hourly ones of ten years."""
