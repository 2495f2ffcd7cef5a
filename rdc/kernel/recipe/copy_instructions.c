/* copy_instructions.c - builds chunks from copy instructions, see matches.h. Every loop is linear in its
 * rows, except for the sort of one chunk's instructions. */
#include "recipe/matches.h"

#include <stdlib.h>
#include <string.h>

#include "bits.h"

int64_t rdc_instructions_of_range(const rdc_copy *copies, size_t count, uint64_t offset, uint64_t length, rdc_instruction *out)
{
    size_t first = 0, stop = count, made = 0;
    if (!rdc_fits(offset, length))
        return -1;
    /* Returns the last copy that begins at or before `offset`, if there is one. */
    while (first < stop) {
        const size_t middle = first + (stop - first) / 2;
        if (copies[middle].offset <= offset)
            first = middle + 1;
        else
            stop = middle;
    }
    const uint64_t end = offset + length;
    uint64_t at = offset;
    for (size_t i = first ? first - 1 : 0; at < end && i < count && copies[i].offset < end; i++) {
        const rdc_copy *copy = &copies[i];
        if (copy->base == RDC_LITERAL || !rdc_fits(copy->offset, copy->length) || !rdc_fits(copy->base_offset, copy->length))
            return -1;
        const uint64_t behind = copy->offset + copy->length;
        if (copy->offset > at) {
            if (out)
                out[made] = (rdc_instruction){RDC_LITERAL, 0, copy->offset - at};
            made++;
            at = copy->offset;
        }
        if (behind > at) {
            const uint64_t next = behind < end ? behind : end;
            if (out)
                out[made] = (rdc_instruction){copy->base, copy->base_offset + (at - copy->offset), next - at};
            made++;
            at = next;
        }
    }
    if (at < end) {
        if (out)
            out[made] = (rdc_instruction){RDC_LITERAL, 0, end - at};
        made++;
    }
    return (int64_t)made;
}

int64_t rdc_instructions_of_ranges(const rdc_copy *copies, size_t count, const rdc_range *ranges, size_t number, rdc_instruction *out,
                        rdc_instruction_totals *totals)
{
    size_t made = 0;
    for (size_t i = 0; i < number; i++) {
        rdc_instruction *here = out ? out + made : NULL;
        const int64_t instructions = rdc_instructions_of_range(copies, count, ranges[i].offset, ranges[i].length, here);
        if (instructions < 0)
            return -1;
        made += (size_t)instructions;
        if (!out)
            continue;
        totals[i] = (rdc_instruction_totals){(uint64_t)instructions, 0};
        for (int64_t j = 0; j < instructions; j++)
            totals[i].fetched += here[j].base == RDC_LITERAL ? here[j].length : 0;
    }
    return (int64_t)made;
}

int64_t rdc_copies_of(const rdc_instruction *instructions, size_t count, uint64_t offset, rdc_copy *out)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rdc_fits(offset, instructions[i].length))
            return -1;
        if (instructions[i].base != RDC_LITERAL)
            out[made++] = (rdc_copy){offset, instructions[i].base, instructions[i].base_offset, instructions[i].length};
        offset += instructions[i].length;
    }
    return (int64_t)made;
}

int64_t rdc_fetched_ranges(const rdc_instruction *instructions, size_t count, uint64_t offset, rdc_range *out)
{
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        if (!rdc_fits(offset, instructions[i].length))
            return -1;
        if (instructions[i].base == RDC_LITERAL) {
            if (made && out[made - 1].offset + out[made - 1].length == offset)
                out[made - 1].length += instructions[i].length;
            else
                out[made++] = (rdc_range){offset, instructions[i].length};
        }
        offset += instructions[i].length;
    }
    return (int64_t)made;
}

typedef struct {
    const rdc_instruction *instruction;
    size_t row;
} placed;

static int by_base_offset(const void *left, const void *right)
{
    const placed *l = left, *r = right;
    if (l->instruction->base != r->instruction->base)
        return l->instruction->base < r->instruction->base ? -1 : 1;
    if (l->instruction->base_offset != r->instruction->base_offset)
        return l->instruction->base_offset < r->instruction->base_offset ? -1 : 1;
    return (l->row > r->row) - (l->row < r->row);
}

/* Returns a read extended by its surroundings. */
static rdc_instruction surrounded(rdc_instruction read, const rdc_surroundings *around)
{
    const uint64_t back = read.base_offset < around->back ? read.base_offset : around->back, end = read.base_offset + read.length;
    const uint64_t left = read.base < around->bases && around->sizes[read.base] > end ? around->sizes[read.base] - end : 0;
    return (rdc_instruction){read.base, read.base_offset - back, back + read.length + (left < around->ahead ? left : around->ahead)};
}

