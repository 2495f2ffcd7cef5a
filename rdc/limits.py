"""Limits: what a peer may send, what a session, a watch and a daemon may hold, and what searches take."""

from __future__ import annotations

# All limits that rdc enforces, one module per topic, each limit with its reason.
#
# Every package uses them. Code that reads input checks a length against its limit before it allocates memory.


# Limits of what a peer may send: messages, paths, chunks, blocks and signature trees.

# Limits of the wire: frames and blocks, messages, requests, and extended attributes in messages.

# The frame stream: frames, compressed blocks and the numbers in them.

FRAME_BYTES = 1 << 20
"""Bytes of one frame's payload: what a peer can make this side hold before any field is checked."""

BLOCK_CONTENT_BYTES = 128 << 10
"""Decompressed bytes of frame stream in one block: zstd's own block size, so a piece fills one block of it.
Together with FRAME_BYTES this limit bounds the output of a decompression bomb."""

BLOCK_BYTES = BLOCK_CONTENT_BYTES + 1024
"""Bytes of one block on the wire. zstd adds 3 bytes per block and at most 18 per frame to data that it cannot
shrink; the rest is room for the end of one zstd frame and the head of the next."""

RAW_BLOCK_BYTES = FRAME_BYTES + 16
"""Bytes of one uncompressed block: any frame with its head, so content is never split."""

WINDOW_LOG = 24
"""log2 of the zstd window: both ends hold the last 16 MiB of each direction. With half as much, a tree with
many similar files took 4 % more bytes (measured)."""

INBOUND_BYTES = 4 << 20
"""Bytes received but not yet decoded: 40 ms of a link with 100 MB/s, so the link stays busy while this side
works. Beyond this limit the transport is not read. It is small beside the 250 MB that a side may use."""

SIZE_LIMIT = (1 << 63) - 1
"""Bytes of a file, and any offset: off_t is signed."""

TOTAL_BYTES = 12
"""Bytes of a total of sizes: that of 2^32 files, each of SIZE_LIMIT, is below 2^95."""

TOTAL_LIMIT = (1 << 8 * TOTAL_BYTES) - 1
"""Bytes of several files together: a few sparse files may have more than SIZE_LIMIT."""

ROUND_LIMIT = (1 << 32) - 1
"""Round number of a frame. A session that uses one round per second lasts 136 years."""

ORDINAL_LIMIT = (1 << 32) - 1
"""Running number of an entry or a directory in one session, or of a node in a tree: four bytes per column
row, 4,000 times the million entries that rdc is measured with."""


# Limits of one message.

SOFTWARE_BYTES = 64
"""UTF-8 bytes of a peer's name for itself, which is only displayed."""

FEATURES_BYTES = 1024
"""UTF-8 bytes of the names of all features of a program: room for a hundred."""

HELLO_BYTES = 4096
"""Bytes of a Hello: leaves room for keys of later versions, and little for a peer to fill memory."""

MESSAGE_BYTES = 4096
"""UTF-8 bytes of a text for a person: one line that names a path of usual length."""

MODE_CHANGES_BYTES = 1024
"""Bytes of the changes of permissions: room for a hundred items, and few steps for each entry."""

OWNER_MAP_BYTES = 4096
"""Bytes of a map of users or groups: some hundred items, each compared with each owner of the source once."""

OWNERS = 65_536
"""Users, and groups, that a source may have where they are kept by name: every student of a large university.
Both sides keep some 200 bytes for each."""

OWNERS_PER_MESSAGE = 1024
"""Users, and groups, whose names one message has: half a frame if all names are as long as they may be."""

OWNER_NAME_BYTES = 255
"""Bytes of a user's or group's name: Linux's tools accept 32, directory services somewhat more."""

SELECTED_PER_MESSAGE = 16_384
"""Selected names per message."""

SELECTED_MESSAGE_BYTES = 512 << 10
"""Bytes of these names: half a frame."""

