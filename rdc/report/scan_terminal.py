"""A scan report for a person at a terminal: tables by rich, the headline last."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from rdc.errors import printable
from rdc.report.scan_headline import headline, level_title, percent, saved_share
from rdc.report.sizes import counted, size_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rdc.model.scan import DirectorySummary, LevelSummary, ScanReport

__all__ = ["print_scan"]

NEARLY_ALL = 0.95
"""Share of a directory's duplicate bytes that one below it must hold to stand for both."""

ROWS = 10
"""Rows of a table of directories, types or pairs: what fits a screen; the rest is in --json."""

PLAIN_WIDTH = 110
"""Columns where the output is no terminal: paths are cut in the middle of a column before lines break."""


def print_scan(
    report: ScanReport, stream: TextIO, *, terminal: bool, color: bool, width: int | None = None
) -> None:
    """Writes the report to `stream`. `width` in columns; None: the terminal's, or PLAIN_WIDTH."""
    from rich.console import Console

    console = Console(
        file=stream,
        force_terminal=terminal,
        no_color=not color,
        color_system="standard" if color and terminal else None,
        width=width if width is not None or terminal else PLAIN_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )
    _totals(console, report)
    if report.bytes:
        _levels(console, report)
        _directories(console, report)
        _types(console, report)
        _overlaps(console, report)
        _similar(console, report)
    console.print(_coverage(report))
    console.print(headline(report), style="bold")


def _totals(console: Console, report: ScanReport) -> None:
    parts = [
        counted(report.files, "file"),
        size_text(report.bytes),
        f"{size_text(report.allocated_bytes)} allocated",
    ]
    if report.hardlinks:
        parts.append(counted(report.hardlinks, "further hard link"))
    if report.holes_bytes:
        parts.append(f"{size_text(report.holes_bytes)} of holes")
    if report.already_shared_bytes:
        parts.append(f"{size_text(report.already_shared_bytes)} shared already")
    console.print(", ".join(parts))
    if report.duplicate_groups:
        groups = counted(report.duplicate_groups, "group")
        console.print(f"identical files: {groups}, {size_text(report.duplicate_bytes)} in further copies")


def _levels(console: Console, report: ScanReport) -> None:
    table = _table(
        "What deduplication keeps", "granularity", "chunks", "unique", "kept", "saves", "ratio", "with zstd"
    )
    for level in report.levels:
        table.add_row(
            level_title(level.name),
            f"{level.chunks:,}",
            _about(level, f"{level.unique_chunks:,}"),
            _kept(level),
            percent(saved_share(level, level.unique_bytes)),
            f"{level.ratio:.2f}",
            _compressed(level),
        )
    console.print(table)


def _about(level: LevelSummary, text: str) -> str:
    return text if level.exact else f"~{text}"


def _kept(level: LevelSummary) -> str:
    text = _about(level, size_text(level.unique_bytes))
    if level.exact or not level.unique_bytes:
        return text
    return f"{text} ±{100 * (level.high - level.low) / 2 / level.unique_bytes:.1f} %"


def _compressed(level: LevelSummary) -> str:
    if level.compressed_bytes is None or level.compressed_low is None or level.compressed_high is None:
        return "-"
    text = f"{size_text(level.compressed_bytes)}, {percent(saved_share(level, level.compressed_bytes))}"
    half = (level.compressed_high - level.compressed_low) / 2
    # What a reader would not see in the rounded figure is not worth a column.
    return text if half < 0.005 * level.bytes else f"{text} ±{100 * half / level.bytes:.0f}"


def _directories(console: Console, report: ScanReport) -> None:
    shown = _telling(report)[:ROWS]
    if not shown:
        return
    table = _table("Where duplicate bytes are", "directory", "files", "bytes", "duplicate", "")
    for one in shown:
        share = one.duplicate_bytes / one.bytes if one.bytes else 0.0
        table.add_row(
            printable(one.path),
            f"{one.files:,}",
            size_text(one.bytes),
            size_text(one.duplicate_bytes),
            percent(share),
        )
    console.print(table)


def _telling(report: ScanReport) -> list[DirectorySummary]:
    """Directories with duplicates, most first, without those of which nearly all is in one below them."""
    found: list[DirectorySummary] = []
    for one in report.directories:
        if not one.duplicate_bytes:
            continue
        # In their order, what is inside and holds nearly as much follows soon: it takes the place.
        inside = found and one.path.startswith(found[-1].path.rstrip(b"/") + b"/")
        if inside and one.duplicate_bytes >= NEARLY_ALL * found[-1].duplicate_bytes:
            found[-1] = one
        else:
            found.append(one)
    return found


def _types(console: Console, report: ScanReport) -> None:
    shown = [one for one in report.types if one.duplicate_bytes][:ROWS]
    if not shown:
        return
    table = _table("By type", "type", "files", "bytes", "duplicate", "")
    for one in shown:
        share = one.duplicate_bytes / one.bytes if one.bytes else 0.0
        name = printable(one.name) or "(none)"
        table.add_row(
            name, f"{one.files:,}", size_text(one.bytes), size_text(one.duplicate_bytes), percent(share)
        )
    console.print(table)


def _overlaps(console: Console, report: ScanReport) -> None:
    if not report.overlaps:
        return
    table = _table(
        "Directories that hold the same", "directory", "in common", "of it", "of the other", "directory"
    )
    table.columns[-1].justify = "left"
    table.columns[-1].overflow = "fold"
    for one in report.overlaps[:ROWS]:
        table.add_row(
            printable(one.first),
            size_text(one.shared_bytes),
            percent(one.shared_bytes / one.first_bytes if one.first_bytes else 0.0),
            percent(one.shared_bytes / one.second_bytes if one.second_bytes else 0.0),
            printable(one.second),
        )
    console.print(table)


def _similar(console: Console, report: ScanReport) -> None:
    if not report.similar:
        return
    table = _table("Files that resemble each other", "files", "bytes", "alike")
    for one in report.similar[:ROWS]:
        names = "\n".join(printable(path) for path in one.paths[:ROWS])
        if len(one.paths) > ROWS:
            names += f"\nand {len(one.paths) - ROWS:,} more"
        table.add_row(names, size_text(one.bytes), percent(one.resemblance))
    console.print(table)


def _table(title: str, first: str, *others: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _coverage(report: ScanReport) -> str:
    coverage = report.coverage
    text = f"read {counted(report.files, 'file')} of {coverage.found_files:,}"
    why = {"sample": "a sample", "time": "the time was over", "interrupted": "interrupted"}
    if not coverage.complete:
        text += f" ({why.get(coverage.reason, coverage.reason)}): all figures are of what was read"
    problems = len(report.errors) + report.more_errors
    if coverage.known_bytes:
        text += f"; {size_text(coverage.known_bytes)} known from before"
    if problems:
        text += f"; {counted(problems, 'problem')}"
    return text