int64_t rdc_plan_reads(const rdc_instruction *instructions, size_t count, uint64_t close, const rdc_surroundings *around,
                       rdc_instruction *reads, rdc_range *sources, uint64_t *literals)
{
    placed *order = malloc((count + 1) * sizeof *order);
    size_t copies = 0, made = 0;
    uint64_t read = 0; /* bytes of all reads but the last */
    int ordered = 1;
    *literals = 0;
    if (!order)
        return -2;
    if (close > RDC_END || around->back > RDC_END || around->ahead > RDC_END)
        goto refused;
    for (uint64_t base = 0; base < around->bases; base++)
        if (around->sizes[base] > RDC_END)
            goto refused;
    for (size_t i = 0; i < count; i++) {
        sources[i] = (rdc_range){RDC_LITERAL, instructions[i].length};
        if (instructions[i].base == RDC_LITERAL) {
            if (!rdc_fits(*literals, instructions[i].length))
                goto refused;
            *literals += instructions[i].length;
            continue;
        }
        if (!rdc_fits(instructions[i].base_offset, instructions[i].length))
            goto refused;
        order[copies] = (placed){&instructions[i], i};
        ordered = ordered && (!copies || by_base_offset(order + copies - 1, order + copies) < 0);
        copies++;
    }
    if (!ordered)
        qsort(order, copies, sizeof *order, by_base_offset);
    for (size_t i = 0; i < copies; i++) {
        const rdc_instruction *instruction = order[i].instruction;
        rdc_instruction *last = made ? reads + made - 1 : NULL;
        if (last && last->base == instruction->base && instruction->base_offset <= last->base_offset + last->length + close) {
            const uint64_t length = instruction->base_offset + instruction->length - last->base_offset;
            last->length = length > last->length ? length : last->length;
        } else {
            if (last) {
                *last = surrounded(*last, around);
                read += last->length;
            }
            last = reads + made++;
            *last = *instruction;
        }
        const rdc_instruction whole = surrounded(*last, around);
        if (!rdc_fits(read, whole.length))
            goto refused;
        sources[order[i].row].offset = read + (instruction->base_offset - whole.base_offset);
    }
    if (made)
        reads[made - 1] = surrounded(reads[made - 1], around);
    free(order);
    return (int64_t)made;
refused:
    free(order);
    return -1;
}

/* The same, and how many of them are literals. */
static int64_t totals(const rdc_range *sources, size_t count, uint64_t copied, uint64_t *literals)
{
    uint64_t made = 0;
    *literals = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t length = sources[i].length;
        if (!rdc_fits(made, length))
            return -1;
        made += length;
        if (sources[i].offset == RDC_LITERAL)
            *literals += length;
        else if (sources[i].offset > copied || length > copied - sources[i].offset)
            return -1;
    }
    return (int64_t)made;
}

int64_t rdc_image_bytes(const rdc_range *sources, size_t count, uint64_t copied)
{
    uint64_t literals;
    return totals(sources, count, copied, &literals);
}

int64_t rdc_assembled_bytes(const rdc_range *sources, size_t count, uint64_t copied, uint64_t literals)
{
    uint64_t wanted;
    const int64_t made = totals(sources, count, copied, &wanted);
    return wanted == literals ? made : -1;
}

void rdc_assemble_with_bits(const rdc_range *sources, size_t count, const uint8_t *copied, const uint8_t *bits, size_t size,
                    uint8_t *out, uint8_t *out_bits)
{
    rdc_bits row = {out_bits, 0, 0};
    for (size_t i = 0; i < count; i++) {
        const int literal = sources[i].offset == RDC_LITERAL;
        const size_t from = literal ? 0 : (size_t)sources[i].offset, length = (size_t)sources[i].length;
        if (!length)
            continue;
        if (literal)
            memset(out, 0, length);
        else
            memcpy(out, copied + from, length);
        out += length;
        for (size_t at = 0; at < length; at += RDC_BITS) {
            const uint64_t next = literal ? 0 : rdc_bits_at(bits, size, from + at);
            if (length - at < RDC_BITS)
                rdc_add_bits(&row, next & ~(UINT64_MAX << (length - at)), length - at);
            else
                rdc_add_bits(&row, next, RDC_BITS);
        }
    }
    rdc_end_bits(&row);
}

void rdc_assemble(const rdc_range *sources, size_t count, const uint8_t *copied, const uint8_t *literals, uint8_t *out)
{
    for (size_t i = 0; i < count; i++) {
        const size_t length = (size_t)sources[i].length;
        if (!length)
            continue;
        if (sources[i].offset == RDC_LITERAL) {
            memcpy(out, literals, length);
            literals += length;
        } else
            memcpy(out, copied + sources[i].offset, length);
        out += length;
    }
}