RULES_BYTES = 256 << 10
"""Bytes of all filter rules together: larger than any handwritten or generated list in use."""

DATA_BYTES = 524288
"""Bytes of content per message. A message costs about 10 us, which does not show at this size. Requests and
progress still get a turn between two messages."""

PACKED_BYTES = 128 << 10
"""Bytes of literals compressed with their context, the known bytes around them. For more literals the context
is too small a part to help."""

PACKED_CONTEXT_BYTES = 256 << 10
"""Bytes of that context. Both sides hold it in memory, with tables of about the same size."""

TABLE_STRIDE_MAX = 64
"""Bytes per row of a number table that travels as differences: rows of relocations and symbols have 24."""

FILES_PER_GROUP = 256
"""Files that share one reference. If one of them differs, all of them are asked about again."""

FILES_PER_MESSAGE = 16_384
"""Files per request or answer: 16,384 roots with sizes fill 640 KiB of a 1 MiB frame."""

FILES_PER_BATCH = 1024
"""Small files per message: each file bears a thousandth of a message's cost."""

RECORDS_BYTES = 512 << 10
"""Bytes of signature records per answer: half a frame, the rest is for ordinals and lengths."""

NODE_BYTES = 64 << 10
"""Bytes of one expanded node: 26 children of at most 50 bytes, for several levels at once."""

NODES_PER_MESSAGE = 16_384
"""Nodes per request: one level of the tree of a 4 GiB file in one message."""

NODES_PER_ANSWER = 512
"""Expanded nodes per answer: about 100 KiB with short references, 450 KiB with whole digests."""

HOLES_PER_MESSAGE = 16_384
"""Holes of a file per message: at worst 16 bytes each, a quarter of a frame."""

RANGES_PER_MESSAGE = 16_384
"""Ranges per request: at worst 16 bytes each, a quarter of a frame."""

BLOCKS_PER_MESSAGE = 65_536
"""Blocks with fingerprints per answer: 512 KiB at 8 bytes each, half a frame."""

CHECK_BLOCKS_PER_MESSAGE = 1024
"""Check blocks, of 8 KiB each, that one request claims to match. A source that calls all of them wrong makes
the destination keep that much in memory until it is written. For masked content the positions of masked bytes
take an eighth more."""

CHECK_BLOCKS_PER_ANSWER = 64
"""Check blocks corrected per message: 512 KiB, half a frame."""

TIER_NODES = 1024
"""Manifest nodes per request. Their children fit a frame: at most 26 each, with 11 bytes of references."""

TOP_NODES = 64
"""Nodes of the tier that comes with a manifest, 4 bytes each: the cost for trees without a difference."""

TIER_NODES_WHOLE = 65_536
"""Manifest nodes in an answer with a whole tier: 11 bytes of references each, 704 KiB of a frame. A descent
starts far above such tiers."""

ROWS_PER_PART = 4096
"""Manifest entries per answer, about 200 KiB."""

ROWS_TEXT_BYTES = 512 << 10
"""Bytes of paths, names and link targets in an answer with several manifest entries. This is half a frame, so
the other 27 bytes per entry fit. One entry alone has at most 32 KiB of text."""

FURTHER_BYTES = 8
"""Bytes of the digest of links and attributes that a Manifest carries, to compare two trees. A false match
occurs once in 10^19 times; the root, which covers all 32 bytes, reveals it."""

GONE_BYTES = 256 << 10
"""Bytes of names that one Changed lists as gone: with half a frame of entries they fit a frame. More than a
thousand of the longest names fit; the rest comes in the next Changed."""

ITEMS_PER_MESSAGE = 4096
"""Changes reported per message, about 40 bytes each. A message of its own for each would cost both sides as
much as copying a small file."""

ITEMS_BYTES = 256 << 10
"""Bytes of the paths of these changes, and as many of link targets: half a frame together. One item has at
most 32 KiB."""


