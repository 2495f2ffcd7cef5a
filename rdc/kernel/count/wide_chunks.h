/* wide_chunks.h - the chunks of a table whose size or count does not fit a slot, in the order of keys. */
#ifndef RDC_WIDE_CHUNKS_H
#define RDC_WIDE_CHUNKS_H

#include "count/chunk_table.h"

/* The first of them whose key is not smaller, or the end. */
rdc_wide *rdc_find_wide(const rdc_table *t, uint64_t key);

/* Adds one. Returns -1 without memory. */
int rdc_add_wide(rdc_table *t, uint64_t key, uint64_t size, uint64_t count);

#endif
