"""A scan report as one self-contained page (rdc/report/html_page.py says what that promises)."""

from __future__ import annotations

import shlex
from os import fsdecode

from rdc.files.own.output_file import Output, OutputKind, write_output
from rdc.lean.records import Record
from rdc.report.html_page import (
    COMMAND_CHARACTERS,
    PAGE_END,
    PageOrigin,
    Row,
    cards,
    legend,
    name_text,
    page_head,
    paragraph,
    section,
    table,
)
from rdc.report.output import counted, size_text
from rdc.survey.report.terminal import HEADLINE_LEVEL, headline, level_title, percent, saved_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rdc.model.scan import Bin, DirectorySummary, ScanReport


SCAN_PAGE = OutputKind("a page of a scan", lambda head: b"<title>rdc scan</title>" in head)

ROWS = 20
"""Rows of each table. The JSON document has all."""

PATHS_PER_GROUP = 8

TERABYTE = 10**12


def write_html(report: ScanReport, output: Output, origin: PageOrigin, price: float | None = None) -> None:
    """Write the page completely or not at all. Raises RdcError if the file cannot be written."""
    write_output(output, [scan_html(report, origin, price).encode()])


def scan_html(report: ScanReport, origin: PageOrigin | None = None, price: float | None = None) -> str:
    """Return the page. `origin`: None for this machine and moment. `price`: of storage, in EUR a terabyte;
    then the savings are also stated in money."""
    sentence = headline(report)
    return "".join(
        (
            page_head("rdc scan", sentence[0].upper() + sentence[1:], origin or PageOrigin.here()),
            f"<p>{', '.join(f'<code>{name_text(path)}</code>' for path in report.paths_bytes[:ROWS])}</p>\n",
            "".join(paragraph(note, "note") for note in _notes(report)),
            f'<p class="advice">{_advice(report, price)}</p>\n',
            cards(_cards(report)),
            section("What can be reclaimed", _offers_table(report, price)),
            section("Growth", *_growth(report)),
            section("Largest groups of identical files", _identical(report)),
            section("Sizes by directory", _directories(report), _UNIQUE_OR_NOT),
            section("Sizes by type", _types(report), _UNIQUE_OR_NOT),
            section("Ages", _ages(report)),
            section("What stays, by granularity", *_levels(report)),
            section("Directories that hold the same", _overlaps(report)),
            section("Files that resemble each other", _similar(report)),
            section("Chunks", *_chunks(report)),
            section("Not read", _problems(report)),
            PAGE_END,
        )
    )


_UNIQUE_OR_NOT = legend((("kept", "unique"), ("twice", "there more than once")))


def _notes(report: ScanReport) -> Iterator[str]:
    coverage = report.coverage
    if not coverage.complete:
        why = {
            "sample": "a sample",
            "time": "what the time allowed",
            "interrupted": "what was read until it was stopped",
        }
        yield (
            f"Of {why.get(coverage.reason, coverage.reason)}: {counted(report.files, 'file')} of "
            f"{coverage.found_files:,}, {size_text(report.bytes)} of {size_text(coverage.found_bytes)}."
        )
    if any(not level.exact for level in report.levels):
        yield "Estimated from a sample of digests; ranges in parentheses are 95 % bounds."
    if report.attribution.rate < 1:
        share = percent(report.attribution.rate)
        yield f"Duplicates of directories and types are estimates from {share} of the chunks."