# What a peer may ask for in one session: open requests, and work in proportion to the content.

OUTSTANDING_REQUESTS = 65_536
"""Requests without an answer. Both sides keep about 300 bytes for each, to refuse answers without a
request."""

OUTSTANDING_ORDINALS = 4 << 20
"""Files and nodes named by requests without an answer: four bytes each on both sides, four times a million
files."""

HEARD_NUMBERS = 1 << 19
"""Files, nodes and ranges in requests that a source decodes while it answers another one. Each takes 40
bytes, 20 MiB in total. Further requests wait undecoded, up to INBOUND_BYTES."""

SENT_TIMES = 16
"""Times that a destination may ask for each byte of content, on average over all announced bytes. It asks
once. If every step fails twice in a bundle, it asks three times in each of two attempts and twice for the
whole file."""

COMPARED_TIMES = 64
"""Times that a destination may have each byte read for comparison. Roots, digests and traits take 6 reads,
trees 3, nodes of forgotten trees 12. Blocks of 3 sizes and claims take 8 in each of two attempts and 8 in a
bundle. One file that needs all of this takes 45; most files take 3 to 5."""

ROW_REQUESTS = 16
"""Times that a destination may ask for each entry of a manifest. It asks for a row in three groups of columns
and for the nodes above it, which are a fifteenth as many. A request for a whole tier counts once more."""

ROWS_FREELY = 65_536
"""Rows and nodes of a manifest that may be asked for in addition to ROW_REQUESTS."""

ASKED_FILE_BYTES = 4096
"""Bytes counted for each file that a request names, besides its content: opening a file takes about as long
as reading that many bytes."""

ASKED_NODE_BYTES = 2048
"""Bytes counted for each node that a request names: more than any expanded node has, and a small part of the
bytes below it."""

ASKED_FREELY_BYTES = 64 << 20
"""Bytes that may be asked for in addition to the limits per byte: small trees need no such limit."""


# Extended attributes.

ATTRIBUTE_NAME_BYTES = 255
"""Bytes of an extended attribute's name: Linux's own limit (XATTR_NAME_MAX)."""

ATTRIBUTE_VALUE_BYTES = 65_536
"""Bytes of an extended attribute's value: Linux's own limit (XATTR_SIZE_MAX)."""

ATTRIBUTE_SET_BYTES = 256 << 10
"""Bytes of all packed attributes of one entry: four values of the longest kind or thousands of usual ones,
more than ext4 has room for, and a quarter of a frame. A larger set is reported and skipped."""

ATTRIBUTE_MESSAGE_BYTES = 512 << 10
"""Bytes of the distinct attribute sets in one message: two of the largest kind, half a frame."""

ATTRIBUTES_PENDING_BYTES = 64 << 20
"""Bytes of distinct attribute sets that a destination keeps until it sets them, after all contents are in
place. Most trees repeat a few sets; a million files, each with a set of its own of 64 bytes, fit."""

UNDO_DAYS = 36_500
"""The most days for which a sync is kept to be undone: a century."""


CHUNK_MIN_LIMIT = 64
"""Bytes. The cut hash reads 64 bytes: with a smaller minimum, neighbouring cuts would depend on each
other."""

CHUNK_MAX_LIMIT = 16 << 20
"""Bytes. Both sides hold a whole chunk in memory while they hash and check it."""

CHUNK_RATIO_LIMIT = 32
"""Largest max_size / min_size: that of FastCDC's usual 2 to 64 KiB. A window wider than 4 only spreads sizes
without finding better cuts."""

BLOCK_SIZE_MIN = 16
BLOCK_SIZE_MAX = 64 << 10
"""Bytes of a block below the chunk. A fingerprint has 2 to 8 bytes, so smaller blocks gain nothing."""

NODE_RECORDS_MIN = 6
NODE_RECORDS_MAX = 26
"""A signature node has more than 6 and at most 26 records, about 16 on average. Ten edits of a file of 65,536
chunks then cost 603 references; with 64 records per node they cost 1,350."""

