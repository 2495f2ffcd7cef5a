/*
 * pieces.h - rows of what was found of a file in its bases: merged, the runs between them, chunks tiled with them.
 *
 * pure_pieces.py defines every function. Offsets, places and lengths end at RDC_END at most, so that no sum of two
 * overflows; what does not is refused with -1, as are rows out of order. No function reads or writes more than it says.
 */
#ifndef RDC_PIECES_H
#define RDC_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "block_runs.h"

#define RDC_END (UINT64_MAX >> 1)

/* Base of a tile that no base has. */
#define RDC_LITERAL UINT64_MAX

/* Runs [the one after the last span's, + count) are looked for in bytes start to stop of the base; blocks in them. */
typedef struct {
    uint64_t count, start, stop, blocks;
} rdc_span;

/* `length` bytes of the file at `offset` that `base` has at `place`. */
typedef struct {
    uint64_t offset, base, place, length;
} rdc_copy;

/* The next `length` bytes of a chunk: at `place` of `base`, or of the literals. */
typedef struct {
    uint64_t base, place, length;
} rdc_tile;

/* Bytes offset to offset + length of a file, or of a base. */
typedef struct {
    uint64_t offset, length;
} rdc_range;

/* What decides which parts of a run are asked about; `far`, `tail`: see pure_pieces.py. */
typedef struct {
    uint64_t size, ends, far, tail;
} rdc_opening;

/* Ranges [the one after the last read's, + count) are read at once: `length` bytes from `start` on. */
typedef struct {
    uint64_t count, start, length;
} rdc_read;

/* Both ends of `length` bytes from `start` on are numbers that may be added to each other. */
static inline int rdc_fits(uint64_t start, uint64_t length)
{
    return start <= RDC_END && length <= RDC_END - start;
}

/* `out` has room for `count` reads. */
int64_t rdc_range_reads(const rdc_range *ranges, size_t count, uint64_t close, uint64_t most, rdc_read *out);

/* `out` has room for `length` bytes; how many were taken. */
int64_t rdc_take_ranges(const rdc_range *ranges, size_t count, uint64_t start, const uint8_t *data, size_t length,
                        uint8_t *out);

/* Up to `reach` bytes of a file of `size` before and behind each of these ranges, which increase, and in none of them.
 * `out` has room for 2 * count. */
int64_t rdc_around_ranges(const rdc_range *ranges, size_t count, uint64_t reach, uint64_t size, rdc_range *out);

/* Where `places` has none, that of `more`, `shift` further on. `out` has room for `count`. */
int64_t rdc_fill_places(const uint64_t *places, const uint64_t *more, size_t count, uint64_t shift, uint64_t *out);

/* `out` has room for `count` pieces. */
int64_t rdc_place_blocks(uint64_t offset, uint64_t size, const uint64_t *places, size_t count, rdc_piece *out);

/* `out` has room for both. */
int64_t rdc_join_pieces(const rdc_piece *first, size_t firsts, const rdc_piece *second, size_t seconds, rdc_piece *out);

/* `out` has room for 2 (count + 1) runs or for most + 1, whichever is less. */
int64_t rdc_open_runs(const rdc_piece *pieces, size_t count, uint64_t start, uint64_t end, uint64_t before,
                      uint64_t behind, const rdc_opening *opening, uint64_t most, rdc_run *out);

/* `out` has room for `count` spans. */
int64_t rdc_run_spans(const rdc_run *runs, size_t count, uint64_t size, uint64_t reach, uint64_t close, uint64_t most,
                      rdc_span *out);

/* `out`, NULL only to count, has room for as many as that says. */
int64_t rdc_tile_range(const rdc_copy *copies, size_t count, uint64_t offset, uint64_t length, rdc_tile *out);

/* How many tiles a range has, and how many bytes of them are fetched. */
typedef struct {
    uint64_t tiles, fetched;
} rdc_tiled;

/* The same for ranges one after another: all their tiles. `tiled` has room for each, NULL where `out` is. */
int64_t rdc_tile_ranges(const rdc_copy *copies, size_t count, const rdc_range *ranges, size_t number, rdc_tile *out,
                        rdc_tiled *tiled);

/* `out` has room for `count` copies, or ranges. */
int64_t rdc_tiled_copies(const rdc_tile *tiles, size_t count, uint64_t offset, rdc_copy *out);
int64_t rdc_fetched_ranges(const rdc_tile *tiles, size_t count, uint64_t offset, rdc_range *out);

/* What is to be read with each read: bytes before it, and behind it up to the end of its base, of so many of which the size
 * is known. */
typedef struct {
    uint64_t back, ahead;
    const uint64_t *sizes;
    uint64_t bases;
} rdc_surroundings;

/* `reads` (base, offset, length) and `sources` (a tile's bytes in what is read, or RDC_LITERAL) have room for `count`
 * rows each. Sets *literals to the bytes of literals. How many reads; -2 for want of memory. */
int64_t rdc_tile_reads(const rdc_tile *tiles, size_t count, uint64_t close, const rdc_surroundings *around,
                       rdc_tile *reads, rdc_range *sources, uint64_t *literals);

/* How many bytes `sources` make of `held` bytes and exactly `literals`, or -1. */
int64_t rdc_tiled_bytes(const rdc_range *sources, size_t count, uint64_t held, uint64_t literals);

/* Puts them together, after rdc_tiled_bytes said that `out` has room. */
void rdc_put_tiles(const rdc_range *sources, size_t count, const uint8_t *held, const uint8_t *literals, uint8_t *out);

/* How many bytes they make with zeros for literals, or -1. */
int64_t rdc_image_bytes(const rdc_range *sources, size_t count, uint64_t held);

/* Puts these together, with a bit for each from that of each byte held. */
void rdc_put_images(const rdc_range *sources, size_t count, const uint8_t *held, const uint8_t *bits, size_t size,
                    uint8_t *out, uint8_t *out_bits);

#endif
