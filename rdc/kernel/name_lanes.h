/* name_lanes.h - BLAKE3 of many pieces at once, one in each lane of a vector. */
#ifndef RDC_NAME_LANES_H
#define RDC_NAME_LANES_H

#include <stddef.h>
#include <stdint.h>

#define RDC_NAME_BYTES 32

typedef struct {
    const uint8_t *data;
    size_t size;
} rdc_piece;

/* One stream of blocks to compress: a chunk of BLAKE3 (at most 1024 bytes), or a parent (64 bytes of names). */
typedef struct {
    const uint8_t *data;
    uint8_t *out;      /* 32 bytes */
    uint64_t counter;  /* number of the chunk in its piece; 0 for a parent */
    uint32_t size;     /* bytes; 0 only for the one chunk of an empty piece */
    uint32_t is_root;  /* the name of the whole piece comes out */
    uint32_t is_parent;
} rdc_stream;

/* The initial chaining value and what every block's flags have besides: for plain hashing, or under a key. */
typedef struct {
    uint32_t words[8];
    uint32_t flags;
} rdc_name_key;

/* Compresses `count` streams, all of them chunks or all of them parents, `lanes` at a time: the best when neighbours have
 * equal sizes. */
typedef void (*rdc_compressor)(const rdc_name_key *key, const rdc_stream *streams, size_t count);

typedef struct {
    const char *name;
    int (*usable)(void);
    rdc_compressor compress;
} rdc_naming;

/* Fastest first, then NULL. */
extern const rdc_naming *const rdc_namings[];

/* Writes the BLAKE3-256 of each piece, RDC_NAME_BYTES each, keyed where `key` (RDC_NAME_BYTES) is not NULL. Returns -1
 * without memory. */
int rdc_name_pieces(const rdc_naming *naming, const uint8_t *key, const rdc_piece *pieces, size_t count, uint8_t *out);

#endif
