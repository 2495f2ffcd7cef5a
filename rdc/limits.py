"""Every bound rdc enforces, in one place, each with its reason; lengths are checked before allocation."""

from __future__ import annotations

__all__ = [
    "ATTRIBUTES_HELD_BYTES",
    "ATTRIBUTE_MESSAGE_BYTES",
    "ATTRIBUTE_NAME_BYTES",
    "ATTRIBUTE_SET_BYTES",
    "ATTRIBUTE_VALUE_BYTES",
    "BLOCKS_PER_MESSAGE",
    "BLOCK_BYTES",
    "BLOCK_SIZE_MAX",
    "BLOCK_SIZE_MIN",
    "BUNDLED_FILE_BYTES",
    "BUNDLES_HELD_BYTES",
    "BUNDLES_IN_FLIGHT",
    "BUNDLE_BYTES",
    "BUNDLE_CHUNKS",
    "BUNDLE_FILES",
    "BUNDLE_FILES_LEAST",
    "CATALOG_BATCH_BYTES",
    "CATALOG_BATCH_ENTRIES",
    "CATALOG_BYTES",
    "CATALOG_ENTRY_BYTES",
    "CATALOG_SETTLED",
    "CELLS_PER_ANSWER",
    "CELLS_PER_MESSAGE",
    "CERTIFICATES_PER_NAME",
    "CHUNK_MAX_LIMIT",
    "CHUNK_MIN_LIMIT",
    "CHUNK_RATIO_LIMIT",
    "CONNECT_SECONDS",
    "DAEMON_TIMEOUT_SECONDS",
    "DATA_BYTES",
    "DIRECTORY_BYTES",
    "EQUAL_FILES",
    "EQUAL_ROOTS",
    "EXPIRY_NOTICE_DAYS",
    "FILES_PER_GROUP",
    "FILES_PER_MESSAGE",
    "FILTER_BYTES",
    "FILTER_PATTERN_BYTES",
    "FILTER_RULES",
    "FOLDER_PAIRS",
    "FRAME_BYTES",
    "FURTHER_BYTES",
    "GONE_BYTES",
    "HANDSHAKE_BYTES",
    "INBOUND_BYTES",
    "JOURNAL_BYTES",
    "KEY_FILE_BYTES",
    "MESSAGE_BYTES",
    "NAME_BYTES",
    "NODES_PER_MESSAGE",
    "NODE_BYTES",
    "NODE_RECORDS_MAX",
    "NODE_RECORDS_MIN",
    "OPENED_FILES",
    "OPENED_FILES_LEAST",
    "ORDINAL_LIMIT",
    "OUTSTANDING_ORDINALS",
    "OUTSTANDING_REQUESTS",
    "PACKED_BYTES",
    "PACKED_CONTEXT_BYTES",
    "PART_SECTION_BYTES",
    "PATH_BYTES",
    "PIECE_BYTES",
    "RANGES_PER_MESSAGE",
    "RECORDS_BYTES",
    "REPORT_BYTES",
    "RESCAN_SECONDS",
    "RETRIED_FILES",
    "ROOTS_REMEMBERED",
    "ROUND_LIMIT",
    "RULES_BYTES",
    "RUN_CHUNKS",
    "SCAN_DIRECTORIES",
    "SCAN_HOLES",
    "SCAN_MEMORY_LEAST",
    "SCAN_PROBLEMS",
    "SETTINGS_BYTES",
    "SIMILAR_BATCH",
    "SIMILAR_FILES",
    "SIMILAR_MATCHES",
    "SIMILAR_PAIRS",
    "SIMILAR_WINDOW",
    "SIZE_LIMIT",
    "SOFTWARE_BYTES",
    "SPANNING_WINDOW",
    "SPOOL_MEMORY_BYTES",
    "TABLE_STRIDE_MAX",
    "TIMEOUT_SECONDS",
    "TOP_NODES",
    "TOUCHED_DIRECTORIES",
    "TREE_HEIGHT",
    "TRUSTED_KEYS",
    "WINDOW_LOG",
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

DIRECTORY_BYTES = 1 << 30
"""Bytes held while one directory is read, 160 an entry besides its name and target: six million entries of
usual names, more than any file system lists in reasonable time."""

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

SPOOL_MEMORY_BYTES = 8 << 20
"""Bytes a spool keeps in memory before it becomes a file: some 200,000 chunk records, a file of several GB,
so that only huge files reach the disk, and a few at a time stay far below the 250 MB that a side may use."""
FRAME_BYTES = 1 << 20
"""Bytes of one frame's payload: what a peer can make this side hold before a single field is checked."""

PIECE_BYTES = 128 << 10
"""Bytes of frame stream in one block, decompressed: zstd's own block size, so a piece fills one block of it.
Together with FRAME_BYTES this bounds what a decompression bomb can expand to."""

BLOCK_BYTES = PIECE_BYTES + 1024
"""Bytes of one block on the wire. zstd adds 3 bytes a block and at most 18 a frame to data it cannot shrink;
the rest is room for the end of a zstd frame and the head of the next."""

RAW_BLOCK_BYTES = FRAME_BYTES + 16
"""Bytes of one block that is not compressed: any frame with its head, so that content needs no cutting up."""

WINDOW_LOG = 24
"""log2 of the zstd window: of 16 MiB a direction both ends hold what passed. With half as much a tree with
many files that are alike took 4 % more (measured)."""

INBOUND_BYTES = 4 << 20
"""Bytes received but not yet decoded: enough to keep a fast link busy while this side works (40 ms at
100 MB/s), small beside the 250 MB a side may use. Past it the transport is not read."""

SOFTWARE_BYTES = 64
"""UTF-8 bytes of a peer's name for itself: it is only ever shown."""

MESSAGE_BYTES = 4096
"""UTF-8 bytes of a text meant for a person: one line that names a path of usual length."""

DATA_BYTES = 524288
"""Bytes of content in one message: large enough that a message's cost (about 10 us) does not show,
small enough that requests and progress get a turn between two of them."""

PACKED_BYTES = 128 << 10
"""Bytes of literals packed with the file around them; of more the context is a small part."""

PACKED_CONTEXT_BYTES = 256 << 10
"""Bytes of that context, which both sides hold in memory, with tables of the same order."""

RECORDS_BYTES = 512 << 10
"""Bytes of signature records in one answer: half a frame, the rest is for ordinals and lengths."""

NODE_BYTES = 64 << 10
"""Bytes of one expanded node: 26 children of at most 50 bytes, several levels at once."""

FILES_PER_GROUP = 256
"""Files that share one reference: a difference in one of them has all of them asked about again."""

FILES_PER_MESSAGE = 16_384
"""Files in one request or answer: 16,384 roots with sizes fill 640 KiB of a 1 MiB frame."""

NODES_PER_MESSAGE = 16_384
"""Nodes in one request: a level of a 4 GiB file's tree in one message."""

RANGES_PER_MESSAGE = 16_384
"""Ranges in one request: 16 bytes each at worst, a quarter of a frame."""

CELLS_PER_MESSAGE = 1024
"""Cells of a file that one request says are held, of 8 KiB each: what a source that says they are all wrong
can make a destination keep until they are written. Where targets were left out it keeps these, and where they
belong, an eighth more."""

CELLS_PER_ANSWER = 64
"""Of these, corrected in one message: 512 KiB, half a frame."""

TABLE_STRIDE_MAX = 64
"""Bytes of a row of a table that travels as differences: those of relocations and symbols have 24."""

RULES_BYTES = 256 << 10
"""Bytes of all filter rules together: larger than any hand-written or generated list in use."""

ORDINAL_LIMIT = (1 << 32) - 1
"""Running number of an entry or a directory in one session, or of a node in a tree: four bytes a column row,
4,000 times the million entries rdc is measured with."""

SIZE_LIMIT = (1 << 63) - 1
"""Bytes of a file, and any offset or total: off_t is signed."""

ROUND_LIMIT = (1 << 32) - 1
"""Round number of a frame; a session that stays open and uses one a second lasts 136 years."""

OUTSTANDING_REQUESTS = 65_536
"""Requests not yet answered: about 300 bytes each are kept on both sides, to refuse answers not asked for."""

OUTSTANDING_ORDINALS = 4 << 20
"""Files and nodes named by unanswered requests: four bytes each on both sides, four times a million files."""

NODES_PER_ANSWER = 512
"""Expanded nodes in one answer: about 100 KiB with short references, 450 KiB with whole digests."""

SOURCE_TREES_BYTES = 64 << 20
"""Bytes of signature trees a source remembers between a request and the next: those of 20 GB of files. More
are signed again when they are asked about."""

HELD_CONTENT_BYTES = 32 << 20
"""Content of small files that each side keeps in memory between what it is asked about them, so that none is
opened five times: of a release of Linux half of what is compared. Files beyond are opened anew each time."""

HELD_FILE_BYTES = 64 << 10
"""Of one file: below, opening it and closing it again takes longer than reading it."""

VANISHED_FILES = 1 << 20
"""Files that only a destination has, remembered with name, size and mtime (about 80 bytes each) as what new
files may have been: beyond, a moved file is fetched like any other."""

SIGNED_KIN = 32_768
"""Of these, how many keep root and traits once they were read, about 400 bytes each: others are read
again."""

EQUAL_ROOTS = 65_536
"""Files under way by descent whose root is remembered, about 130 bytes each, so that others with the same
content wait for them instead of being fetched as well. Beyond, equal files are fetched each."""

EQUAL_FILES = 65_536
"""Files sent whole that a source may name instead of sending their content again, about 200 bytes each, and
files that it names so. Beyond, equal files are sent each."""

BASES_PER_FILE = 3
"""Files beside the one at its path that a file may be rebuilt from: each is read and looked through."""

KEPT_BASES = 64
"""Files kept open because others are made from them and their own new versions may come first; fewer where
the limit of descriptors is low. Beyond, such a file may cost a repair."""

TREES_IN_FLIGHT = 16_384
"""Files compared by descent at a time. More wait for these, which costs further round trips."""

TREES_IN_FLIGHT_BYTES = 64 << 20
"""Estimated bytes of trees and look-ups of the files in flight by descent, or one file of any size."""

CATALOG_BYTES = 512 << 20
"""Bytes of the catalog's file before the signatures used longest ago go: those of some two million small
files, or of 200 GB of large ones."""

CATALOG_ENTRY_BYTES = 64 << 20
"""Bytes of one encoded signature in the catalog: a file of about 29 GB. Decoding takes twice that in memory,
where a side may use 250 MB; larger files are signed each time."""

CATALOG_BATCH_BYTES = 4 << 20
CATALOG_BATCH_ENTRIES = 2_048
"""Encoded signatures gathered before they are written in one transaction (about 10 ms): what a kill costs."""

CATALOG_SETTLED = 10_000
"""Pairs of trees remembered as settled, 32 bytes each: more than anybody syncs from one machine."""

TIER_NODES = 1024
"""Manifest nodes in one request: their children, at most 26 each with 11 bytes of references, fit a frame."""

TOP_NODES = 64
"""Nodes of the tier that comes with a manifest, 4 bytes each: what it costs where nothing changed."""

TIER_NODES_WHOLE = 65_536
"""Manifest nodes in an answer that holds a whole tier: 11 bytes of references each, 704 KiB of a frame. A
descent starts far above such tiers."""

ROWS_PER_PART = 4096
"""Manifest entries in one answer, about 200 KiB."""

ROWS_TEXT_BYTES = 512 << 10
"""Bytes of paths, names and link targets in one answer with several manifest entries: half a frame, so that
the 27 bytes an entry beside them fit. One entry alone has 128 KiB of them at most."""

MOUNT_POINTS = 1 << 18
"""Directories on other file systems that a source may name: more than twice what Linux lets be mounted in one
namespace (fs.mount-max); at some 100 bytes each, 26 MB."""

SMALL_MANIFEST = 200
"""Entries up to which a manifest that differs is listed whole: about 3 KB, a descent would cost as much."""

SMALL_FILE_BYTES = 128 << 10
"""Files up to this size share messages, four of them at least: one by itself costs some 50 microseconds a
side, about what hashing and copying so much takes."""

FILES_PER_BATCH = 1024
"""Small files in one message: a thousandth of a message's cost each."""

OPENED_FILES = 256
"""Files open at a time so that their contents are compared together: a group that shares a reference. Fewer
where the limit of descriptors is low."""

ROOTS_REMEMBERED = 1 << 18
"""Entries of a tree of whose small files the roots are remembered, 10 MB, and not put into the catalog. In a
larger tree they are."""

OPENED_FILES_LEAST = 16
"""Fewer are compared one by one: columns of them cost more to put together than they save."""

BUNDLE_BYTES = 2 << 20
"""Bytes of the changed files that are described together, as listed: what each side puts together in memory.
With 1 MiB, and half as much packed at a time, a release of Linux took half as many messages again about
blocks; with 4 MiB and twice as much it took 2 % more bytes (measured)."""

BUNDLED_FILE_BYTES = 512 << 10
"""Of one of them. A descent takes both sides a millisecond or two, a file in a bundle a third of that: from
one release of Linux to the next 54 of 56 descents were of files of more than 192 KiB and less than this."""

BUNDLE_FILES = 256
"""Files in a bundle: as many as are open at a time."""

BUNDLE_FILES_LEAST = 8
"""Fewer changed files are described one by one, which says more of each."""

BUNDLE_CHUNKS = 65_536
"""Chunks of a bundle's longer files: of the shortest allowed there are fewer."""

BUNDLES_HELD_BYTES = 96 << 20
"""Content of bundles that each side keeps in memory between what it is asked about them: that of most runs,
of a release of Linux 85 MB. Beside it a side has the 113 MB of a million entries. What is beyond is read
again each time, up to four times."""

BUNDLES_IN_FLIGHT = 256
"""Bundles that are asked about at a time, 512 MB of files at most. More wait for these, which costs further
round trips."""

ITEMS_PER_MESSAGE = 4096
"""Changes told in one message, about 40 bytes each: a message for each would cost both sides as much as a
small file's copy does."""

ITEMS_BYTES = 256 << 10
"""Bytes of their paths, and as many of link targets: half a frame together. One item has 128 KiB at most."""

TIMEOUT_SECONDS = 1_000_000
"""--timeout at most: eleven days. poll(2) counts milliseconds in 31 bits, which end after 24."""

BANDWIDTH_LEAST = 512
"""Bytes a second, rsync's own least --bwlimit: below it a session's first messages would take minutes."""

BLOCK_SIZE_MIN = 16
BLOCK_SIZE_MAX = 64 << 10
"""Bytes of a block below the chunk: a fingerprint has 2 to 8 bytes, so that smaller blocks gain nothing."""

BLOCKS_PER_MESSAGE = 65_536
"""Blocks whose fingerprints one answer holds: 512 KiB at 8 bytes each, half a frame."""

CONNECT_SECONDS = 30
"""For a TCP connection and the TLS handshake to a daemon, in all: a far line needs a second, a lost packet or
two some more."""

HANDSHAKE_BYTES = 64 << 10
"""Bytes taken from a peer that is not known yet: its half of a TLS 1.3 handshake with a certificate of ours
is about 1 KiB, and what it sends ahead of our answer a few more, options with long filter lists aside."""

KEY_FILE_BYTES = 64 << 10
"""Bytes of a file with a key or a certificate: ours have 1 KiB, RSA certificates of others a few."""

TRUSTED_KEYS = 10_000
"""Certificates in one key directory: a daemon reads them all at each reload."""

CERTIFICATES_PER_NAME = 4
"""Certificates trusted under one name: the old and the new one while a key is replaced, and as many that
somebody forgot."""

EXPIRY_NOTICE_DAYS = 14
"""Days before a certificate expires from which on the other side says so: time to have a new one trusted
everywhere, and short enough not to be ignored by then."""

SETTINGS_BYTES = 1 << 20
"""Bytes of a configuration file: thousands of modules."""

DAEMON_TIMEOUT_SECONDS = 120
"""What --timeout is over rdc:// where none is given: TCP alone never notices a far side that is gone. Half of
a daemon's idle limit, so that signs of life come in time for both."""

JOURNAL_BYTES = 1 << 30
"""Bytes of a journal of hard links: four million of them at paths of usual length."""

REPORT_BYTES = 256 << 20
"""Bytes of a report of duplicates that is read: a million files at paths of usual length. While it is read it
takes twice that."""

RUN_CHUNKS = 1 << 20
"""Chunks remembered while runs of equal ones are sought, about 190 bytes each: 16 GiB of files that differ.
Runs first met later are not found, which is said."""

SCAN_PROBLEMS = 1_000
"""Problems that a scan's report lists, about 300 bytes each; more are counted."""

SCAN_DIRECTORIES = 500
"""Directories that a scan's report lists, those above them not counted: more than anybody reads."""

SCAN_HOLES = 1 << 18
"""Holes of one file that a scan tells from data, 100 bytes each while it is read: past 25 GB of a file with a
hole every 100 KB, zeros of holes are counted as any zeros are."""

SCAN_MEMORY_LEAST = 256 << 10
"""Bytes for all tables of a scan: below it a level keeps less than a few hundred chunks, and the sum over
them is not normally distributed any more, as the stated bounds assume."""

PART_SECTION_BYTES = 64 << 20
"""Bytes of one section of a part file, packed and unpacked: 65,536 paths of a thousand bytes each."""

SIMILAR_FILES = 1 << 26
"""Files in one index of traits: 67 million, 2 GB of memory, and their numbers fit 32 bits."""

SIMILAR_MATCHES = 1024
"""Files one query can ask for. A base is chosen among a handful; the bound keeps the heap in the cache."""

SIMILAR_BATCH = 64
"""Queries answered in one pass over an index, and so in one hold of the interpreter's lock: 10 ms at a
million files."""

SIMILAR_PAIRS = 1 << 20
"""Candidate pairs of one search that wait to be compared, 8 bytes each, twice as many for a moment. Comparing
a million may take a minute; weaker ones beyond it are left out and counted."""

FOLDER_PAIRS = 1 << 18
"""Pairs of directories whose common bytes are counted at a time, some 200 bytes each."""

SIMILAR_WINDOW = 65_536
"""Neighbours that a file is compared with, at most, among those that share two of its traits, when all pairs
are sought. A million unrelated files share two with 244; without a bound a million related ones would take
half a million million comparisons, eighteen times."""

SPANNING_WINDOW = 4_096
"""The same when only groups are sought. What is alike beyond it is nearly always connected through others;
131,072 files that are all alike take ten seconds."""

GONE_BYTES = 256 << 10
"""Bytes of names that one Changed says are gone: with half a frame of entries they fit a frame; more than a
thousand of the longest names, and what is left comes in the next one."""

TOUCHED_DIRECTORIES = 65_536
"""Directories and renames remembered of one burst of changes, some 10 MB; past it the whole tree is read,
which then costs less than reading so many directories one by one."""

RETRIED_FILES = 65_536
"""Files remembered as still being written; past it the oldest waits for the next comparison of the whole
trees."""

RESCAN_SECONDS = 31_536_000
"""Seconds between two comparisons of whole trees, at most: a year, past which "never" is what is meant."""

UNTOLD_EVENTS = 4_096
"""Problems of one turn that a source's side keeps for a user at the far side, some 200 bytes each; of trees
with more unreadable entries the rest is passed over."""

FURTHER_BYTES = 8
"""Of the digest of links and attributes that a Manifest has, to find out whether they are the same. That they
are not after all, once in 10^19 times, shows in the root, which covers all 32."""

ATTRIBUTE_NAME_BYTES = 255
"""Of the name of an extended attribute: Linux's own limit (XATTR_NAME_MAX)."""

ATTRIBUTE_VALUE_BYTES = 65_536
"""Of its value: Linux's own limit (XATTR_SIZE_MAX)."""

ATTRIBUTE_SET_BYTES = 256 << 10
"""All attributes of one entry, packed: four values as long as there can be, or thousands of usual ones, which
ext4 has no room for; a quarter of a frame. More are named and left alone."""

ATTRIBUTE_MESSAGE_BYTES = 512 << 10
"""The different sets of one message: two as long as there can be, half a frame."""

ATTRIBUTES_HELD_BYTES = 64 << 20
"""Different sets that a destination remembers until it sets them, when all contents are in place: most trees
have a few that repeat; a million files with one of their own each, of 64 bytes, fit."""
