/* keys.h - constants of shingles; written by scripts/kernel_tables.py, do not edit. */
#ifndef RDC_SHINGLES_KEYS_H
#define RDC_SHINGLES_KEYS_H

#include <stdint.h>

#define RDC_SHINGLE_KEY_A UINT64_C(0xf9c37b5d91e4a6d3)
#define RDC_SHINGLE_KEY_B UINT64_C(0xc15f8e6bd92a74fb)
#define RDC_SHINGLE_BASE UINT64_C(0xd1342543de82ef95)
#define RDC_SHINGLE_LIMIT 256
#define RDC_MARK_RUN 30

#endif
