#include "CCurl.h"
#include "DlopenNote.h"
#include <dlfcn.h>
#include <string.h>

// Of idn2.h: the names are mapped by UTS #46, as browsers and curl do.
enum { IDN2_OK = 0, IDN2_NFC_INPUT = 1, IDN2_NONTRANSITIONAL = 8 };

const char *ccurl_ascii_host(const char *host, char *ascii, size_t size) {
  // libcurl has it loaded, where it knows such names itself; it converts them by the locale, which is C here.
  void *library = dlopen(CIDN_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (!library) return CIDN_SONAME " is not installed";
  // The cast is that of dlsym(3).
  int (*lookup)(const uint8_t *, uint8_t **, int);
  void (*release)(void *);
  const char *(*text)(int);
  *(void **)&lookup = dlsym(library, "idn2_lookup_u8");
  *(void **)&release = dlsym(library, "idn2_free");
  *(void **)&text = dlsym(library, "idn2_strerror");
  const char *problem = NULL;
  if (!lookup || !release || !text) {
    problem = CIDN_SONAME " is too old";
  } else {
    uint8_t *found = NULL;
    int status = lookup((const uint8_t *)host, &found, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
    if (status != IDN2_OK) {
      problem = text(status);
    } else if (strlen((const char *)found) >= size) {
      problem = "it is too long";
    } else {
      strcpy(ascii, (const char *)found);
    }
    release(found);
  }
  // It is not closed: the text of an error is in it.
  return problem;
}

DLOPEN_NOTE("idn", "Host names beyond ASCII", "recommended", CIDN_SONAME);