TOP_RECORDS = 64
"""Records that describe a whole file in the answer about its tree. With 26, the most of one node, files above
a few megabytes would take a round trip more for their next level, which is no longer than this."""

TREE_HEIGHT = 24
"""Levels of a signature tree: each level shrinks by a factor above 6, and 6^24 > 2^62 records."""

WINNOW_MAX_LIMIT = 4_096
"""Records in one winnowing window, far above any useful node: this limit bounds the ring of candidates."""

DESCENT_MAP_RECORDS = 1 << 20
"""Base records of one level that are indexed by reference at a time, about 150 bytes each. A longer level (a
file above 16 GiB) is indexed only below its nodes without a match."""


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


# Limits of a session: files in flight, bases, trees, events, and the memory they take together.

WINDOW_SECONDS = (1 << 31) - 1
"""Seconds by which times may differ and be equal, at most: as many as rsync takes."""

# Limits of what a session keeps in memory, keeps open or has under way.

SOURCE_TREES_BYTES = 64 << 20
"""Bytes of signature trees that a source keeps between two requests: the trees of 20 GB of files. Other files
are signed again for the next request."""

CACHED_CONTENT_BYTES = 32 << 20
"""Bytes of small files that each side keeps in memory between requests about them, so no file is opened five
times. They are half of what a release of Linux compares. Further files are opened again for each request."""

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

OFFERED_ROWS = 1 << 18
"""Entries of an offered manifest that stay in memory while the tree is told again from it: about 25 MB."""

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

LIKELY_FILES = 16
"""Files whose trees the source sends unasked. More are cheaper in bundles, which the destination asks for."""

LIKELY_BLOCKS_BYTES = 8 << 20
"""Bytes of files whose blocks the source describes unasked: 24 KB of fingerprints, which are in vain for
files that the destination lacks."""

BUNDLE_FILES_LEAST = 8
"""Smallest number of changed files that makes a bundle. Fewer are described singly, in more detail."""

BUNDLES_CACHED_BYTES = 96 << 20
"""Bytes of bundled content that each side keeps in memory between requests: enough for most runs, 85 MB for a
release of Linux. A million entries take a side 113 MB besides. Content beyond this limit is read again each
time, up to four times."""

BUNDLES_IN_FLIGHT = 256
"""Bundles under way at a time, at most 512 MB of files. Further bundles wait, which costs round trips."""

PROBLEMS_WAITING = 4_096
"""Problems that wait to be sent to the remote side, at most 4 KiB of text each: 16 MiB. Beyond this limit
only their number is sent."""

UNTOLD_EVENTS = 4_096
"""Problems of one turn that a source keeps for a user at the remote side, some 200 bytes each. Beyond this
limit problems of a tree with more unreadable entries are dropped."""

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
"""Longest path, in bytes, that tables and waiting events store whole. They store the parent of longer paths
once for many. Most paths are no longer. A peer announces an entry in at least eight bytes. Storing its path
therefore costs at most twelve times as much."""

FAILED_FILES = 16
"""Attempts of a session to make files of local content that fail, before everything comes whole. An honest
source causes one only by chance, or by a file that changes in a way that nothing shows."""

FAILED_OF_BASE = 4
"""The bound for one local file. A file that is requested has two attempts."""

WRONG_CELLS = 64
"""Check blocks of local content that a source may correct even if most of what was claimed is wrong. Some
claims about an honest source are wrong, too, by false matches of short fingerprints."""


# Limits of a watch: changes that wait to be read, and time between full comparisons.

TOUCHED_DIRECTORIES = 65_536
"""Directories and renames remembered from one burst of changes, some 10 MB. Beyond this limit the whole tree
is read, which then costs less than reading as many directories singly."""

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

UNITE_ROWS = 1 << 31
"""Entries of an ancestor of a two-way sync, as many as a manifest may have."""

