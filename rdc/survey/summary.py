"""From what was counted to the report."""

from __future__ import annotations

from rdc.errors import ExitCode
from rdc.model.scan import Attribution, Coverage, LevelSummary, ScanReport
from rdc.survey.attribution import directories, duplicate_shares, types
from rdc.survey.levels import FILE_LEVEL, FOLLOWED
from rdc.survey.overlap import overlaps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.census import Census
    from rdc.survey.outcome import Outcome
    from rdc.survey.tally import Figures

__all__ = ["report_of"]


def report_of(outcome: Outcome) -> ScanReport:
    """The report. The outcome stays as it is and can go on."""
    census = outcome.census
    figures = {name: tally.figures() for name, tally in census.levels.items()}
    by_file = figures[FILE_LEVEL]
    shares = duplicate_shares(census.places, census.references)
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
        levels=tuple(_level(name, one, census) for name, one in figures.items()),
        directories=directories(census.places, shares),
        types=types(census.places, shares),
        overlaps=overlaps(census.places, census.references),
        similar=census.resembling.groups(census.places),
        errors=tuple(outcome.problems),
        coverage=Coverage(
            complete=complete,
            reason=outcome.reason,
            found_files=outcome.found_files,
            found_bytes=outcome.found_bytes,
            known_bytes=outcome.known_bytes,
        ),
        attribution=Attribution(FOLLOWED, 1 / (1 << census.references.shift)),
        more_errors=outcome.more_problems,
        exit=ExitCode.INTERRUPTED if outcome.interrupted else outcome.code,
    )


def _level(name: str, figures: Figures, census: Census) -> LevelSummary:
    sample = census.compression.get(name)
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
