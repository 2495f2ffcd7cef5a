"""A scan report as one self-contained page: no network access, no other files.

The charts are plotly's, whose script is in the page. A content security policy forbids everything else: even
a name that escaped the escaping could load nothing. Every name is escaped first, because plotly interprets
some HTML in labels.
"""

from __future__ import annotations

import html
import posixpath
import string
from importlib import resources

from rdc.errors import UsageError, printable
from rdc.files.own.output_file import Output, OutputKind, write_output
from rdc.model.scan import DirectorySummary
from rdc.report.output import counted, size_text
from rdc.survey.report.terminal import HEADLINE_LEVEL, headline, level_title, percent, saved_share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from rdc.model.scan import Bin, LevelSummary, Overlap, ScanReport


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
    page = string.Template(resources.files("rdc.survey.report").joinpath("page.html").read_text("utf-8"))
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


STORED, PACKED, SQUEEZED, DOUBLED = "#1f5fa8", "#5b9bd5", "#b9d3ec", "#d08763"
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom"}
"""Above the picture. On a narrow screen it takes more rows, which grow upwards."""

INK, LINES = "#1c2430", "#eceff3"
SHARES = [[0.0, "#e8f0f8"], [0.5, "#f4dcc8"], [1.0, "#c2562f"]]
"""Colours from no duplicate bytes to only duplicate bytes."""

MAP_DIRECTORIES = 300
"""Most rectangles in the map. More could not be told apart."""

OVERLAPS = 12


def label(name: bytes) -> str:
    """A name, escaped for plotly and HTML."""
    return html.escape(printable(name), quote=False)


def levels_chart(report: ScanReport) -> str:
    """Bytes at each level: stored after zstd, stored after deduplication, and saved by deduplication."""
    levels = report.levels[::-1]
    titles = [level_title(level.name) for level in levels]
    traces: list[dict[str, Any]] = []
    if any(level.compressed_bytes is not None for level in levels):
        packed = [
            level.unique_bytes if level.compressed_bytes is None else level.compressed_bytes
            for level in levels
        ]
        traces.append(_bar("left after zstd", titles, packed, PACKED, levels))
        squeezed = [level.unique_bytes - size for level, size in zip(levels, packed, strict=True)]
        traces.append(_bar("saved by zstd", titles, squeezed, SQUEEZED, levels))
    else:
        traces.append(_bar("left", titles, [level.unique_bytes for level in levels], STORED, levels))
    if not all(level.exact for level in levels):
        # The bounds belong to what deduplication leaves, which is where this bar ends.
        traces[-1]["error_x"] = {
            "type": "data",
            "symmetric": False,
            "array": [level.high - level.unique_bytes for level in levels],
            "arrayminus": [level.unique_bytes - level.low for level in levels],
            "color": INK,
        }
    doubled = [level.bytes - level.unique_bytes for level in levels]
    saved = _bar("there more than once", titles, doubled, DOUBLED, levels)
    saved["text"] = [percent(saved_share(level, level.unique_bytes)) for level in levels]
    saved["textposition"] = "inside"
    saved["insidetextanchor"] = "end"
    traces.append(saved)
    layout = _layout(barmode="stack", legend={**LEGEND, "traceorder": "normal"})
    layout["yaxis"] = {"automargin": True}
    layout["xaxis"] = _size_axis(max((level.bytes for level in levels), default=0))
    return _figure(traces, layout)


def directories_chart(report: ScanReport) -> str | None:
    """A map of duplicate bytes: area by duplicate bytes, colour by their share of the directory."""
    # long because it draws one chart from top to bottom
    chosen = [one for one in report.directories[:MAP_DIRECTORIES] if one.duplicate_bytes]
    if not chosen:
        return None
    known = {one.path for one in chosen}
    tops = [one for one in chosen if _parent(one.path, known) is None]
    # The map has a root of its own, since plotly paints the one that it adds over several tops black.
    everything = DirectorySummary(
        b"",
        sum(t.files for t in tops),
        sum(t.bytes for t in tops),
        sum(t.duplicate_bytes for t in tops),
        0,
        0,
    )
    chosen.append(everything)
    shares = [one.duplicate_bytes / one.bytes if one.bytes else 0.0 for one in chosen]
    trace: dict[str, Any] = {
        "type": "treemap",
        "branchvalues": "total",
        "ids": [_node(one.path) for one in chosen],
        "labels": [_short(one.path, known) for one in chosen],
        "parents": ["" if one is everything else _node(_parent(one.path, known) or b"") for one in chosen],
        "values": [one.duplicate_bytes for one in chosen],
        "text": [size_text(one.duplicate_bytes) for one in chosen],
        "hovertext": [_about(one, share) for one, share in zip(chosen, shares, strict=True)],
        "hoverinfo": "text",
        "marker": {
            "colors": shares,
            "colorscale": SHARES,
            "cmin": 0,
            "cmax": 1,
            "showscale": True,
            "colorbar": {"title": {"text": "duplicate"}, "tickformat": ".0%", "thickness": 12},
        },
        "tiling": {"pad": 2},
        "maxdepth": 4,
    }
    return _figure([trace], _layout(height=520, margin={"l": 8, "r": 8, "t": 8, "b": 8}))


