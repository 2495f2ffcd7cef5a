"""Writes fixtures/scan/sample.json: an invented scan report that uses everything a report may hold.

    .venv/bin/python scripts/make_scan_sample.py

The figures are consistent as in a real report: directories add up, and overlaps are smaller than the
directories. So reports and pages can be tried without a scan.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rdc.errors import ExitCode
from rdc.model.scan import (
    AgeSummary,
    Attribution,
    Bin,
    Coverage,
    DirectoryGrowth,
    DirectorySummary,
    Growth,
    IdenticalSummary,
    LevelSummary,
    Overlap,
    ScanProblem,
    ScanReport,
    SimilarFiles,
    TypeGrowth,
    TypeSummary,
)
from rdc.survey.report.terminal import scan_json

TARGET = Path(__file__).parent.parent / "fixtures" / "scan" / "sample.json"

OWN = {
    "data": (3, 40_000, 0),
    "data/projects": (12, 310_000, 21_000),
    "data/projects/site": (410, 18_400_000, 6_900_000),
    "data/projects/site/node_modules": (5_120, 96_300_000, 61_800_000),
    "data/projects/site-2023": (398, 17_100_000, 6_600_000),
    "data/projects/site-2023/node_modules": (4_890, 91_700_000, 60_400_000),
    "data/projects/thesis": (64, 9_800_000, 1_200_000),
    "data/projects/thesis/figures": (88, 41_200_000, 2_100_000),
    "data/photos": (1, 4_000, 0),
    "data/photos/2022": (840, 3_120_000_000, 14_000_000),
    "data/photos/2023": (1_204, 4_480_000_000, 655_000_000),
    "data/photos/selected": (151, 640_000_000, 639_000_000),
    "data/machines": (2, 20_000, 0),
    "data/machines/debian": (4, 5_800_000_000, 2_900_000_000),
    "data/machines/debian-old": (4, 5_100_000_000, 2_840_000_000),
    "data/backups": (9, 1_200_000_000, 940_000_000),
    "data/backups/caf\N{LATIN SMALL LETTER E WITH ACUTE}": (40, 61_000_000, 12_000_000),
    "data/logs": (730, 410_000_000, 33_000_000),
}
"""For each directory: number, bytes and duplicate bytes of the files directly in it."""


def directories() -> list[DirectorySummary]:
    found = []
    for path, (_, size, saved) in OWN.items():
        below = [own for other, own in OWN.items() if other == path or other.startswith(path + "/")]
        files, total, duplicate = (sum(column) for column in zip(*below, strict=True))
        found.append(DirectorySummary(path.encode(), files, total, duplicate, size, saved))
    return sorted(found, key=lambda one: -one.duplicate_bytes)


def sizes(mean: int, chunks: int, unique_bytes: int) -> tuple[Bin, ...]:
    """Return an invented bell curve over powers of two around the mean."""
    shares = {mean // 8: 0.02, mean // 4: 0.05, mean // 2: 0.18, mean: 0.36, 2 * mean: 0.31, 4 * mean: 0.08}
    weights = {upto: share * upto for upto, share in shares.items()}
    return tuple(
        Bin(upto, round(chunks * share), round(unique_bytes * weights[upto] / sum(weights.values())))
        for upto, share in shares.items()
    )


def copies(chunks: int, unique_bytes: int) -> tuple[Bin, ...]:
    shares = {1: 0.66, 2: 0.24, 4: 0.07, 8: 0.02, 64: 0.008, 4096: 0.002}
    return tuple(
        Bin(upto, round(chunks * share), round(unique_bytes * share)) for upto, share in shares.items()
    )


def level(name: str, mean: int, total: int, kept: float, packed: float) -> LevelSummary:
    unique = round(total * kept)
    chunks, unique_chunks = total // mean, unique // mean
    compressed = round(unique * packed)
    return LevelSummary(
        name=name,
        mean_bytes=total / chunks,
        chunks=chunks,
        bytes=total,
        unique_chunks=unique_chunks,
        unique_bytes=unique,
        exact=True,
        low=unique,
        high=unique,
        compressed_bytes=compressed,
        compressed_low=round(compressed * 0.985),
        compressed_high=round(compressed * 1.015),
        sizes=sizes(mean, unique_chunks, unique),
        copies=copies(unique_chunks, unique),
    )


def report() -> ScanReport:
    listed = directories()
    total, files = listed[0].bytes, listed[0].files
    sampled = level("cdc-4096", 4_093, total, 0.598, 0.79)
    sampled = replace(
        sampled,
        exact=False,
        low=round(sampled.unique_bytes * 0.996),
        high=round(sampled.unique_bytes * 1.004),
    )
    by_file = level("file", total // files, total, 0.861, 0.78)
    return ScanReport(
        paths_bytes=(b"data",),
        files=files,
        bytes=total,
        allocated_bytes=total - 310_000_000,
        hardlinks=214,
        holes_bytes=12_400_000_000,
        already_shared_bytes=88_000_000,
        duplicate_groups=3_911,
        duplicate_bytes=total - by_file.unique_bytes,
        levels=(
            by_file,
            sampled,
            level("cdc-16384", 16_377, total, 0.641, 0.77),
            level("cdc-65536", 65_301, total, 0.702, 0.76),
            level("fixed-4096", 4_096, total, 0.811, 0.79),
        ),
        directories=tuple(listed),
        types=(
            TypeSummary(".qcow2", 8, 10_899_000_000, 5_740_000_000),
            TypeSummary(".jpg", 2_150, 8_150_000_000, 1_290_000_000),
            TypeSummary(".tar", 9, 1_200_000_000, 940_000_000),
            TypeSummary(".js", 7_311, 144_000_000, 98_000_000),
            TypeSummary(".log", 730, 410_000_000, 33_000_000),
            TypeSummary(".map", 2_120, 58_000_000, 31_000_000),
            TypeSummary("", 611, 9_000_000, 2_000_000),
        ),
        overlaps=(
            Overlap(
                b"data/machines/debian",
                b"data/machines/debian-old",
                2_790_000_000,
                3_700_000_000,
                3_100_000_000,
            ),
            Overlap(b"data/photos/2023", b"data/photos/selected", 639_000_000, 4_460_000_000, 640_000_000),
            Overlap(
                b"data/projects/site/node_modules",
                b"data/projects/site-2023/node_modules",
                58_100_000,
                61_000_000,
                59_700_000,
            ),
            Overlap(b"data/backups", b"data/projects/thesis", 7_400_000, 410_000_000, 9_700_000),
        ),
        similar=(
            SimilarFiles(
                (b"data/machines/debian/disk.qcow2", b"data/machines/debian-old/disk.qcow2"),
                10_100_000_000,
                0.61,
            ),
            SimilarFiles(
                (
                    b"data/projects/thesis/thesis.tex",
                    b"data/projects/thesis/thesis-final.tex",
                    b"data/projects/thesis/thesis-final2.tex",
                ),
                1_900_000,
                0.83,
            ),
        ),
        identical=(
            IdenticalSummary(
                (b"data/machines/debian-old/base.qcow2", b"data/machines/debian/base.qcow2"), 2, 2_700_000_000
            ),
            IdenticalSummary((b"data/backups/site.tar", b"data/backups/site-copy.tar"), 2, 470_000_000),
            IdenticalSummary(
                tuple(b"data/photos/%s/IMG_1.jpg" % name for name in (b"2022", b"2023", b"selected")),
                12,
                4_100_000,
            ),
        ),
        ages=tuple(
            AgeSummary(year, files * part // 15, total * part // 15)
            for year, part in ((1970, 1), (2019, 2), (2021, 3), (2022, 4), (2023, 5))
        ),
        growth=Growth(
            before_files=files - 700,
            before_bytes=total - 900_000_000,
            complete=True,
            directories=(
                DirectoryGrowth(b"data/photos/2023", 3_600_000_000, 4_480_000_000),
                DirectoryGrowth(b"data/logs", 430_000_000, 410_000_000),
                DirectoryGrowth(b"data/backups", 1_221_000_000, 1_261_000_000),
            ),
            types=(
                TypeGrowth(".jpg", 7_270_000_000, 8_150_000_000),
                TypeGrowth(".log", 430_000_000, 410_000_000),
            ),
        ),
        errors=(
            ScanProblem(
                b"data/logs/current.log",
                "data/logs/current.log: changed while it was read: expected 1048576 bytes, found 1050624;"
                " run again once it is left alone",
                ExitCode.VANISHED,
            ),
            ScanProblem(
                b"data/backups/caf\xe9.tar",
                "data/backups/caf\\xe9.tar: cannot open it for reading: found Permission denied (EACCES);"
                " check its permissions and those of its directory, then run again",
                ExitCode.PARTIAL,
            ),
        ),
        coverage=Coverage(
            complete=True, reason="", found_files=files + 2, found_bytes=total + 13_000_000_000, known_bytes=0
        ),
        attribution=Attribution("cdc-16384", 1.0),
        exit=ExitCode.PARTIAL,
    )


def main() -> None:
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(scan_json(report()))


if __name__ == "__main__":
    main()
