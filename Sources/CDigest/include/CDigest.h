// Digests behind one type that Swift can copy, with states that can be saved: those of Nettle and libb2, because their
// contexts are public structs (OpenSSL's are deprecated, swift-crypto shows none), and two CRCs.
#ifndef CDIGEST_H
#define CDIGEST_H

#include <stddef.h>
#include <stdint.h>

enum {
  SPOOLRUN_MD5,
  SPOOLRUN_SHA1,
  SPOOLRUN_SHA256,
  SPOOLRUN_SHA512,
  SPOOLRUN_SHA3_256,
  SPOOLRUN_BLAKE2B,
  SPOOLRUN_CRC32C,
  SPOOLRUN_CRC64NVME,
  /// Bytes of the longest digest, and of the longest state.
  SPOOLRUN_LONGEST_DIGEST = 64,
  SPOOLRUN_LONGEST_STATE = 200 + 135,
};

/// A running digest: a library's context, or a CRC.
struct spoolrun_digest {
  int kind;
  uint64_t context[48];
};

/// Whether this machine has the library for it. Without it a digest takes nothing in, and its value has no bytes.
int spoolrun_digest_is_available(int kind);

void spoolrun_digest_init(struct spoolrun_digest *digest, int kind);
void spoolrun_digest_update(struct spoolrun_digest *digest, size_t count, const void *bytes);
/// Writes the digest of the bytes so far, and leaves the running one as it is. Returns its length.
size_t spoolrun_digest_value(const struct spoolrun_digest *digest, uint8_t *value);

/// Writes what the digest of the first `length` bytes goes on from: a CRC, or the chaining value as its standard (FIPS
/// 180-4, FIPS 202, RFC 1321, RFC 7693) numbers its words, each in big-endian order, and the bytes of a block that is
/// not full. So it depends neither on the machine nor on how a version of the library lays out its context. Returns the
/// state's length, or 0 where the context does not keep its state as it is known here.
size_t spoolrun_digest_save(const struct spoolrun_digest *digest, uint64_t length, uint8_t *state);
/// Returns 0 where `state` is not one of the first `length` bytes.
int spoolrun_digest_restore(
    struct spoolrun_digest *digest, int kind, uint64_t length, size_t count, const uint8_t *state);

/// Base64 (RFC 4648 section 4) with its padding. Returns how many bytes it stands for; 0 for none, and for more than
/// `capacity`.
size_t spoolrun_base64(size_t count, const char *text, size_t capacity, uint8_t *bytes);

#endif
