"""The headline of a scan report: `16 KiB chunks save 31 %, zstd after them 48 %`."""

from __future__ import annotations

from rdc.model.scan import LevelSummary, ScanReport

__all__ = ["HEADLINE_LEVEL", "headline", "level_title", "percent", "saved_share"]

HEADLINE_LEVEL = "cdc-16384"


def headline(report: ScanReport) -> str:
    """One line: what 16 KiB chunks save, what compression adds, and whether everything was read."""
    level = report.level(HEADLINE_LEVEL)
    if level is None or not level.bytes:
        return "nothing to save: no content was read"
    about = "" if level.exact else "about "
    text = f"{level_title(level.name)} save {about}{percent(saved_share(level, level.unique_bytes))}"
    if level.compressed_bytes is not None:
        text += f", zstd after them {percent(saved_share(level, level.compressed_bytes))}"
    return text if report.coverage.complete else f"{text}, of what was read"


def saved_share(level: LevelSummary, stored: int) -> float:
    """The share of the level's bytes that is saved if `stored` bytes remain: 0 to 1; 0 for an empty level."""
    return max(0.0, 1 - stored / level.bytes) if level.bytes else 0.0


def percent(share: float) -> str:
    """`31 %`; `0.4 %` below ten, where the digit matters; 100 % only if exact."""
    value = 100 * share
    if 99.5 <= value < 100:
        return "99.9 %"
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.1f} %"


def level_title(name: str) -> str:
    """`16 KiB chunks`, `4 KiB blocks`, `whole files`."""
    kind, _, size = name.partition("-")
    if kind == "file":
        return "whole files"
    return f"{int(size) >> 10} KiB {'blocks' if kind == 'fixed' else 'chunks'}"
