/* root_messages.c - the input of the root digests of short streams.
 *
 * In Python a stream takes a microsecond of slices and joins. Hashing its message in a vector lane takes
 * less. */
#include "columns/columns.h"

#include <string.h>

#define DIGEST 32

static uint8_t *put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned k = 0; k < 8; k++)
        *out++ = (uint8_t)(value >> 8 * k);
    return out;
}

/* Returns how many items at the front have the first one's digest. */
static size_t run_of(const uint8_t *digests, size_t count)
{
    size_t run = 1;
    while (run < count && !memcmp(digests, digests + run * DIGEST, DIGEST))
        run++;
    return run;
}

/* Returns the number of runs, or most + 1 if there are more. */
static size_t runs_of(const uint8_t *digests, size_t count, size_t most)
{
    size_t runs = 0;
    for (size_t i = 0; i < count && runs <= most; runs++)
        i += run_of(digests + i * DIGEST, count - i);
    return runs;
}

/* Writes the columns of all runs. Their digests, lengths and counts lie behind another, one part for each. */
static uint8_t *put_runs(uint8_t *out, const uint8_t *digests, const uint64_t *lengths, size_t count, size_t runs)
{
    uint8_t *length = out + runs * DIGEST, *times = length + runs * 8;
    for (size_t i = 0, run; i < count; i += run) {
        run = run_of(digests + i * DIGEST, count - i);
        memcpy(out, digests + i * DIGEST, DIGEST);
        out += DIGEST;
        length = put_u64(length, lengths[i]);
        times = put_u64(times, run);
    }
    return times;
}

size_t rdc_root_messages_most(const rdc_short_streams *s, size_t head)
{
    size_t chunks = 0;
    for (size_t i = 0; i < s->streams; i++)
        chunks += s->counts[i];
    return s->streams * (head + 9) + chunks * (DIGEST + 16);
}

size_t rdc_root_messages(const rdc_short_streams *s, const uint8_t *head, size_t head_bytes, uint8_t level, size_t most,
                         uint8_t *out, uint64_t *bytes)
{
    const uint8_t *const begin = out, *digests = s->digests;
    const uint64_t *lengths = s->lengths;

    for (size_t i = 0; i < s->streams; i++) {
        const size_t count = s->counts[i];
        const uint8_t *const before = out;
        const size_t runs = runs_of(digests, count, most);
        if (runs <= most) {
            memcpy(out, head, head_bytes);
            out = put_u64(out + head_bytes, s->sizes[i]);
            *out++ = level;
            out = put_runs(out, digests, lengths, count, runs);
        }
        bytes[i] = (uint64_t)(out - before);
        digests += count * DIGEST;
        lengths += count;
    }
    return (size_t)(out - begin);
}
