"""The kernel in plain Python: it collects the definition of every name from the topics' references.

rdc.kernel.choice uses this module if no C variant is built, or if RDC_KERNEL=pure demands it. Its results are
the same on every machine. It is about a thousand times slower.
"""

from __future__ import annotations

from rdc.kernel.columns.node_reference import node_columns, node_names
from rdc.kernel.columns.root_reference import node_messages, root_messages
from rdc.kernel.columns.varint_reference import pack_varints, unpack_varints
from rdc.kernel.columns.word_reference import difference_words, nonzero_bytes, sum_words
from rdc.kernel.cut.reference import Cutter, Winnower, cut_many
from rdc.kernel.hash.name_reference import name_ranks, short_references
from rdc.kernel.rows.equal_reference import equal_rows
from rdc.kernel.rows.path_reference import row_paths
from rdc.kernel.rows.row_reference import put_rows, take_rows
from rdc.kernel.search.reference import block_fingerprints, match_blocks, match_runs
from rdc.kernel.similarity.reference import TraitIndex, TraitPairs
from rdc.kernel.x86.branch_reference import absolute_displacements, relative_displacements
from rdc.kernel.x86.masking_reference import (
    bit_counts,
    displacement_bits,
    mask_displacements,
    overwrite_marked,
    put_displacements,
    take_displacements,
)

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


def kernel_name() -> str:
    """Returns the name of this variant."""
    return "pure"
