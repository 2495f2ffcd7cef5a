/* blake3_lanes.h - BLAKE3 of many inputs at once, one per lane of a vector. */
#ifndef RDC_NAME_LANES_H
#define RDC_NAME_LANES_H

#include <stddef.h>
#include <stdint.h>

#define RDC_NAME_BYTES 32

typedef struct {
    const uint8_t *data;
    size_t size;
} rdc_input;

/* One stream of blocks to compress: a chunk of BLAKE3 (at most 1024 bytes), or a parent (64 bytes of names). */
typedef struct {
    const uint8_t *data;
    uint8_t *out;      /* 32 bytes */
    uint64_t counter;  /* number of the chunk in its input; 0 for a parent */
    uint32_t size;     /* bytes; 0 only for the one chunk of an empty input */
    uint32_t is_root;  /* the name of the whole input comes out */
    uint32_t is_parent;
} rdc_stream;

/* The initial chaining value and the flags of every block: for plain hashing, or under a key. */
typedef struct {
    uint32_t words[8];
    uint32_t flags;
} rdc_name_key;

/* Compresses `count` streams, all chunks or all parents, `lanes` at a time. It is fastest if neighbours
 * have equal sizes. */
typedef void (*rdc_compressor)(const rdc_name_key *key, const rdc_stream *streams, size_t count);

typedef struct {
    const char *name;
    int (*usable)(void);
    rdc_compressor compress;
} rdc_naming;

/* Fastest first, then NULL. */
extern const rdc_naming *const rdc_namings[];

/* Writes the BLAKE3-256 of each input, RDC_NAME_BYTES each, keyed unless `key` (RDC_NAME_BYTES) is NULL.
 * Returns -1 without memory. */
int rdc_name_inputs(const rdc_naming *naming, const uint8_t *key, const rdc_input *inputs, size_t count, uint8_t *out);

#endif
