/* root_messages.h - what the roots of short streams are the digests of. */
#ifndef RDC_ROOT_MESSAGES_H
#define RDC_ROOT_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

/* Streams one behind another: `counts` chunks each, whose lengths and digests (32 bytes) follow each other. */
typedef struct {
    const uint64_t *sizes;
    const uint32_t *counts;
    const uint64_t *lengths;
    const uint8_t *digests;
    size_t streams;
} rdc_short_streams;

/* Bytes that rdc_root_messages writes at most, for messages that begin with `head` bytes. */
size_t rdc_root_messages_most(const rdc_short_streams *s, size_t head);

/*
 * Writes to `out` the message of each stream whose chunks are one node: at most `most`, no two neighbours with one
 * digest. It is `head`, the size, a zero, the digests, the lengths, and as often the number 1 (rdc/signature/FORMAT.md).
 * bytes[i] is its length, 0 for the other streams. Returns the bytes of all.
 */
size_t rdc_root_messages(const rdc_short_streams *s, const uint8_t *head, size_t head_bytes, size_t most, uint8_t *out,
                         uint64_t *bytes);

#endif
