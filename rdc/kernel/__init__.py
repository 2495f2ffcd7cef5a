# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _kernel.pyi
"""The kernel: cut points, block search, traits, digest inputs and packed columns, as fast as this CPU can.

cut/reference.py defines the cuts and tests/reference every other name, and `choice` picks the variant that
computes them. KERNEL.md has the map.
"""

from __future__ import annotations

from rdc.kernel import choice
from rdc.kernel._kernel import *

__all__ = [
    "Cutter",
    "TraitIndex",
    "TraitPairs",
    "Winnower",
    "absolute_displacements",
    "bit_counts",
    "block_fingerprints",
    "cut_many",
    "difference_words",
    "displacement_bits",
    "equal_rows",
    "kernel_name",
    "mask_displacements",
    "match_blocks",
    "match_runs",
    "name_ranks",
    "node_columns",
    "node_messages",
    "node_names",
    "nonzero_bytes",
    "overwrite_marked",
    "pack_varints",
    "put_displacements",
    "put_rows",
    "relative_displacements",
    "root_messages",
    "row_paths",
    "short_references",
    "sum_words",
    "take_displacements",
    "take_rows",
    "unpack_varints",
]

choice.choose()
