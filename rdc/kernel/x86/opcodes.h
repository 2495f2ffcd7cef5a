/* opcodes.h - which x86 instructions have an instruction-relative data operand. */
#ifndef RDC_CODE_OPCODES_H
#define RDC_CODE_OPCODES_H

#include <stdint.h>

/* The opcodes (of two-byte opcodes the second) of most of them; tests/reference/branches.py has the
 * same list. */
static const uint8_t rdc_names_data[256] = {
    [0x10] = 1, [0x11] = 1, [0x16] = 1, [0x28] = 1, [0x29] = 1, [0x2e] = 1, [0x2f] = 1, [0x3b] = 1, [0x54] = 1,
    [0x57] = 1, [0x58] = 1, [0x59] = 1, [0x5c] = 1, [0x5e] = 1, [0x6f] = 1, [0x7e] = 1, [0x7f] = 1, [0x83] = 1,
    [0x89] = 1, [0x8b] = 1, [0x8d] = 1, [0xb6] = 1, [0xb7] = 1, [0xc7] = 1, [0xff] = 1,
};

#endif
