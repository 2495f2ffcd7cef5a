#ifndef RDC_CUTS_H
#define RDC_CUTS_H
#endif
