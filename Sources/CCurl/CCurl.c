// SwiftPM wants one source file in a C target; everything is inline in the header.
#include "CCurl.h"
