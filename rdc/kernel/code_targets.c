/*
 * code_targets.c - the targets that x86 machine code names by their distance, named by their place, and back.
 *
 * Both directions meet the same fields. Where one is looked for depends on bytes before it that no other field has (the
 * search goes on behind each), or on the last byte of the one before, of which rewriting leaves what is asked about it.
 * And rewriting leaves its value within REACH or without: it is an addition modulo 2 REACH. So the one undoes the other
 * whatever the bytes are, code or not.
 * rdc/kernel/pure_code_targets.py says what counts as a field.
 */
#include "code_targets.h"

#include "code_opcodes.h"
#include "fetch_ahead.h"
#include "form.h"

#define CALL 0xe8
#define EACH UINT64_C(0x0101010101010101)
#define FIELD 4
#define REACH (UINT32_C(1) << 26)

/* What often stands before an E8 that is an operand: a subtraction of 24 from a pointer, registers named by 1110 1000. */
static const uint8_t no_call_behind[256] = {[0x78] = 1, [0x83] = 1, [0x89] = 1, [0xc1] = 1};

/* The lowest bit set is the highest of the first byte that is 0; bits above it may lie. */
static uint64_t first_zero(uint64_t x)
{
    return (x - EACH) & ~x & EACH << 7;
}

static uint32_t load(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void store(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    at[2] = (uint8_t)(value >> 16);
    at[3] = (uint8_t)(value >> 24);
}

size_t rdc_move_targets(uint8_t *code, size_t size, uint64_t offset, rdc_direction direction)
{
    size_t moved = 0;

    if (size < 1 + FIELD)
        return 0;
    const size_t last = size - FIELD; /* of the places where a field may begin */
    for (size_t i = 0; i < last;) {
        size_t field;
        if (i + sizeof(uint64_t) < size) {
            rdc_fetch_ahead(code + i);
            /* Eight places at a time: most are neither a call nor before a byte that says "at a distance". */
            const uint64_t telling = first_zero(rdc_load64(code + i) ^ EACH * CALL) |
                                     first_zero((rdc_load64(code + i + 1) & EACH * 0xc7) ^ EACH * 0x05);
            if (!telling) {
                i += sizeof telling;
                continue;
            }
            i += (size_t)__builtin_ctzll(telling) / 8;
            if (i >= last)
                break;
        }
        if (code[i] == CALL && !(i && no_call_behind[code[i - 1]]))
            field = i + 1;
        else if ((code[i + 1] & 0xc7) == 0x05 && rdc_names_data[code[i]] && i + 2 <= last)
            field = i + 2;
        else {
            i++;
            continue;
        }
        /* Plus REACH: what lies within it, of either sign, becomes what is below 2 REACH. */
        const uint32_t value = load(code + field) + REACH;
        i = field + FIELD;
        if (value >= 2 * REACH)
            continue;
        const uint32_t end = (uint32_t)(offset + i);
        store(code + field, ((direction == RDC_ABSOLUTE ? value + end : value - end) & (2 * REACH - 1)) - REACH);
        moved++;
    }
    return moved;
}
