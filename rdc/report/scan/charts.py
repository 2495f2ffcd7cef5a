"""The charts of a scan's page, as plotly figures in JSON.

Every name is escaped first, because plotly interprets some HTML in labels.
"""

from __future__ import annotations

import html
import posixpath

from rdc.errors import printable
from rdc.model.scan import DirectorySummary
from rdc.report.scan.headline import level_title, percent, saved_share
from rdc.report.sizes import counted, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rdc.model.scan import Bin, LevelSummary, Overlap, ScanReport

__all__ = ["directories_chart", "label", "levels_chart", "overlaps_chart", "sizes_chart"]

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
