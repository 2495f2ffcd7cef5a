"""The definitions of most names of rdc.kernel, collected from their topics."""

from __future__ import annotations

from rdc.kernel.cut.reference import Cutter, Winnower, cut_many
from tests.reference.blocks import block_fingerprints, match_blocks, match_runs
from tests.reference.branches import absolute_displacements, relative_displacements
from tests.reference.equal import equal_rows
from tests.reference.masking import (
    bit_counts,
    displacement_bits,
    mask_displacements,
    overwrite_marked,
    put_displacements,
    take_displacements,
)
from tests.reference.names import name_ranks, short_references, text_ranks
from tests.reference.nodes import node_columns, node_names
from tests.reference.paths import row_paths
from tests.reference.roots import node_messages, root_messages
from tests.reference.rows import put_rows, take_rows
from tests.reference.similarity import TraitIndex, TraitPairs
from tests.reference.varints import pack_varints, unpack_varints
from tests.reference.words import difference_words, nonzero_bytes, sum_words

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
    "text_ranks",
    "unpack_varints",
]
