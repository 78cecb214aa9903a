#include "CNettle.h"

#include <nettle/base64.h>
#include <nettle/md5.h>
#include <nettle/nettle-meta.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <string.h>

_Static_assert(sizeof(struct sha512_ctx) <= sizeof(((struct spoolrun_digest *)0)->context), "room for each context");

static const struct nettle_hash *hash_of(int kind) {
  switch (kind) {
  case SPOOLRUN_MD5: return &nettle_md5;
  case SPOOLRUN_SHA1: return &nettle_sha1;
  case SPOOLRUN_SHA256: return &nettle_sha256;
  default: return &nettle_sha512;
  }
}

void spoolrun_digest_init(struct spoolrun_digest *digest, int kind) {
  memset(digest, 0, sizeof *digest);
  digest->kind = kind;
  hash_of(kind)->init(digest->context);
}

void spoolrun_digest_update(struct spoolrun_digest *digest, size_t count, const void *bytes) {
  hash_of(digest->kind)->update(digest->context, count, bytes);
}

size_t spoolrun_digest_value(const struct spoolrun_digest *digest, uint8_t *value) {
  struct spoolrun_digest copy = *digest;
  const struct nettle_hash *hash = hash_of(digest->kind);
  hash->digest(copy.context, hash->digest_size, value);
  return hash->digest_size;
}

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

size_t spoolrun_digest_save(const struct spoolrun_digest *digest, uint64_t length, uint8_t *state) {
  switch (digest->kind) {
  case SPOOLRUN_MD5: return save_md5(digest->context, length, state);
  case SPOOLRUN_SHA1: return save_sha1(digest->context, length, state);
  case SPOOLRUN_SHA256: return save_sha256(digest->context, length, state);
  default: return save_sha512(digest->context, length, state);
  }
}

int spoolrun_digest_restore(
    struct spoolrun_digest *digest, int kind, uint64_t length, size_t count, const uint8_t *state) {
  spoolrun_digest_init(digest, kind);
  switch (kind) {
  case SPOOLRUN_MD5: return restore_md5(digest->context, length, count, state);
  case SPOOLRUN_SHA1: return restore_sha1(digest->context, length, count, state);
  case SPOOLRUN_SHA256: return restore_sha256(digest->context, length, count, state);
  default: return restore_sha512(digest->context, length, count, state);
  }
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