UNITE_HEAD_BYTES = 128 << 10
"""The head of an ancestor: ids, numbers and one path in hexadecimal digits."""

UNITE_FILE_BYTES = 64 << 30
"""The longest ancestor or journal of a two-way sync that is read, at 32 bytes an entry."""

UNITE_UNITS = 1 << 10
"""Names of units that a pair keeps."""

UNITE_LOG_BYTES = 1 << 20
"""Longest list of a user's pairs that rdc reads. rdc rewrites a list that is longer than half of that."""

UNITE_EDGES = 64
"""Pairs of other directories of which one that is united remembers that they exist, to find rings."""

UNITE_PLANS = 64
"""Plans of interrupted runs that one side tells the other. A journal with more is worth nothing."""

UNITE_RULES_BYTES = 512 << 10
"""The rules of a pair on the wire, in base64: half a frame."""

UNITE_PAGE_BYTES = 512 << 10
"""Bytes of one part of a page: half a frame."""

UNITE_TOLD_BYTES = 4 << 30
"""Bytes of one whole page, at 40 bytes for each of 100 million entries. The memory that a peer's entries may
take ends it earlier."""

JOBS_MOST = 1000
"""Jobs of one settings file."""

JOB_NAME_LENGTH = 64
"""Characters of a job's name, which is part of names of files."""

JOB_RECORD_BYTES = 64 << 10
"""Longest record of a job's last run that rdc reads. A record has some hundred bytes."""

UNITE_LISTED = 20
"""Conflicts that one run names. The others are counted."""


# Limits of searches: scans, similar files and folders, near-duplicate documents.

REPORT_BYTES = 256 << 20
"""Bytes of a report of duplicates that is read: a million files at paths of usual length. Reading it takes
twice as much memory."""

RUN_CHUNKS = 1 << 20
"""Chunks remembered during the search for runs of equal ones, about 190 bytes each: 16 GiB of distinct
content. Runs that first occur beyond this limit are not found, and the output says so."""

SCAN_PROBLEMS = 1_000
"""Problems listed in a scan's report, about 300 bytes each. Further ones are only counted."""

SCAN_DIRECTORIES = 500
"""Directories listed in a scan's report, without those above them: more than a person reads."""

SCAN_HOLES = 1 << 18
"""Holes of one file that a scan distinguishes from data, 100 bytes each during the read. A file with a hole
every 100 KB reaches the limit after 25 GB; zeros in further holes count like other zeros."""

SCAN_MEMORY_LEAST = 256 << 10
"""Bytes for all tables of a scan. With less, a level keeps fewer than a few hundred chunks. Their sum is then
no longer normally distributed, but the stated bounds assume that it is."""

PART_SECTION_BYTES = 64 << 20
"""Bytes of one section of a part file, packed and unpacked: 65,536 paths of a thousand bytes each."""

PART_ROWS = 65_536
"""Rows of one section of a part file."""

PART_PATHS = 1 << 20
"""Paths of a scan, or of all scans that a part adds up: no command line has as many."""

PART_SUFFIXES = 1 << 22
"""Types of files in a part. Some programs give each file another one."""

PART_OPTIONS_BYTES = 4096
"""Bytes of the options that slices must share: six lines."""

PART_PROBLEM_BYTES = 256 << 10
"""Bytes of one problem's message in a part: a path of the longest kind, escaped."""

PART_PROBLEMS_BYTES = 32 << 20
"""Bytes of all problems of a part, which has SCAN_PROBLEMS at most."""

SCAN_SLICES = 1_000_000
"""Slices of one scan. More would be smaller than a directory each, and every slice walks all directories."""


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


DOCUMENT_BYTES = 64 << 20
"""Bytes of one document's text. Its features take up to eight times as much while it is sampled. A longer one
is a collection rather than a document; it is named and left out."""

