#pragma once
#include <stddef.h>
#include <stdint.h>

/// Continues the CRC-32 `crc` (ISO 3309, RFC 1952 section 8) with `count` bytes. libdeflate computes it, if the machine
/// has it, three times as fast as zlib, which otherwise does.
uint32_t spoolrun_crc32(uint32_t crc, const void *bytes, size_t count);
