"""Makes the report of a scan from its outcome."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.model.scan import Attribution, Coverage, LevelSummary, ScanReport
from rdc.survey.count.granularities import FILE_LEVEL, FOLLOWED
from rdc.survey.scan.directory_overlap import overlaps
from rdc.survey.scan.duplicate_attribution import directories, duplicate_shares, types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.count.chunk_counter import Figures
    from rdc.survey.count.compression_estimate import CompressionSample
    from rdc.survey.scan.outcome import Outcome

__all__ = ["report_of"]


def report_of(outcome: Outcome) -> ScanReport:
    """The report. The outcome is not changed and can grow further."""
    counters = outcome.counters
    figures = {name: counter.figures() for name, counter in counters.levels.items()}
    by_file = figures[FILE_LEVEL]
    shares = duplicate_shares(counters.locations, counters.references)
    samples = counters.compression_of(outcome.found_bytes)
    complete = not outcome.reason
    return ScanReport(
        paths=tuple(outcome.paths),
        files=outcome.files,
        bytes=outcome.bytes,
        allocated_bytes=outcome.allocated_bytes,
        hardlinks=outcome.hardlinks,
        holes_bytes=outcome.holes_bytes,
        already_shared_bytes=outcome.already_shared_bytes,
        duplicate_groups=by_file.groups,
        duplicate_bytes=by_file.bytes - by_file.unique_bytes,
        levels=tuple(_level(name, one, samples.get(name)) for name, one in figures.items()),
        directories=directories(counters.locations, shares),
        types=types(counters.locations, shares),
        overlaps=overlaps(counters.locations, counters.references),
        similar=counters.resembling.groups(),
        errors=tuple(outcome.problems),
        coverage=Coverage(
            complete=complete,
            reason=outcome.reason,
            found_files=outcome.found_files,
            found_bytes=outcome.found_bytes,
            known_bytes=outcome.known_bytes,
        ),
        attribution=Attribution(FOLLOWED, 1 / (1 << counters.references.shift)),
        more_errors=outcome.more_problems,
        exit=ExitCode.INTERRUPTED if outcome.interrupted else outcome.code,
    )


def _level(name: str, figures: Figures, sample: CompressionSample | None) -> LevelSummary:
    compressed = None if sample is None else sample.figures(figures)
    return LevelSummary(
        name=name,
        mean_bytes=figures.bytes / figures.chunks if figures.chunks else 0.0,
        chunks=figures.chunks,
        bytes=figures.bytes,
        unique_chunks=figures.unique_chunks,
        unique_bytes=figures.unique_bytes,
        exact=figures.exact,
        low=figures.low,
        high=figures.high,
        compressed_bytes=None if compressed is None else compressed.bytes,
        compressed_low=None if compressed is None else compressed.low,
        compressed_high=None if compressed is None else compressed.high,
        sizes=figures.sizes,
        copies=figures.copies,
    )
