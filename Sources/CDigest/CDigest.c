#include "CDigest.h"
#include "DlopenNote.h"

#include <blake2.h>
#include <dlfcn.h>
#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <nettle/sha3.h>
#include <pthread.h>
#include <string.h>

#define ROOM sizeof(((struct spoolrun_digest *)0)->context)
_Static_assert(sizeof(struct sha512_ctx) <= ROOM && sizeof(struct sha3_256_ctx) <= ROOM && sizeof(blake2b_state) <= ROOM,
               "room for each context");

// MARK: CRCs

/// A CRC whose bits are reflected, with all bits inverted before and after. Slicing by 8: eight tables take eight bytes
/// at once (Kounavis and Berry, 2005).
struct crc {
  uint64_t polynomial, ones;
  pthread_once_t once;
  void (*fill)(void);
  uint64_t tables[8][256];
};

static void fill(struct crc *crc) {
  for (int byte = 0; byte < 256; byte++) {
    uint64_t value = (uint64_t)byte;
    for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? crc->polynomial : 0);
    crc->tables[0][byte] = value;
  }
  for (int table = 1; table < 8; table++)
    for (int byte = 0; byte < 256; byte++) {
      uint64_t value = crc->tables[table - 1][byte];
      crc->tables[table][byte] = value >> 8 ^ crc->tables[0][value & 0xFF];
    }
}

static void fill_crc32c(void);
static void fill_crc64nvme(void);
/// RFC 3720 appendix B.4.
static struct crc crc32c = {0x82F63B78, UINT32_MAX, PTHREAD_ONCE_INIT, fill_crc32c, {{0}}};
/// NVM Command Set Specification 1.0 section 5.2.1.3.4.
static struct crc crc64nvme = {0x9A6C9329AC4BC9B5, UINT64_MAX, PTHREAD_ONCE_INIT, fill_crc64nvme, {{0}}};
static void fill_crc32c(void) { fill(&crc32c); }
static void fill_crc64nvme(void) { fill(&crc64nvme); }

static struct crc *crc_of(int kind) {
  return kind == SPOOLRUN_CRC32C ? &crc32c : kind == SPOOLRUN_CRC64NVME ? &crc64nvme : NULL;
}

static uint64_t update_crc(struct crc *crc, uint64_t value, size_t count, const uint8_t *bytes) {
  pthread_once(&crc->once, crc->fill);
  value ^= crc->ones;
  for (; count >= 8; count -= 8, bytes += 8) {
    uint64_t block = 0;
    for (int i = 0; i < 8; i++) block |= (uint64_t)bytes[i] << 8 * i;
    block ^= value;
    value = 0;
    for (int i = 0; i < 8; i++) value ^= crc->tables[7 - i][block >> 8 * i & 0xFF];
  }
  while (count--) value = value >> 8 ^ crc->tables[0][(value ^ *bytes++) & 0xFF];
  return value ^ crc->ones;
}

// MARK: libb2

#define LIBB2 "libb2.so.1"

/// Loaded when it is needed, because few jobs need it and it brings libgomp.
static struct {
  int (*init)(blake2b_state *, size_t), (*update)(blake2b_state *, const uint8_t *, size_t),
      (*final)(blake2b_state *, uint8_t *, size_t);
} blake2b_calls;
static pthread_once_t libb2_once = PTHREAD_ONCE_INIT;

