# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _sets.pyi
"""The resemblance of sets, pairs of those that may resemble each other, and the windows of a content.

They come from the C extension if it is built, otherwise from sets/reference.py, sets/alike_reference.py,
sets/pair_reference.py and sets/window_reference.py, which define them.
"""

from __future__ import annotations

from rdc.kernel import choice

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.sets._sets import *
else:
    if choice.is_pure():
        from rdc.kernel.sets import alike_reference as _alike
        from rdc.kernel.sets import pair_reference as _pairs
        from rdc.kernel.sets import reference as _module
        from rdc.kernel.sets import window_reference as _windows
    else:
        from rdc.kernel.sets import _sets as _module

        _alike = _pairs = _windows = _module
    choice.bind(globals(), _module, ["set_resemblances"])
    choice.bind(globals(), _alike, ["alike_counts", "alike_pairs", "label_pairs"])
    choice.bind(globals(), _pairs, ["missing_pairs", "neighbour_pairs", "ranked_numbers", "sorted_pairs"])
    choice.bind(globals(), _windows, ["shared_numbers", "window_hashes", "window_sketch"])
