#include "cuts.h"