def sizes_chart(report: ScanReport) -> str | None:
    """Histograms of the sizes of unique chunks and of the number of copies, by bytes."""
    traces: list[dict[str, Any]] = []
    for level in report.levels:
        if level.name.startswith("cdc-") and level.sizes:
            traces.append(_steps(level_title(level.name), level.sizes, "x", "y"))
            if level.copies:
                traces.append(_steps(level_title(level.name), level.copies, "x2", "y2"))
    if not traces:
        return None
    layout = _layout(grid={"rows": 1, "columns": 2, "pattern": "independent"}, legend=LEGEND)
    axis = {"type": "log", "dtick": 1, "gridcolor": LINES, "zeroline": False}
    layout["xaxis"] = {**axis, "title": {"text": "bytes of a chunk, at most"}}
    layout["xaxis2"] = {**axis, "title": {"text": "copies, at most"}}
    # Most chunks occur once. A logarithmic scale keeps the others visible.
    layout["yaxis2"] = {"type": "log"}
    for name in ("yaxis", "yaxis2"):
        layout[name] = {
            **layout.get(name, {}),
            "title": {"text": "bytes of unique chunks"},
            "tickformat": ".2s",
            "gridcolor": LINES,
        }
    return _figure(traces, layout)


def overlaps_chart(report: ScanReport) -> str | None:
    """The pairs of directories that share most, and the shared part of each."""
    pairs = report.overlaps[:OVERLAPS][::-1]
    if not pairs:
        return None
    names = [f"{_tail(pair.first)}<br>∩ {_tail(pair.second)}" for pair in pairs]
    traces = []
    for which, colour in (("first", STORED), ("second", PACKED)):
        whole = [pair.first_bytes if which == "first" else pair.second_bytes for pair in pairs]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": f"part of the {which}",
                "y": list(range(len(pairs))),
                "x": [
                    pair.shared_bytes / size if size else 0 for pair, size in zip(pairs, whole, strict=True)
                ],
                "text": [size_text(pair.shared_bytes) if which == "first" else "" for pair in pairs],
                "hovertext": [_shared(pair) for pair in pairs],
                "hoverinfo": "text",
                "marker": {"color": colour},
            }
        )
    layout = _layout(height=120 + 44 * len(pairs), barmode="group", legend=LEGEND)
    layout["xaxis"] = {"tickformat": ".0%", "range": [0, 1], "gridcolor": LINES}
    layout["yaxis"] = {
        "tickmode": "array",
        "tickvals": list(range(len(pairs))),
        "ticktext": names,
        "automargin": True,
    }
    return _figure(traces, layout)


# Parts of charts


def _bar(
    name: str, titles: Sequence[str], values: Sequence[int], colour: str, levels: Sequence[LevelSummary]
) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": list(titles),
        "x": list(values),
        "marker": {"color": colour},
        "hovertext": [
            f"{level_title(level.name)}: {size_text(value)} {name} of {size_text(level.bytes)}"
            for level, value in zip(levels, values, strict=True)
        ],
        "hoverinfo": "text",
    }


def _steps(name: str, bins: Sequence[Bin], x: str, y: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "line": {
            "shape": "vh",
            "width": 2,
            "color": {"4": STORED, "1": "#b5482a", "6": "#208050"}.get(name[0], INK),
        },
        "name": name,
        "legendgroup": name,
        "showlegend": x == "x",
        "xaxis": x,
        "yaxis": y,
        "x": [one.upto for one in bins],
        "y": [one.bytes for one in bins],
        "hovertext": [f"{name}: {counted(one.chunks, 'chunk')}, {size_text(one.bytes)}" for one in bins],
        "hoverinfo": "text",
    }


def _parent(path: bytes, known: set[bytes]) -> bytes | None:
    """The nearest directory above that is in the map, or None."""
    above = posixpath.dirname(path)
    while above not in (b"", path):
        if above in known:
            return above
        path, above = above, posixpath.dirname(above)
    return above if above in known and above != path else None


def _node(path: bytes) -> str:
    """The name of a directory's node. plotly does not accept ''."""
    return f"/{label(path)}"


def _short(path: bytes, known: set[bytes]) -> str:
    """The path without the part that its parent in the map shows."""
    if not path:
        return "everything"
    parent = _parent(path, known)
    return label(path if parent is None else path[len(parent.rstrip(b"/")) + 1 :] or path)


def _tail(path: bytes) -> str:
    return label(b"/".join(path.rstrip(b"/").split(b"/")[-2:]))


def _about(one: DirectorySummary, share: float) -> str:
    return (
        f"{label(one.path) or 'everything'}<br>{size_text(one.duplicate_bytes)} duplicate, "
        f"{percent(share)} of {size_text(one.bytes)}<br>{counted(one.files, 'file')}"
    )


def _shared(pair: Overlap) -> str:
    return (
        f"{size_text(pair.shared_bytes)} in both<br>{label(pair.first)}: {size_text(pair.first_bytes)}"
        f"<br>{label(pair.second)}: {size_text(pair.second_bytes)}"
    )


def _size_axis(largest: int) -> dict[str, Any]:
    """Axis ticks in the units of the text, which plotly does not know."""
    step = _step(largest)
    ticks = list(range(0, largest + 1, step))
    return {
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [size_text(t) for t in ticks],
        "gridcolor": LINES,
    }


def _step(largest: int) -> int:
    """The distance of ticks that people use: 1, 2 or 5 times a power of ten, at most five of them."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if largest <= 5 * factor * step:
                return factor * step
        step *= 10


def _layout(*, height: int = 360, **more: Any) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"l": 48, "r": 24, "t": 24, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "color": INK},
        "hoverlabel": {"align": "left"},
    }
    return {**layout, **more}


def _figure(traces: Sequence[dict[str, Any]], layout: dict[str, Any]) -> str:
    """JSON that is safe in a script element. plotly validates every property name."""
    from plotly.graph_objects import Figure

    text: str = Figure(data=list(traces), layout=layout).to_json()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
