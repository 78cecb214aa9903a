// zlib's own header, for its CRC-32: `crc32_z` takes a size_t length, `crc32_combine` joins two CRCs.
#include <zlib.h>