def _cards(report: ScanReport) -> Iterator[tuple[str, str, str]]:
    coverage = report.coverage
    seen = counted(report.files, "file")
    seen += ", all that were found" if coverage.complete else f" of {coverage.found_files:,}"
    yield "read", size_text(report.bytes), seen
    wasted = percent(report.duplicate_bytes / report.bytes if report.bytes else 0)
    groups = counted(report.duplicate_groups, "group")
    yield "in identical files", size_text(report.duplicate_bytes), f"{wasted}, {groups}"
    best = report.level(HEADLINE_LEVEL)
    if best is not None:
        saved = best.bytes - best.unique_bytes
        share = percent(saved_share(best, best.unique_bytes))
        yield f"saved by {level_title(best.name)}", size_text(saved), f"{share}, ratio {best.ratio:.2f}"
        if best.compressed_bytes is not None:
            share = percent(saved_share(best, best.compressed_bytes))
            yield "left after zstd", size_text(best.compressed_bytes), f"{share} saved in total"
    if report.holes_bytes or report.already_shared_bytes or report.hardlinks:
        shared = f"{size_text(report.holes_bytes)} in holes, {counted(report.hardlinks, 'more hard link')}"
        yield "already shared", size_text(report.already_shared_bytes), shared


# The savings, and how to reach them.


class Offer(Record):
    """One way to need less room."""

    name: str
    bytes: int
    """Bytes that it would free."""
    command: str
    condition: str


def offers(report: ScanReport) -> list[Offer]:
    """Return the ways to need less room, the one that frees most first."""
    names = [fsdecode(path) for path in report.paths_bytes]
    paths = " ".join(shlex.quote(name) for name in names[:ROWS]) + (" ..." if len(names) > ROWS else "")
    chunks, files = report.level(HEADLINE_LEVEL), report.level("file")
    found = []
    if not any("://" in name for name in names):
        free = max(0, report.duplicate_bytes - report.already_shared_bytes)
        found.append(
            Offer(
                "Share identical files",
                free,
                f"rdc dedupe --apply {paths}",
                "on btrfs or XFS; --hardlink elsewhere",
            )
        )
        if files is not None and files.compressed_bytes is not None and files.unique_bytes:
            left = report.bytes * files.compressed_bytes // files.unique_bytes
            command = f"btrfs filesystem defragment -r -czstd {paths}"
            found.append(Offer("Compress with zstd", max(0, report.bytes - left), command, "on btrfs"))
    if chunks is not None and chunks.bytes:
        left = chunks.unique_bytes if chunks.compressed_bytes is None else chunks.compressed_bytes
        command = f"rdc store put {paths} STORE"
        found.append(Offer("Move to a store", chunks.bytes - left, command, "for data that rests"))
    return sorted(found, key=lambda one: -one.bytes)


WORTH = 0.01
"""An offer that frees a smaller share is not recommended."""


def _advice(report: ScanReport, price: float | None) -> str:
    """Return one line: the best offer with its command."""
    best = next(iter(offers(report)), None)
    if best is None or best.bytes < max(1, WORTH * report.bytes):
        return "No way to need less room would free one per cent of it."
    share = percent(best.bytes / report.bytes)
    worth = f" ({share})" if price is None else f" ({share}, {_money(best.bytes, price)})"
    return (
        f"<b>{best.name}</b> would free about {size_text(best.bytes)}{worth}, {best.condition}:"
        f" <code>{name_text(best.command, COMMAND_CHARACTERS)}</code>"
    )


def _money(size: int, price: float) -> str:
    return f"{size / TERABYTE * price:,.2f} EUR"


def _offers_table(report: ScanReport, price: float | None) -> str:
    rows = [
        Row(
            f"{one.name}, {one.condition}\n<code>{name_text(one.command, COMMAND_CHARACTERS)}</code>",
            (
                size_text(one.bytes),
                percent(one.bytes / report.bytes),
                *(() if price is None else (_money(one.bytes, price),)),
            ),
            (("kept", one.bytes / report.bytes),),
        )
        for one in offers(report)
        if report.bytes
    ]
    money = () if price is None else ("worth",)
    return table("About what each way alone would free", ("way and command", "bytes", "share", *money), rows)


# Growth since an earlier scan.


