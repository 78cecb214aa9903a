// expat's own header, for Metalink lists.
#include <expat.h>
