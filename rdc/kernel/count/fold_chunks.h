/* fold_chunks.h - coarser chunks from finer ones: groups of neighbours, cut by winnowing. */
#ifndef RDC_FOLD_CHUNKS_H
#define RDC_FOLD_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#define RDC_FOLD_MAX 64

/* A stream being folded: the items since the last cut. */
typedef struct {
    uint64_t key[RDC_FOLD_MAX], size[RDC_FOLD_MAX];
    size_t count, min, max; /* 1 <= min < max <= RDC_FOLD_MAX */
} rdc_folder;

/* Takes the next `count` items and writes the groups they complete to out_key and out_size, which have
 * room for (waiting + count) / (min + 1) groups. Returns the number of groups. */
size_t rdc_folder_feed(rdc_folder *f, const uint64_t *key, const uint64_t *size, size_t count, uint64_t *out_key,
                       uint64_t *out_size);

/* Writes the rest of the stream as its last group. Returns 1, or 0 without a rest. The folder is as new. */
size_t rdc_folder_finish(rdc_folder *f, uint64_t *out_key, uint64_t *out_size);

/* Writes the indices into `key` of a pseudo-random sample of one key in 2^shift (shift <= 63). Returns
 * their number. */
size_t rdc_select_chunks(const uint64_t *key, size_t count, uint64_t salt, unsigned shift, uint64_t *index);

#endif