def _growth(report: ScanReport) -> Iterator[str]:
    growth = report.growth
    if growth is None:
        return
    files = report.files - growth.before_files
    yield paragraph(
        f"{_change(growth.before_bytes, report.bytes)} and {files:+,} files since the earlier scan, which"
        f" read {size_text(growth.before_bytes)} in {counted(growth.before_files, 'file')}."
    )
    if not growth.complete:
        yield paragraph("One of the scans did not read all files, so a part may be no growth.", "note")
    heads = ("before", "now", "change")
    changes = [
        (name_text(one.path_bytes) or "everything", one.before_bytes, one.bytes) for one in growth.directories
    ]
    yield table("Directories that changed most", ("directory", *heads), list(_changes(changes)))
    kinds = [(_suffix(one.name), one.before_bytes, one.bytes) for one in growth.types]
    yield table("Types that changed most", ("type", *heads), list(_changes(kinds)))


def _changes(rows: Sequence[tuple[str, int, int]]) -> Iterator[Row]:
    most = max((abs(now - before) for _, before, now in rows), default=0) or 1
    for name, before, now in rows[:ROWS]:
        kind = "twice" if now > before else "kept"
        cells = (size_text(before), size_text(now), _change(before, now))
        yield Row(name, cells, ((kind, abs(now - before) / most),))


def _change(before: int, now: int) -> str:
    return ("+" if now >= before else "-") + size_text(abs(now - before))


# Tables


def _identical(report: ScanReport) -> str:
    shown = report.identical[:ROWS]
    most = max((one.waste for one in shown), default=0) or 1
    rows = [
        Row(
            _paths(one.paths_bytes, one.files),
            (size_text(one.waste), size_text(one.size), f"{one.files:,}"),
            (("twice", one.waste / most),),
        )
        for one in shown
    ]
    return table("Bytes in further copies, most first", ("files", "to save", "each", "number"), rows)


def _directories(report: ScanReport) -> str:
    shown = sorted(report.directories, key=lambda one: (-one.bytes, one.path_bytes))[:ROWS]
    rows = [
        Row(
            name_text(one.path_bytes) or "everything",
            _sizes(one),
            _shares(one.bytes, one.duplicate_bytes, report),
        )
        for one in shown
    ]
    heads = ("directory", "files", "bytes", "twice", "share")
    return table("With everything below each, most bytes first", heads, rows)


def _types(report: ScanReport) -> str:
    shown = sorted(report.types, key=lambda one: (-one.bytes, one.name))[:ROWS]
    rows = [
        Row(
            _suffix(one.name),
            (
                f"{one.files:,}",
                size_text(one.bytes),
                size_text(one.duplicate_bytes),
                percent(one.duplicate_bytes / one.bytes if one.bytes else 0.0),
            ),
            _shares(one.bytes, one.duplicate_bytes, report),
        )
        for one in shown
    ]
    return table("Most bytes first", ("type", "files", "bytes", "twice", "share"), rows)


def _sizes(one: DirectorySummary) -> tuple[str, ...]:
    share = one.duplicate_bytes / one.bytes if one.bytes else 0.0
    return f"{one.files:,}", size_text(one.bytes), size_text(one.duplicate_bytes), percent(share)


def _shares(size: int, duplicate: int, report: ScanReport) -> tuple[tuple[str, float], ...]:
    """Return a bar of all that was read: what is unique, and what is there more than once."""
    whole = report.bytes or 1
    return ("kept", (size - min(duplicate, size)) / whole), ("twice", min(duplicate, size) / whole)


def _ages(report: ScanReport) -> str:
    most = max((one.bytes for one in report.ages), default=0) or 1
    rows = []
    for one in report.ages[::-1][: 2 * ROWS]:
        share = one.bytes / report.bytes if report.bytes else 0.0
        bar = (("kept", one.bytes / most),)
        rows.append(Row(str(one.year), (f"{one.files:,}", size_text(one.bytes), percent(share)), bar))
    return table(
        "Files by the year in which they were last modified", ("year", "files", "bytes", "share"), rows
    )


