"""Draws the SVG figures in fixtures/figures from the measurements in fixtures/bench alone.

A figure has horizontal bars in groups, or a few curves. That does not justify a dependency on a library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

ROOT = Path(__file__).parent.parent
BENCH, FIGURES = ROOT / "fixtures" / "bench", ROOT / "fixtures" / "figures"
COLOURS = ("#1f5fa8", "#5b9bd5", "#a9c9e8", "#c9c9c9", "#7f7f7f", "#e0a030", "#b05020", "#404040", "#208050")
LABEL, PLOT, BAR, GAP = 210, 520, 12, 10


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, float]], start: float = 0) -> str:
    """Return groups of bars from `start` on. Every group has the same series; the legend names their
    colours."""
    series = list(next(iter(groups.values())))
    top = max(value for group in groups.values() for value in group.values())
    scale = PLOT / (top - start)
    y, parts = 58 + 18 * ((len(series) + 3) // 4), []
    for i, name in enumerate(series):
        x, row = 20 + 185 * (i % 4), 48 + 18 * (i // 4)
        parts.append(
            f'<rect x="{x}" y="{row - 9}" width="10" height="10" fill="{COLOURS[i % len(COLOURS)]}"/>'
        )
        parts.append(f'<text x="{x + 15}" y="{row}">{escape(name)}</text>')
    for label, group in groups.items():
        middle = y + BAR * len(series) / 2 + 4
        parts.append(f'<text x="{LABEL - 8}" y="{middle:.0f}" text-anchor="end">{escape(label)}</text>')
        for i, value in enumerate(group.values()):
            width = max(1.0, (value - start) * scale)
            colour = COLOURS[i % len(COLOURS)]
            parts.append(
                f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR - 2}" fill="{colour}"/>'
            )
            parts.append(f'<text x="{LABEL + width + 4:.1f}" y="{y + 9}" class="v">{value:.4g}</text>')
            y += BAR
        y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + PLOT + 70}" height="{y + 10}" '
        'font-family="sans-serif" font-size="12"><style>.v{font-size:9px;fill:#555}</style>'
        '<rect width="100%" height="100%" fill="white"/>'
        f'<text x="20" y="24" font-size="15">{escape(title)}</text>'
        f'<text x="{LABEL + PLOT + 60}" y="24" text-anchor="end" class="v">{escape(unit)}</text>'
    )
    return head + "".join(parts) + "</svg>\n"


def curves(title: str, across: str, panels: Mapping[str, Mapping[str, Mapping[float, float]]]) -> str:
    """Panels side by side with the same curves, from 0 to 1 on both axes. The legend names each once."""
    series = list(next(iter(panels.values())))
    side, between, top = 340, 50, 64 + 18 * ((len(series) + 1) // 2)
    parts = []
    for i, name in enumerate(series):
        x, row = 40 + 390 * (i % 2), 48 + 18 * (i // 2)
        colour = COLOURS[i % len(COLOURS)]
        parts.append(f'<rect x="{x}" y="{row - 6}" width="16" height="3" fill="{colour}"/>')
        parts.append(f'<text x="{x + 22}" y="{row}">{escape(name)}</text>')
    for p, (label, lines) in enumerate(panels.items()):
        left = 40 + p * (side + between)
        parts.append(f'<text x="{left + side / 2}" y="{top - 8}" text-anchor="middle">{escape(label)}</text>')
        for tenth in range(0, 11, 2):
            x, y = left + side * tenth / 10, top + side * (1 - tenth / 10)
            parts.append(
                f'<path d="M{left} {y:.1f}h{side}M{x:.1f} {top}v{side}" stroke="#ddd"/>'
                f'<text x="{left - 4}" y="{y + 3:.1f}" text-anchor="end" class="v">{tenth / 10}</text>'
                f'<text x="{x:.1f}" y="{top + side + 12}" text-anchor="middle" class="v">{tenth / 10}</text>'
            )
        for i, points in enumerate(lines.values()):
            path = " ".join(f"{left + side * x:.1f},{top + side * (1 - y):.1f}" for x, y in points.items())
            colour = COLOURS[i % len(COLOURS)]
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    width = 40 + len(panels) * (side + between)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + side + 36}" '
        'font-family="sans-serif" font-size="12"><style>.v{font-size:9px;fill:#555}</style>'
        '<rect width="100%" height="100%" fill="white"/>'
        f'<text x="20" y="24" font-size="15">{escape(title)}</text>'
        f'<text x="{width / 2}" y="{top + side + 28}" text-anchor="middle">{escape(across)}</text>'
    )
    return head + "".join(parts) + "</svg>\n"


def kernel_speed(report: Mapping[str, Any]) -> str:
    """Speed of cuts by input and variant at a mean of 16 KiB. Runs of zeros would dwarf the rest."""
    rows = report["cuts"]["16 KiB"]
    groups = {
        name: {what: speed for what, speed in row.items() if what != "read memory"}
        for name, row in rows.items()
        if name != "zeros"
    }
    return bars("Cuts and traits, one thread, 16 KiB mean", "GB/s", groups)


def dedup(report: Mapping[str, Any]) -> str:
    """Return the unique bytes by chunker at the means that surveys and syncs use. Fixed blocks are left out:
    on most corpora they need at least twice FastCDC's bytes."""
    groups = {
        f"{corpus}, {mean}": {
            label: 100 * values["of FastCDC"]
            for label, values in means[mean].items()
            if label != "fixed blocks"
        }
        for corpus, means in report.items()
        for mean in ("4 KiB", "16 KiB")
    }
    return bars(
        "Unique bytes at equal mean, versions of one tree", "% of FastCDC's, from 95", groups, start=95
    )


def recall(report: Mapping[str, Any]) -> str:
    """Recall of mixed files by resemblance, each method with its false candidates among unrelated files."""
    kinds = ("2-20 KB", "64 KiB and more")
    wrong = [report["false candidates a million"][kind] for kind in kinds]
    panels = {
        kind: {
            f"{name}: {wrong[0][name]:.3g}, {wrong[1][name]:.3g} false a million": {
                float(j) + 0.05: row[name]
                for j, row in report["mixed"][kind]["windows"].items()
                if row["pairs"] >= 20
            }
            for name in wrong[0]
            if name != "pairs"
        }
        for kind in kinds
    }
    return curves(
        "Recall of similar files, by samples and features", "true Jaccard resemblance of windows", panels
    )


def figures() -> dict[str, str]:
    """All figures by file name."""

    def load(name: str) -> Any:
        return json.loads((BENCH / name).read_text())

    return {
        "kernel.svg": kernel_speed(load("kernel.json")),
        "dedup.svg": dedup(load("dedup.json")),
        "similarity.svg": recall(load("similarity.json")),
    }


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    for name, text in figures().items():
        (FIGURES / name).write_text(text)


if __name__ == "__main__":
    main()
