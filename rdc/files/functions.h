/* functions.h - what the C files that know Python share. */
#ifndef RDC_FILES_FUNCTIONS_H
#define RDC_FILES_FUNCTIONS_H

#include "../binding.h"

/* The functions of each file, none where the system lacks what they need. */
extern PyMethodDef rdc_libc_functions[], rdc_batch_functions[], rdc_contents_functions[], rdc_leased_functions[],
    rdc_opened_functions[], rdc_xattrs_functions[], rdc_ranges_functions[], rdc_walk_functions[];

#endif
