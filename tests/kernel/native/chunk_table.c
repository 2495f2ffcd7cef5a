/* chunk_table.c [SEED] - drives the table and the folder with random and with crowded keys, beside a plain list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count/chunk_table.h"
#include "count/fold_chunks.h"

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "line %d: %s\n", __LINE__, #x), exit(1)))
#define MOST 3000

static uint64_t state = 88172645463325252u;

static uint64_t drawn(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

typedef struct {
    uint64_t key, size, count;
} row;

static row rows[MOST];
static size_t used;

static void count_plainly(uint64_t key, uint64_t size, uint64_t count)
{
    size_t i = 0;
    while (i < used && rows[i].key != key)
        i++;
    if (i == used)
        rows[used++] = (row){key, size, 0};
    rows[i].count += count;
}

static void round_of(unsigned crowded, unsigned shift)
{
    rdc_table table;
    rdc_table_start(&table, SIZE_MAX);
    used = 0;
    for (size_t i = 0; i < MOST; i++) {
        const uint64_t key = used && drawn() % 3 == 0 ? rows[drawn() % used].key : drawn() >> crowded << crowded % 7;
        const uint64_t size = key % 11 ? key % 9000 : UINT32_MAX - 2 + key % 5;
        const uint64_t count = drawn() % 50 ? 1 : UINT32_MAX - 1 + drawn() % 3;
        CHECK(!rdc_table_add(&table, key, size, key % 11 ? count : 1));
        count_plainly(key, size, key % 11 ? count : 1);
        if (i == MOST / 2)
            CHECK(!rdc_table_sample(&table, shift));
    }
    size_t position = 0, kept = 0;
    uint64_t last = 0;
    rdc_wide chunk;
    for (; rdc_table_next(&table, &position, &chunk); kept++) {
        CHECK(!kept || chunk.key > last);
        last = chunk.key;
    }
    CHECK(kept == table.used);
    for (size_t i = 0; i < used; i++) {
        uint64_t size = 0;
        const uint64_t count = rdc_table_find(&table, rows[i].key, &size);
        if (shift && rows[i].key >> (64 - shift))
            CHECK(!count);
        else
            CHECK(count == rows[i].count && size == rows[i].size);
    }
    rdc_table_end(&table);
}

static void fold_round(void)
{
    uint64_t key[50], size[50], out[2][102];
    rdc_folder folder = {.min = 1 + drawn() % 5};
    folder.max = folder.min + 1 + drawn() % (RDC_FOLD_MAX - folder.min);
    uint64_t fed = 0, came = 0;
    for (int span = 0; span < 20; span++) {
        const size_t count = drawn() % 51;
        for (size_t i = 0; i < count; i++) {
            key[i] = drawn() % (span % 2 ? 3 : UINT64_MAX);
            fed += size[i] = drawn() % 1000;
        }
        const size_t groups = rdc_folder_feed(&folder, key, size, count, out[0], out[1]);
        for (size_t i = 0; i < groups; i++)
            came += out[1][i];
    }
    if (rdc_folder_finish(&folder, out[0], out[1]))
        came += out[1][0];
    CHECK(fed == came);
    CHECK(!rdc_folder_finish(&folder, out[0], out[1]));
}

int main(int argc, char **argv)
{
    if (argc > 1)
        state ^= strtoull(argv[1], NULL, 10) << 1 | 1;
    for (unsigned i = 0; i < 12; i++) {
        round_of(i % 4 ? 8 * i % 63 : 0, i % 3 ? i : 0);
        fold_round();
    }
    rdc_table table;
    rdc_table_start(&table, 20000);
    for (size_t i = 0; i < 50000; i++)
        CHECK(!rdc_table_add(&table, drawn(), 1, 1));
    CHECK(table.shift > 0 && table.chunks == 50000 && rdc_table_memory(&table) < 22000);
    rdc_table_end(&table);
    puts("fine");
    return 0;
}
