"""Limits of scans and of the search for duplicates."""

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
