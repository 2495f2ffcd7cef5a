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

SCAN_SLICES = 1_000_000
"""Slices of one scan. More would be smaller than a directory each, and every slice walks all directories."""