def _levels(report: ScanReport) -> Iterator[str]:
    rows = []
    for level in report.levels:
        whole = level.bytes or 1
        left = level.unique_bytes if level.compressed_bytes is None else level.compressed_bytes
        bounds = "" if level.exact else f" ({size_text(level.low)} to {size_text(level.high)})"
        cells = (
            f"{level.chunks:,}",
            f"{level.unique_chunks:,}",
            size_text(level.unique_bytes) + bounds,
            f"{level.ratio:.2f}",
            "-" if level.compressed_bytes is None else size_text(level.compressed_bytes),
        )
        bar = (
            ("kept", left / whole),
            ("packed", (level.unique_bytes - left) / whole),
            ("twice", (level.bytes - level.unique_bytes) / whole),
        )
        rows.append(Row(level_title(level.name), cells, bar))
    yield table(
        "Smaller chunks find more, and each costs a name to remember",
        ("granularity", "chunks", "unique", "left", "ratio", "after zstd"),
        rows,
    )
    yield legend((("kept", "left"), ("packed", "saved by zstd"), ("twice", "there more than once")))


def _overlaps(report: ScanReport) -> str:
    rows = []
    for one in report.overlaps[:ROWS]:
        first, second = (one.shared_bytes / (size or 1) for size in (one.first_bytes, one.second_bytes))
        rows.append(
            Row(
                f"{name_text(one.first)}\n{name_text(one.second)}",
                (size_text(one.shared_bytes), percent(first), percent(second)),
                (("twice", max(first, second)),),
            )
        )
    heads = ("directories", "in both", "of the first", "of the second")
    return table("How much of each of two directories is also in the other", heads, rows)


def _similar(report: ScanReport) -> str:
    rows = [
        Row(_paths(one.paths_bytes, len(one.paths_bytes)), (f"{one.resemblance:.2f}", size_text(one.bytes)))
        for one in report.similar[:ROWS]
    ]
    return table("Not identical; the resemblance is an estimate", ("files", "resemblance", "bytes"), rows)


def _chunks(report: ScanReport) -> Iterator[str]:
    level = report.level(HEADLINE_LEVEL)
    if level is None or not level.unique_bytes:
        return
    title = level_title(level.name)
    yield table(f"{title} by size", ("at most", "unique chunks", "bytes"), _bins(level.sizes, size_text))
    copies = _bins(level.copies, lambda count: f"{counted(count, 'copy', 'copies')}")
    yield table(f"{title} by number of copies", ("at most", "unique chunks", "bytes"), copies)


def _bins(bins: Sequence[Bin], title: Callable[[int], str]) -> list[Row]:
    most = max((one.bytes for one in bins), default=0) or 1
    return [
        Row(title(one.upto), (f"{one.chunks:,}", size_text(one.bytes)), (("kept", one.bytes / most),))
        for one in bins
    ]


def _problems(report: ScanReport) -> str:
    rows = [Row(name_text(one.path_bytes), (_cut(one.message),)) for one in report.errors[:ROWS]]
    left = len(report.errors) - len(rows) + report.more_errors
    if left:
        rows.append(Row("", (f"and {left:,} more",)))
    return table("Files and directories that the figures lack", ("path", "why"), rows)


def _cut(message: str) -> str:
    return message if len(message) <= 1000 else message[:1000] + " \N{HORIZONTAL ELLIPSIS}"


def _suffix(name: str) -> str:
    """Return a suffix as a table shows it."""
    return name_text(name) or "no suffix"


def _paths(paths: Iterable[bytes], count: int) -> str:
    """Return names of a group, one a line."""
    shown = [name_text(path) for path in paths][:PATHS_PER_GROUP]
    more = count - len(shown)
    return "\n".join([*shown, f"and {more:,} more"] if more > 0 else shown)