TEXT_LINE_BYTES = 128 << 20
"""Bytes of one line of a JSONL file. JSON's escapes and other fields may double a text. The rest of a longer
line is skipped in pieces, so a row of any length takes no more memory than this."""

READ_BYTES = 1 << 20
"""Bytes of a file that are read at a time."""

WINDOW_BYTES_LEAST = 128 << 20
WINDOW_BYTES_MOST = 2 << 30
WINDOW_SHARE = 0.25
"""Bytes that the unpacking of one .zst file may remember: a share of the machine's memory within bounds. zstd
itself takes 128 MiB without --long, and --long=31 needs 2 GiB."""

BATCH_BYTES = 4 << 20
"""Bytes of text that are sampled at a time. Two batches a thread are in memory."""

BATCH_DOCUMENTS = 8_192
"""Documents that are sampled at a time: 4 MB of samples."""

RANGE_BYTES = 4 << 20
"""Least bytes of a range of a JSONL or Parquet file that slices share: one batch of text. All machines that
share a search need the same number."""

STORED_DOCUMENT_BYTES = 1 << 10
"""The memory that a document without text takes: 600 bytes of samples and columns, some 400 of band keys."""

STORED_SHARE = 128
STORED_BYTES_LEAST = 512 << 20
STORED_FILE_BYTES = 1 << 10
"""Bounds on the bytes that a run stores of documents: STORED_SHARE times the files that it reads, each
counted as STORED_FILE_BYTES at least, plus STORED_BYTES_LEAST. Rows of 30 bytes of text, packed to 15, take
70 times their size."""

UNPACKED_SHARE = 4096
UNPACKED_BYTES_LEAST = 1 << 30
"""Bounds on what a .zst file unpacks to: UNPACKED_SHARE times its size, plus UNPACKED_BYTES_LEAST. zstd packs
zeros 32,000 to 1; gzip packs at most 1,032 to 1."""

ROW_PROBLEMS = 10
"""Bad rows of one file that are named. Further ones are counted in one more line."""

PART_NAMES = 1 << 20
"""Documents in one block of a part that a reader accepts: sixteen times what a writer puts there."""

PART_BLOCK_BYTES = 1 << 30
"""Bytes of one block of a part. The longest document's shingles take a quarter of it."""

SLICE_HEAD_BYTES = 64 << 20
"""Bytes of the names of all paths of a search in a part of a slice."""

WINDOW = 32
"""Neighbours compared with each document among those that share a band, before all other pairs: those of more
than 33 documents are compared each with the 32 that follow it in the order of names. That connects families
of any size in linear time."""

EXAMINED = 1 << 12
EXAMINED_LEAST = 1 << 27
"""Further pairs of crowded bands whose samples are compared, for each document, and at least in total. A pair
takes 6 ns."""

COMPARED = 1 << 5
COMPARED_LEAST = 1 << 23
"""Pairs among these whose shingles are compared, for each document, and at least in total. They wait on disk,
8 bytes each, and take about a microsecond. A pair counts once for each band that it shares."""

CROWD_LEVELS = 4
LEVEL_PREFIXES = 2_000
"""Bands that the documents of one group may have to share, and combinations of that many bands. Each
combination reads a column of keys."""

LINKED_DOCUMENTS = 1 << 8
"""Different texts of one group with --link=complete. Each further one is compared with all of them, so a
family of a million pages would take a million times as long without a bound."""

EXCERPT_BYTES = 1 << 20
"""Bytes at the start of a text in which --excerpts looks for differences. As many are kept of each document
in a group, in a file without a name."""

PAIRS = 1 << 18
"""Candidate pairs in memory, some 100 bytes each."""

RANGE_ROWS = 1 << 18
"""Keys that are sorted at a time, 120 bytes each while they are chosen and sorted."""

OVERLAP_BYTES = 64 << 20
"""Bytes of shingles in memory for exact comparison; at least two documents are."""

OPEN_PARTS = 64
"""Parts open at a time."""
