"""Rows of what was found of a file in its bases: in C where it is built, else as pure_pieces defines them."""

from __future__ import annotations

from rdc.kernel.choice import chosen_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.kernel._pieces import (
        around_ranges,
        fetched_ranges,
        fill_places,
        join_pieces,
        open_runs,
        place_blocks,
        put_images,
        put_tiles,
        range_reads,
        run_spans,
        take_ranges,
        tile_range,
        tile_ranges,
        tile_reads,
        tiled_copies,
    )
else:
    # The choice of the kernel decides here as well: a demand for "pure" is one for all of it.
    if chosen_module().kernel_name() == "pure":
        from rdc.kernel import pure_pieces as _module
    else:
        from rdc.kernel import _pieces as _module
    around_ranges = _module.around_ranges
    fetched_ranges = _module.fetched_ranges
    fill_places = _module.fill_places
    join_pieces = _module.join_pieces
    open_runs = _module.open_runs
    place_blocks = _module.place_blocks
    put_images = _module.put_images
    put_tiles = _module.put_tiles
    range_reads = _module.range_reads
    take_ranges = _module.take_ranges
    run_spans = _module.run_spans
    tile_range = _module.tile_range
    tile_ranges = _module.tile_ranges
    tile_reads = _module.tile_reads
    tiled_copies = _module.tiled_copies

__all__ = [
    "LITERAL",
    "TILE_BYTES",
    "around_ranges",
    "fetched_ranges",
    "fill_places",
    "join_pieces",
    "open_runs",
    "place_blocks",
    "put_images",
    "put_tiles",
    "range_reads",
    "run_spans",
    "take_ranges",
    "tile_range",
    "tile_ranges",
    "tile_reads",
    "tiled_copies",
]

LITERAL = (1 << 64) - 1
"""Base of a tile that no base has, and source of its bytes."""

TILE_BYTES = 24
"""Of a tile's row."""
