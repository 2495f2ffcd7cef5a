"""A scan report as one self-contained page: no network access, no other files.

The charts are plotly's, whose script is in the page. A content security policy forbids everything else: even
a name that escaped the escaping could load nothing.
"""

from __future__ import annotations

import html
import string
from importlib import resources

from rdc.errors import UsageError
from rdc.files.own.output_file import Output, OutputKind, write_output
from rdc.report.scan.charts import directories_chart, label, levels_chart, overlaps_chart, sizes_chart
from rdc.report.scan.headline import HEADLINE_LEVEL, headline, level_title, percent, saved_share
from rdc.report.sizes import counted, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rdc.model.scan import ScanReport

__all__ = ["SCAN_PAGE", "scan_html", "write_html"]

SCAN_PAGE = OutputKind("a page of a scan", lambda head: b"<title>rdc scan</title>" in head)
"""page.html has the mark in its head."""

ROWS = 20
"""Rows of each table. The JSON document has all."""

PATHS_PER_GROUP = 8


def write_html(report: ScanReport, output: Output) -> None:
    """Write the page completely or not at all. Raises RdcError if plotly is missing or the file cannot be
    written."""
    write_output(output, [scan_html(report).encode()])


def scan_html(report: ScanReport) -> str:
    """The page. Raises UsageError if plotly, an optional dependency, is missing."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise UsageError(
            "--html needs plotly (python3 -m pip install plotly); --json needs nothing"
        ) from error
    charts = {
        "levels": levels_chart(report),
        "directories": directories_chart(report),
        "sizes": sizes_chart(report),
        "overlaps": overlaps_chart(report),
    }
    page = string.Template(resources.files("rdc.report.scan").joinpath("page.html").read_text("utf-8"))
    return page.substitute(
        headline=html.escape(_sentence(headline(report))),
        paths=", ".join(f"<code>{label(path)}</code>" for path in report.paths),
        notes="".join(f'<p class="note">{html.escape(note)}</p>' for note in _notes(report)),
        cards="".join(_card(*card) for card in _cards(report)),
        sections="".join(_section(name, title, text) for name, title, text in _SECTIONS if charts[name]),
        tables="".join(_tables(report)),
        plotly=get_plotlyjs(),
        charts="".join(f'draw("{name}", {chart});\n' for name, chart in charts.items() if chart),
    )


_SECTIONS = (
    (
        "levels",
        "What stays, by granularity",
        "Each bar is everything that was read. Smaller chunks find more, and each costs a name to remember.",
    ),
    (
        "directories",
        "Where the duplicate bytes are",
        "Area: bytes that are there more than once. Colour: their share of the directory. Click to go in.",
    ),
    (
        "overlaps",
        "Directories that hold the same",
        "How much of each of two directories is also in the other.",
    ),
    ("sizes", "Chunks", "How large unique chunks are, and how often chunks are there."),
)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _notes(report: ScanReport) -> Iterable[str]:
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
        yield "Estimated from a sample of digests; the whiskers are 95 % bounds."
    if report.attribution.rate < 1:
        yield f"Directories and types are estimates from {percent(report.attribution.rate)} of the chunks."


def _cards(report: ScanReport) -> Iterable[tuple[str, str, str]]:
    yield "read", size_text(report.bytes), counted(report.files, "file")
    wasted = percent(report.duplicate_bytes / report.bytes if report.bytes else 0)
    yield (
        "in identical files",
        size_text(report.duplicate_bytes),
        f"{wasted}, {counted(report.duplicate_groups, 'group')}",
    )
    best = report.level(HEADLINE_LEVEL)
    if best is not None:
        saved = best.bytes - best.unique_bytes
        share = percent(saved_share(best, best.unique_bytes))
        yield f"saved by {level_title(best.name)}", size_text(saved), f"{share}, ratio {best.ratio:.2f}"
        if best.compressed_bytes is not None:
            share = percent(saved_share(best, best.compressed_bytes))
            yield "left after zstd", size_text(best.compressed_bytes), f"{share} saved in all"
    if report.holes_bytes or report.already_shared_bytes or report.hardlinks:
        shared = f"{size_text(report.holes_bytes)} in holes, {counted(report.hardlinks, 'more hard link')}"
        yield "already shared", size_text(report.already_shared_bytes), shared


def _card(title: str, value: str, more: str) -> str:
    return f"<li><b>{html.escape(value)}</b><span>{html.escape(title)}</span><i>{html.escape(more)}</i></li>"


def _section(name: str, title: str, text: str) -> str:
    return f'<section><h2>{title}</h2><p>{text}</p><div id="{name}" class="chart"></div></section>'


def _tables(report: ScanReport) -> Iterable[str]:
    yield _table(
        "Granularities",
        ("", "mean", "chunks", "unique", "left", "ratio", "after zstd"),
        [
            (
                level_title(level.name),
                size_text(round(level.mean_bytes)),
                f"{level.chunks:,}",
                f"{level.unique_chunks:,}",
                size_text(level.unique_bytes)
                + ("" if level.exact else f" ({size_text(level.low)} to {size_text(level.high)})"),
                f"{level.ratio:.2f}",
                "" if level.compressed_bytes is None else size_text(level.compressed_bytes),
            )
            for level in report.levels
        ],
    )
    yield _table(
        "Types",
        ("", "files", "bytes", "duplicate"),
        [
            (_suffix(one.name), f"{one.files:,}", size_text(one.bytes), size_text(one.duplicate_bytes))
            for one in report.types[:ROWS]
        ],
    )
    yield _table(
        "Files that resemble each other",
        ("resemblance, about", "bytes", "files"),
        [
            (
                f"{one.resemblance:.2f}",
                size_text(one.bytes),
                "\n".join(map(_name, one.paths[:PATHS_PER_GROUP]))
                + (
                    f"\nand {len(one.paths) - PATHS_PER_GROUP:,} more"
                    if len(one.paths) > PATHS_PER_GROUP
                    else ""
                ),
            )
            for one in report.similar[:ROWS]
        ],
    )
    problems = [(_name(one.path), one.message) for one in report.errors[:ROWS]]
    left = len(report.errors) - len(problems) + report.more_errors
    yield _table("Not read", ("path", "why"), problems + ([("", f"and {left:,} more")] if left else []))


def _name(path: bytes) -> str:
    return html.unescape(label(path))


def _suffix(name: str) -> str:
    """A suffix as a table shows it."""
    return _name(name.encode()) or "no suffix"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    right = [all(row[at][:1].isdigit() or not row[at] for row in rows) for at in range(len(heads))]
    columns = [' class="number"' if numbers else "" for numbers in right]
    head = _row("th", heads, columns)
    body = "".join(f"<tr>{_row('td', row, columns)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<section><h2>{title}</h2><div class="wide">{table}</div></section>'


def _row(tag: str, values: Sequence[str], columns: Sequence[str]) -> str:
    return "".join(
        f"<{tag}{column}>{html.escape(value)}</{tag}>" for value, column in zip(values, columns, strict=True)
    )
