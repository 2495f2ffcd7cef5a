/* chunk_table.c [SEED] - drives the table, the folder and the checks of rows with random and with crowded keys, beside a
 * plain list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count/count.h"

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
    if (size > rows[i].size)
        rows[i].size = size;
}

static int by_value(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Sorts keys and drops repeated ones; returns how many are left. */
static size_t sorted(uint64_t *key, size_t n)
{
    size_t different = 0;
    qsort(key, n, sizeof *key, by_value);
    for (size_t i = 0; i < n; i++)
        if (!different || key[i] != key[different - 1])
            key[different++] = key[i];
    return different;
}

static void round_of(unsigned crowded, unsigned shift)
{
    rdc_table table;
    rdc_table_start(&table, SIZE_MAX);
    used = 0;
    for (size_t i = 0; i < MOST;) {
        uint64_t key[300], size[300], count[300];
        size_t n = 1 + drawn() % (drawn() % 2 ? 300 : 20);
        n = n < MOST - i ? n : MOST - i;
        for (size_t k = 0; k < n; k++)
            key[k] = used && drawn() % 3 == 0 ? rows[drawn() % used].key : drawn() >> crowded << crowded % 7;
        if (drawn() % 4)
            n = sorted(key, n);
        for (size_t k = 0; k < n; k++) {
            size[k] = key[k] % 11 ? key[k] % 9000 : UINT32_MAX - 2 + key[k] % 5;
            if (drawn() % 5 == 0)
                size[k] = drawn() % 7 ? drawn() % 9000 : UINT32_MAX - 2 + drawn() % 5;
            count[k] = drawn() % 50 || key[k] % 11 == 0 ? 1 : UINT32_MAX - 1 + drawn() % 3;
            count_plainly(key[k], size[k], count[k]);
        }
        CHECK(!rdc_table_add(&table, key, size, count, n));
        if (i < MOST / 2 && i + n >= MOST / 2)
            CHECK(!rdc_table_sample(&table, shift));
        i += n;
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

/* Rows that lie in allocations of their own size. */
static void rows_round(void)
{
    const size_t n = 1 + drawn() % 20;
    const unsigned shift = (unsigned)(drawn() % 64);
    uint64_t *column[3], chunks = 0, bytes = 0;
    for (int i = 0; i < 3; i++)
        CHECK(column[i] = malloc(n * sizeof **column));
    for (size_t i = 0; i < n; i++) {
        column[0][i] = i;
        column[1][i] = drawn() % 9000;
        chunks += column[2][i] = 1 + drawn() % 9;
        bytes += column[1][i] * column[2][i];
    }
    rdc_rows_left left = {chunks, bytes};
    const int fits = !shift || n - 1 < UINT64_C(1) << (64 - shift);
    CHECK(rdc_judge_rows(column[0], column[1], column[2], n, 0, shift, &left) == (fits ? RDC_ROWS_FINE : RDC_ROWS_DISORDERED));
    CHECK(!fits || (!left.chunks && !left.bytes));
    left = (rdc_rows_left){chunks - 1, bytes};
    CHECK(rdc_judge_rows(column[0], column[1], column[2], n, 0, 0, &left) == RDC_ROWS_TOO_MANY);
    CHECK(rdc_judge_rows(column[0], column[1], column[2], n, 1, 0, &left) == RDC_ROWS_DISORDERED);
    for (int i = 0; i < 3; i++)
        free(column[i]);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        state ^= strtoull(argv[1], NULL, 10) << 1 | 1;
    for (unsigned i = 0; i < 12; i++) {
        round_of(i % 4 ? 8 * i % 63 : 0, i % 3 ? i : 0);
        fold_round();
        rows_round();
    }
    rdc_table table;
    rdc_table_start(&table, 20000);
    for (size_t i = 0; i < 50000; i++) {
        const uint64_t key = drawn(), one = 1;
        CHECK(!rdc_table_add(&table, &key, &one, NULL, 1));
    }
    CHECK(table.shift > 0 && table.chunks == 50000 && rdc_table_memory(&table) < 22000);
    rdc_table_end(&table);
    puts("fine");
    return 0;
}
