#include "CChecksum.h"
#include "DlopenNote.h"
#include <dlfcn.h>
#include <pthread.h>
#include <zlib.h>

#define SONAME "libdeflate.so.0"

/// Loading the library takes as long as zlib takes for 200 KiB. A worker that fetches small files does without it.
enum { WORTH_LOADING = 64 << 10 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
/// libdeflate_crc32, from libdeflate.h.
static uint32_t (*fast)(uint32_t crc, const void *bytes, size_t count);

static void load(void) {
  void *handle = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
  if (handle) *(void **)&fast = dlsym(handle, "libdeflate_crc32");
}

uint32_t spoolrun_crc32(uint32_t crc, const void *bytes, size_t count) {
  if (count < WORTH_LOADING) return (uint32_t)crc32_z(crc, bytes, count);
  pthread_once(&once, load);
  return fast ? fast(crc, bytes, count) : (uint32_t)crc32_z(crc, bytes, count);
}

DLOPEN_NOTE("crc32", "Faster checksums", "recommended", SONAME);
