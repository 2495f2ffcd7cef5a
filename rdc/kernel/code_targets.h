/* code_targets.h - the targets that x86 machine code names by their distance, named by their place, and back. */
#ifndef RDC_CODE_TARGETS_H
#define RDC_CODE_TARGETS_H

#include <stddef.h>
#include <stdint.h>

typedef enum { RDC_ABSOLUTE, RDC_RELATIVE } rdc_direction;

/*
 * Rewrites `size` bytes that are at `offset` of a file, in place; RDC_RELATIVE undoes what RDC_ABSOLUTE did to the same
 * piece, whatever the bytes are. Returns how many fields were rewritten.
 */
size_t rdc_move_targets(uint8_t *code, size_t size, uint64_t offset, rdc_direction direction);

#endif
