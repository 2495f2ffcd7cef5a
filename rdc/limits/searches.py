"""Limits of searches: scans, similar files and folders, near-duplicate documents."""

from __future__ import annotations

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
"""What a document without text counts as stored: 600 bytes of samples and columns, some 400 of band keys."""

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
"""Bands that the documents of one group may have to share, and combinations of so many bands. Each
combination reads a column of keys."""

PAIRS = 1 << 18
"""Candidate pairs in memory, some 100 bytes each."""

RANGE_ROWS = 1 << 18
"""Keys that are sorted at a time, 120 bytes each while they are chosen and sorted."""

OVERLAP_BYTES = 64 << 20
"""Bytes of shingles in memory for exact comparison; at least two documents are."""

OPEN_PARTS = 64
"""Parts open at a time."""
