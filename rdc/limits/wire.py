"""Limits of what a peer may send: messages, paths, chunks, blocks and signature trees."""

from __future__ import annotations

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


# What one message holds.

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
bytes, 20 MiB in all. Further requests wait undecoded, up to INBOUND_BYTES."""

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
as reading so many bytes."""

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
