"""Rows that describe a file's matches and copy instructions."""

from __future__ import annotations

from rdc.kernel.recipe._recipe import (
    around_ranges,
    assemble,
    assemble_with_bits,
    block_matches,
    copies_of_instructions,
    fetched_ranges,
    fill_offsets,
    instructions_of_range,
    instructions_of_ranges,
    join_matches,
    plan_reads,
    range_reads,
    run_spans,
    take_ranges,
    unmatched_runs,
)

__all__ = [
    "INSTRUCTION_BYTES",
    "LITERAL",
    "around_ranges",
    "assemble",
    "assemble_with_bits",
    "block_matches",
    "copies_of_instructions",
    "fetched_ranges",
    "fill_offsets",
    "instructions_of_range",
    "instructions_of_ranges",
    "join_matches",
    "plan_reads",
    "range_reads",
    "run_spans",
    "take_ranges",
    "unmatched_runs",
]

LITERAL = (1 << 64) - 1
"""In place of the base in a copy instruction, or of the offset in a source: the bytes have to be fetched."""

INSTRUCTION_BYTES = 24
"""Bytes of one copy instruction."""
