"""Limits of the search for near-duplicate documents."""

from __future__ import annotations

DOCUMENT_BYTES = 64 << 20
"""Bytes of one document's text. Its features take up to eight times as much while it is sampled. A longer one
is a collection rather than a document; it is named and left out."""

LINE_BYTES = 128 << 20
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