static void load_libb2(void) {
  void *handle = dlopen(LIBB2, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return;
  *(void **)&blake2b_calls.init = dlsym(handle, "blake2b_init");
  *(void **)&blake2b_calls.update = dlsym(handle, "blake2b_update");
  *(void **)&blake2b_calls.final = dlsym(handle, "blake2b_final");
}

int spoolrun_digest_is_available(int kind) {
  if (kind != SPOOLRUN_BLAKE2B) return 1;
  pthread_once(&libb2_once, load_libb2);
  return blake2b_calls.init && blake2b_calls.update && blake2b_calls.final;
}

DLOPEN_NOTE("blake2b", "BLAKE2b", "recommended", LIBB2);

// MARK: states

static uint8_t *put(uint8_t *to, uint64_t word, size_t size) {
  for (size_t i = 0; i < size; i++) to[i] = (uint8_t)(word >> 8 * (size - 1 - i));
  return to + size;
}

static const uint8_t *get(const uint8_t *from, uint64_t *word, size_t size) {
  *word = 0;
  for (size_t i = 0; i < size; i++) *word = *word << 8 | from[i];
  return from + size;
}

// The structs have the same members; only SHA-512 counts its blocks in two numbers, of which the second stays 0 for any
// length in 64 bits.
#define CARRY(name, count_member, wide)                                                                              \
  static size_t save_##name(const void *context, uint64_t length, uint8_t *state) {                                   \
    const struct name##_ctx *ctx = context;                                                                            \
    size_t block = sizeof ctx->block, rest = length % block;                                                           \
    if (ctx->count_member != length / block || ctx->index != rest) return 0;                                           \
    uint8_t *end = state;                                                                                              \
    for (size_t i = 0; i < sizeof ctx->state / sizeof *ctx->state; i++)                                                \
      end = put(end, ctx->state[i], sizeof *ctx->state);                                                               \
    memcpy(end, ctx->block, rest);                                                                                     \
    return (size_t)(end - state) + rest;                                                                               \
  }                                                                                                                    \
  static int restore_##name(void *context, uint64_t length, size_t count, const uint8_t *state) {                     \
    struct name##_ctx *ctx = context;                                                                                  \
    size_t block = sizeof ctx->block, rest = length % block;                                                           \
    if (count != sizeof ctx->state + rest) return 0;                                                                   \
    for (size_t i = 0; i < sizeof ctx->state / sizeof *ctx->state; i++) {                                              \
      uint64_t word;                                                                                                   \
      state = get(state, &word, sizeof *ctx->state);                                                                   \
      ctx->state[i] = (wide)word;                                                                                      \
    }                                                                                                                  \
    memcpy(ctx->block, state, rest);                                                                                   \
    ctx->count_member = length / block;                                                                                \
    ctx->index = (unsigned)rest;                                                                                       \
    return 1;                                                                                                          \
  }

CARRY(md5, count, uint32_t)
CARRY(sha1, count, uint32_t)
CARRY(sha256, count, uint32_t)
CARRY(sha512, count_low, uint64_t)

// SHA-3 does not count its blocks.
static size_t save_sha3_256(const void *context, uint64_t length, uint8_t *state) {
  const struct sha3_256_ctx *ctx = context;
  size_t rest = length % sizeof ctx->block;
  if (ctx->index != rest) return 0;
  uint8_t *end = state;
  for (size_t i = 0; i < SHA3_STATE_LENGTH; i++) end = put(end, ctx->state.a[i], 8);
  memcpy(end, ctx->block, rest);
  return (size_t)(end - state) + rest;
}

static int restore_sha3_256(void *context, uint64_t length, size_t count, const uint8_t *state) {
  struct sha3_256_ctx *ctx = context;
  size_t rest = length % sizeof ctx->block;
  if (count != sizeof ctx->state + rest) return 0;
  for (size_t i = 0; i < SHA3_STATE_LENGTH; i++) state = get(state, &ctx->state.a[i], 8);
  memcpy(ctx->block, state, rest);
  ctx->index = (unsigned)rest;
  return 1;
}

// libb2 keeps up to two blocks, because the last one is compressed in another way: how many depends on how the bytes
// came.
static size_t save_blake2b(const void *context, uint64_t length, uint8_t *state) {
  const blake2b_state *ctx = context;
  if (ctx->t[1] != 0 || ctx->t[0] + ctx->buflen != length || ctx->buflen > sizeof ctx->buf) return 0;
  uint8_t *end = state;
  for (size_t i = 0; i < 8; i++) end = put(end, ctx->h[i], 8);
  memcpy(end, ctx->buf, ctx->buflen);
  return (size_t)(end - state) + ctx->buflen;
}

static int restore_blake2b(void *context, uint64_t length, size_t count, const uint8_t *state) {
  blake2b_state *ctx = context;
  size_t rest = count - sizeof ctx->h;
  if (count < sizeof ctx->h || rest > sizeof ctx->buf || rest > length || (length - rest) % BLAKE2B_BLOCKBYTES != 0 ||
      (rest == 0 && length > 0))
    return 0;
  for (size_t i = 0; i < 8; i++) {
    uint64_t word;
    state = get(state, &word, 8);
    ctx->h[i] = word;
  }
  memcpy(ctx->buf, state, rest);
  ctx->buflen = (uint32_t)rest;
  ctx->t[0] = length - rest;
  return 1;
}

