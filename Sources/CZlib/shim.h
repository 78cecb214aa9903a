// zlib's own header, for gzipped lists and as the reference of CRC-32 in tests.
#include <zlib.h>
