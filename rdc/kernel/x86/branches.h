/* branches.h - makes the displacements of x86 code absolute, and relative again. */
#ifndef RDC_X86_BRANCHES_H
#define RDC_X86_BRANCHES_H

#include <stddef.h>
#include <stdint.h>

typedef enum { RDC_ABSOLUTE, RDC_RELATIVE } rdc_direction;

/* Rewrites `size` bytes at `offset` of a file in place. RDC_RELATIVE undoes RDC_ABSOLUTE on the same part,
 * for any content. Returns the number of rewritten fields. */
size_t rdc_move_displacements(uint8_t *code, size_t size, uint64_t offset, rdc_direction direction);

#endif
