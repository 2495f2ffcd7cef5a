/* branches.c - makes the displacements of x86 code absolute, and relative again.
 *
 * Both directions find the same fields. A field is recognized by bytes before it that no other field
 * contains, because the scan continues behind each field. One test looks at the last byte of the field
 * before, and rewriting does not change the result of that test. Rewriting also keeps a value within
 * REACH, or outside of it, because it adds modulo 2 REACH. So one direction undoes the other for any
 * content, code or not. tests/reference/branches.py defines fields. */
#include "x86/x86.h"

#include "x86/opcodes.h"
#include "prefetch.h"
#include "platform.h"

#define CALL 0xe8
#define EACH UINT64_C(0x0101010101010101)
#define FIELD 4
#define REACH (UINT32_C(1) << 26)

/* Bytes that often stand before an E8 that is an operand: a subtraction of 24 from a pointer, or registers
 * encoded as 1110 1000. */
static const uint8_t no_call_behind[256] = {[0x78] = 1, [0x83] = 1, [0x89] = 1, [0xc1] = 1};

/* The lowest set bit of the result is the highest bit of the first zero byte. Bits above it may be wrong. */
static uint64_t first_zero(uint64_t x)
{
    return (x - EACH) & ~x & EACH << 7;
}

size_t rdc_move_displacements(uint8_t *code, size_t size, uint64_t offset, rdc_direction direction)
{
    size_t moved = 0;

    if (size < 1 + FIELD)
        return 0;
    const size_t last = size - FIELD; /* of the offsets where a field may begin */
    for (size_t i = 0; i < last;) {
        size_t field;
        if (i + sizeof(uint64_t) < size) {
            rdc_fetch_ahead(code + i);
            /* Eight offsets at a time. Most are neither a call nor before a ModRM byte for an
             * instruction-relative operand. */
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
        /* Adding REACH maps values within REACH, of either sign, to values below 2 REACH. */
        const uint32_t value = rdc_load32(code + field) + REACH;
        i = field + FIELD;
        if (value >= 2 * REACH)
            continue;
        const uint32_t end = (uint32_t)(offset + i);
        rdc_store32(code + field, ((direction == RDC_ABSOLUTE ? value + end : value - end) & (2 * REACH - 1)) - REACH);
        moved++;
    }
    return moved;
}
