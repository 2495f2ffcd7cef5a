/* url_bigrams.c - pairs of neighbouring words of URLs, with their position. */
#include "platform.h"
#include "shingles/shingles.h"
#include "shingles/unit_hash.h"

/* Words are at most 8 bytes, so one block. */
static const char stop_words[][8] = {"bin",  "cgi",   "ftp",   "home", "htm", "html",
                                     "http", "https", "index", "main", "txt"};

static int is_stop_word(uint64_t hash)
{
    for (size_t i = 0; i < sizeof stop_words / sizeof *stop_words; i++)
        if (hash == rdc_unit_step(0, rdc_load64((const uint8_t *)stop_words[i]), 0))
            return 1;
    return 0;
}

static int add(rdc_feature_list *list, uint64_t polynomial, uint64_t position)
{
    if (list->count == list->room && list->grow(list, 1))
        return -1;
    list->features[list->count++] = rdc_unit_step(0, polynomial * RDC_SHINGLE_BASE + position, 0);
    return 0;
}

/* The word before is first[0], and `count` words are known. */
static int take_words(void *to, const uint64_t *hashes, size_t count)
{
    rdc_shingler *s = to;
    for (size_t i = 0; i < count; i++) {
        if (is_stop_word(hashes[i]))
            continue;
        if (s->count && add(s->list, s->first[0] * RDC_SHINGLE_BASE + hashes[i], s->count - 1))
            return -1;
        s->first[0] = hashes[i];
        s->count++;
    }
    return 0;
}

void rdc_bigrams_start(rdc_shingler *shingler, const rdc_shingling *variant, rdc_feature_list *list)
{
    rdc_units_start(&shingler->units, variant, RDC_BY_LETTERS, take_words, shingler);
    shingler->list = list;
}

int rdc_url_bigrams(rdc_shingler *shingler, const uint8_t *text, size_t size)
{
    shingler->count = 0;
    if (rdc_units_of(&shingler->units, text, size))
        return -1;
    return shingler->count == 1 ? add(shingler->list, shingler->first[0], 0) : 0;
}
