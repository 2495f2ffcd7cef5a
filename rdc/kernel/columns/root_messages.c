/* root_messages.c - the input of the root digests of short streams.
 *
 * In Python a stream takes a microsecond of slices and joins. Hashing its message in a vector lane takes
 * less. */
#include "columns/root_messages.h"

#include <string.h>

#define DIGEST 32

static uint8_t *put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned k = 0; k < 8; k++)
        *out++ = (uint8_t)(value >> 8 * k);
    return out;
}

static int has_runs(const uint8_t *digests, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (!memcmp(digests + (i - 1) * DIGEST, digests + i * DIGEST, DIGEST))
            return 1;
    return 0;
}

size_t rdc_root_messages_most(const rdc_short_streams *s, size_t head)
{
    size_t chunks = 0;
    for (size_t i = 0; i < s->streams; i++)
        chunks += s->counts[i];
    return s->streams * (head + 9) + chunks * (DIGEST + 16);
}

size_t rdc_root_messages(const rdc_short_streams *s, const uint8_t *head, size_t head_bytes, size_t most, uint8_t *out,
                         uint64_t *bytes)
{
    const uint8_t *const begin = out, *digests = s->digests;
    const uint64_t *lengths = s->lengths;

    for (size_t i = 0; i < s->streams; i++) {
        const size_t count = s->counts[i];
        const uint8_t *const before = out;
        if (count <= most && !has_runs(digests, count)) {
            memcpy(out, head, head_bytes);
            out = put_u64(out + head_bytes, s->sizes[i]);
            *out++ = 0;
            memcpy(out, digests, count * DIGEST);
            out += count * DIGEST;
            for (size_t k = 0; k < count; k++)
                out = put_u64(out, lengths[k]);
            for (size_t k = 0; k < count; k++)
                out = put_u64(out, 1);
        }
        bytes[i] = (uint64_t)(out - before);
        digests += count * DIGEST;
        lengths += count;
    }
    return (size_t)(out - begin);
}
