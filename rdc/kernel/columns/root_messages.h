/* root_messages.h - the input of the root digests of short streams. */
#ifndef RDC_ROOT_MESSAGES_H
#define RDC_ROOT_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

/* Streams one after another: `counts` items of one level each, with consecutive lengths and digests (32 bytes). */
typedef struct {
    const uint64_t *sizes;
    const uint32_t *counts;
    const uint64_t *lengths;
    const uint8_t *digests;
    size_t streams;
} rdc_short_streams;

/* Upper limit of what rdc_root_messages writes, for messages that begin with `head` bytes. */
size_t rdc_root_messages_most(const rdc_short_streams *s, size_t head);

/* Writes the message of each stream whose items, which lie on `level`, are one node: at most `most` runs of equal
 * digests. It has `head`, the size, the level, and per run the digest, the length and the number of items, column
 * after column (rdc/signature/FORMAT.md). bytes[i] is its length, 0 for other streams. Returns the bytes of all
 * messages. */
size_t rdc_root_messages(const rdc_short_streams *s, const uint8_t *head, size_t head_bytes, uint8_t level, size_t most,
                         uint8_t *out, uint64_t *bytes);

#endif
