#pragma once
#include <stdint.h>

/// Declares in the program file that it loads the library SONAME, because ldd(1) does not show that: the note of the
/// ELF dlopen metadata specification (uapi-group.org), from which tools such as dh_dlopenlibdeps(1) derive package
/// dependencies. One in a C file; PRIORITY is required, recommended or suggested.
#define DLOPEN_NOTE(FEATURE, DESCRIPTION, PRIORITY, SONAME) \
  DLOPEN_NOTE_OF( \
      "[{\"feature\":\"" FEATURE "\",\"description\":\"" DESCRIPTION "\",\"priority\":\"" PRIORITY "\"," \
      "\"soname\":[\"" SONAME "\"]}]")

#define DLOPEN_NOTE_OF(TEXT) \
  static const struct { \
    uint32_t name_size, text_size, type; \
    char name[4]; \
    _Alignas(4) char text[sizeof TEXT]; \
  } dlopen_note __attribute__((used, aligned(4), section(".note.dlopen"))) = { \
      .name_size = 4, .text_size = sizeof TEXT, .type = 0x407c0c0a, .name = "FDO", .text = TEXT}
