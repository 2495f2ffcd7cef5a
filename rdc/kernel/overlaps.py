"""The resemblance of sets, pairs of those that may resemble each other, and the windows of a content."""

from __future__ import annotations

from rdc.kernel.sets._sets import (
    alike_counts,
    alike_pairs,
    label_pairs,
    missing_pairs,
    neighbour_pairs,
    ranked_numbers,
    set_resemblances,
    shared_numbers,
    sorted_pairs,
    window_hashes,
    window_sketch,
)

__all__ = [
    "alike_counts",
    "alike_pairs",
    "label_pairs",
    "missing_pairs",
    "neighbour_pairs",
    "ranked_numbers",
    "set_resemblances",
    "shared_numbers",
    "sorted_pairs",
    "window_hashes",
    "window_sketch",
]
