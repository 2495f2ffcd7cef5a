# ruff: noqa: F403, F405 - a checker takes the names of __all__ from the stub _pieces.pyi
"""Rows that describe a file's matches and copy instructions.

They come from the C extension if it is built, otherwise from recipe/reference.py, which defines them.
"""

from __future__ import annotations

from rdc.kernel import choice

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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel.recipe._recipe import *
else:
    if choice.is_pure():
        from rdc.kernel.recipe import reference as _module
    else:
        from rdc.kernel.recipe import _recipe as _module
    choice.bind(globals(), _module, (name for name in __all__ if name.islower()))

LITERAL = (1 << 64) - 1
"""In place of the base in a copy instruction, or of the offset in a source: the bytes have to be fetched."""

INSTRUCTION_BYTES = 24
"""Bytes of one copy instruction."""