// MARK: all digests

/// The library's functions, and what reads and writes its context; nothing for a CRC.
static const struct {
  const struct nettle_hash *hash;
  size_t (*save)(const void *context, uint64_t length, uint8_t *state);
  int (*restore)(void *context, uint64_t length, size_t count, const uint8_t *state);
} kinds[] = {
    [SPOOLRUN_MD5] = {&nettle_md5, save_md5, restore_md5},
    [SPOOLRUN_SHA1] = {&nettle_sha1, save_sha1, restore_sha1},
    [SPOOLRUN_SHA256] = {&nettle_sha256, save_sha256, restore_sha256},
    [SPOOLRUN_SHA512] = {&nettle_sha512, save_sha512, restore_sha512},
    [SPOOLRUN_SHA3_256] = {&nettle_sha3_256, save_sha3_256, restore_sha3_256},
    [SPOOLRUN_BLAKE2B] = {NULL, save_blake2b, restore_blake2b},
    [SPOOLRUN_CRC32C] = {NULL, NULL, NULL},
    [SPOOLRUN_CRC64NVME] = {NULL, NULL, NULL},
};

void spoolrun_digest_init(struct spoolrun_digest *digest, int kind) {
  memset(digest, 0, sizeof *digest);
  digest->kind = kind;
  if (crc_of(kind)) return;
  if (kind == SPOOLRUN_BLAKE2B) {
    if (spoolrun_digest_is_available(kind)) blake2b_calls.init((blake2b_state *)digest->context, BLAKE2B_OUTBYTES);
  }
  else kinds[kind].hash->init(digest->context);
}

void spoolrun_digest_update(struct spoolrun_digest *digest, size_t count, const void *bytes) {
  struct crc *crc = crc_of(digest->kind);
  if (crc) digest->context[0] = update_crc(crc, digest->context[0], count, bytes);
  else if (digest->kind == SPOOLRUN_BLAKE2B) {
    if (spoolrun_digest_is_available(digest->kind))
      blake2b_calls.update((blake2b_state *)digest->context, bytes, count);
  }
  else kinds[digest->kind].hash->update(digest->context, count, bytes);
}

size_t spoolrun_digest_value(const struct spoolrun_digest *digest, uint8_t *value) {
  struct spoolrun_digest copy = *digest;
  if (crc_of(digest->kind)) {
    size_t size = digest->kind == SPOOLRUN_CRC32C ? 4 : 8;
    put(value, digest->context[0], size);
    return size;
  }
  if (digest->kind == SPOOLRUN_BLAKE2B) {
    if (!spoolrun_digest_is_available(digest->kind)) return 0;
    blake2b_calls.final((blake2b_state *)copy.context, value, BLAKE2B_OUTBYTES);
    return BLAKE2B_OUTBYTES;
  }
  const struct nettle_hash *hash = kinds[digest->kind].hash;
  hash->digest(copy.context, hash->digest_size, value);
  return hash->digest_size;
}

size_t spoolrun_digest_save(const struct spoolrun_digest *digest, uint64_t length, uint8_t *state) {
  if (crc_of(digest->kind)) return spoolrun_digest_value(digest, state);
  if (!spoolrun_digest_is_available(digest->kind)) return 0;
  return kinds[digest->kind].save(digest->context, length, state);
}

int spoolrun_digest_restore(
    struct spoolrun_digest *digest, int kind, uint64_t length, size_t count, const uint8_t *state) {
  spoolrun_digest_init(digest, kind);
  if (!crc_of(kind)) return kinds[kind].restore(digest->context, length, count, state);
  if (count != (kind == SPOOLRUN_CRC32C ? 4 : 8)) return 0;
  get(state, &digest->context[0], count);
  return 1;
}

size_t spoolrun_base64(size_t count, const char *text, size_t capacity, uint8_t *bytes) {
  struct base64_decode_ctx context;
  size_t length = 0;
  if (BASE64_DECODE_LENGTH(count) > capacity) return 0;
  base64_decode_init(&context);
  if (!base64_decode_update(&context, &length, bytes, count, text) || !base64_decode_final(&context)) return 0;
  // Nettle passes over white space.
  return (length + 2) / 3 * 4 == count ? length : 0;
}
