"""The kernel: cut points, similarity samples and their index, and record ranks, as fast as this machine can.

`pure` defines what is computed; `choice` picks the form that computes it.
"""

from __future__ import annotations

from rdc.kernel.choice import chosen_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel._kernel import (
        Cutter,
        TraitIndex,
        TraitPairs,
        Winnower,
        absolute_targets,
        bit_counts,
        blank_targets,
        block_fingerprints,
        cut_many,
        difference_words,
        equal_rows,
        hide,
        kernel_name,
        match_blocks,
        match_runs,
        name_ranks,
        node_columns,
        node_names,
        nonzero_bytes,
        pack_varints,
        put_rows,
        put_targets,
        relative_targets,
        root_messages,
        row_paths,
        short_references,
        sum_words,
        take_rows,
        take_targets,
        target_bits,
        unpack_varints,
    )
else:
    _module = chosen_module()
    Cutter = _module.Cutter
    TraitIndex = _module.TraitIndex
    TraitPairs = _module.TraitPairs
    Winnower = _module.Winnower
    absolute_targets = _module.absolute_targets
    bit_counts = _module.bit_counts
    blank_targets = _module.blank_targets
    block_fingerprints = _module.block_fingerprints
    cut_many = _module.cut_many
    difference_words = _module.difference_words
    equal_rows = _module.equal_rows
    hide = _module.hide
    kernel_name = _module.kernel_name
    match_blocks = _module.match_blocks
    match_runs = _module.match_runs
    name_ranks = _module.name_ranks
    node_columns = _module.node_columns
    node_names = _module.node_names
    nonzero_bytes = _module.nonzero_bytes
    pack_varints = _module.pack_varints
    put_rows = _module.put_rows
    put_targets = _module.put_targets
    relative_targets = _module.relative_targets
    root_messages = _module.root_messages
    row_paths = _module.row_paths
    short_references = _module.short_references
    sum_words = _module.sum_words
    take_rows = _module.take_rows
    take_targets = _module.take_targets
    target_bits = _module.target_bits
    unpack_varints = _module.unpack_varints

__all__ = [
    "Cutter",
    "TraitIndex",
    "TraitPairs",
    "Winnower",
    "absolute_targets",
    "bit_counts",
    "blank_targets",
    "block_fingerprints",
    "cut_many",
    "difference_words",
    "equal_rows",
    "hide",
    "kernel_name",
    "match_blocks",
    "match_runs",
    "name_ranks",
    "node_columns",
    "node_names",
    "nonzero_bytes",
    "pack_varints",
    "put_rows",
    "put_targets",
    "relative_targets",
    "root_messages",
    "row_paths",
    "short_references",
    "sum_words",
    "take_rows",
    "take_targets",
    "target_bits",
    "unpack_varints",
]
