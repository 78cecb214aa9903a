#define _GNU_SOURCE 1
#include "CCurl.h"
#include "DlopenNote.h"
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/// The functions of libcurl that are called from here or from Swift, without the prefix curl_.
#define FUNCTIONS(each) \
  each(easy_cleanup) each(easy_getinfo) each(easy_init) each(easy_pause) each(easy_reset) each(easy_setopt) \
  each(easy_strerror) each(free) each(global_init) each(multi_add_handle) each(multi_cleanup) each(multi_info_read) \
  each(multi_init) each(multi_perform) each(multi_poll) each(multi_remove_handle) \
  each(multi_setopt) each(multi_strerror) each(share_cleanup) each(share_init) each(share_setopt) each(slist_append) \
  each(slist_free_all) each(url) each(url_cleanup) each(url_get) each(url_set) each(url_strerror) each(version_info)

#define POINTER(name) __typeof__(curl_##name) *name;
static struct {
  FUNCTIONS(POINTER)
} library;

static char too_old[100];

const char *ccurl_load(void) {
  dlerror();
  // RTLD_NOW resolves all symbols now, so that a missing one is reported here and does not end the process during a
  // transfer.
  void *handle = dlopen(CCURL_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return dlerror();
  // C does not convert a data pointer to a function pointer. The cast is that of dlsym(3).
#define LOOK_UP(name) \
  *(void **)&library.name = dlsym(handle, "curl_" #name); \
  if (!library.name) return dlerror();
  FUNCTIONS(LOOK_UP)
  const curl_version_info_data *found = library.version_info(CURLVERSION_NOW);
  // The first version that has all options used here.
  if (found->version_num < 0x075700) {
    snprintf(too_old, sizeof too_old, "it is %s, and 7.87.0 or later is needed", found->version);
    return too_old;
  }
  return NULL;
}

DLOPEN_NOTE("transfer", "Downloading", "required", CCURL_SONAME);

// MARK: what Swift calls under libcurl's own names

/// Not in the dynamic symbol table, because libcurl's calls of its own functions would be bound to these.
#define HIDDEN __attribute__((visibility("hidden")))

HIDDEN void curl_easy_cleanup(CURL *easy) { library.easy_cleanup(easy); }
HIDDEN CURL *curl_easy_init(void) { return library.easy_init(); }
HIDDEN CURLcode curl_easy_pause(CURL *easy, int bits) { return library.easy_pause(easy, bits); }
HIDDEN void curl_easy_reset(CURL *easy) { library.easy_reset(easy); }
HIDDEN const char *curl_easy_strerror(CURLcode code) { return library.easy_strerror(code); }
HIDDEN void curl_free(void *memory) { library.free(memory); }
HIDDEN CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy) { return library.multi_add_handle(multi, easy); }
HIDDEN CURLMcode curl_multi_cleanup(CURLM *multi) { return library.multi_cleanup(multi); }
HIDDEN CURLMsg *curl_multi_info_read(CURLM *multi, int *left) { return library.multi_info_read(multi, left); }
HIDDEN CURLM *curl_multi_init(void) { return library.multi_init(); }
HIDDEN CURLMcode curl_multi_perform(CURLM *multi, int *running) { return library.multi_perform(multi, running); }
HIDDEN CURLMcode curl_multi_poll(CURLM *multi, struct curl_waitfd *more, unsigned count, int timeout, int *ready) {
  return library.multi_poll(multi, more, count, timeout, ready);
}
HIDDEN CURLMcode curl_multi_remove_handle(CURLM *multi, CURL *easy) { return library.multi_remove_handle(multi, easy); }
HIDDEN const char *curl_multi_strerror(CURLMcode code) { return library.multi_strerror(code); }
HIDDEN struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text) {
  return library.slist_append(list, text);
}
HIDDEN void curl_slist_free_all(struct curl_slist *list) { library.slist_free_all(list); }
HIDDEN CURLU *curl_url(void) { return library.url(); }
HIDDEN void curl_url_cleanup(CURLU *handle) { library.url_cleanup(handle); }
HIDDEN CURLUcode curl_url_set(CURLU *handle, CURLUPart part, const char *text, unsigned flags) {
  return library.url_set(handle, part, text, flags);
}
HIDDEN const char *curl_url_strerror(CURLUcode code) { return library.url_strerror(code); }

// MARK: doors

CURLUcode ccurl_url_get(CURLU *handle, CURLUPart part, char **text, unsigned flags) {
  return library.url_get(handle, part, text, flags);
}

CURLcode ccurl_global_init(void) { return library.global_init(CURL_GLOBAL_DEFAULT); }

CURLMcode ccurl_keep_connections(CURLM *multi, long most) {
  return library.multi_setopt(multi, CURLMOPT_MAXCONNECTS, most);
}

CURLSH *ccurl_share_cookies(void) {
  CURLSH *share = library.share_init();
  if (share && library.share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE) != CURLSHE_OK) {
    library.share_cleanup(share);
    return NULL;
  }
  return share;
}
void ccurl_share_cleanup(CURLSH *share) { library.share_cleanup(share); }

// Each fixes the type of the argument that curl_easy_setopt(3) or curl_easy_getinfo(3) takes.
#define SET(name, type) \
  CURLcode ccurl_set_##name(CURL *easy, CURLoption option, type value) { \
    return library.easy_setopt(easy, option, value); \
  }
#define SET_FUNCTION(name, option, type) \
  CURLcode ccurl_set_##name(CURL *easy, type function) { return library.easy_setopt(easy, option, function); }
#define GET(name, type) \
  CURLcode ccurl_get_##name(CURL *easy, CURLINFO info, type *value) { return library.easy_getinfo(easy, info, value); }

SET(long, long)
SET(offset, curl_off_t)
SET(string, const char *)
SET(pointer, void *)
SET(list, struct curl_slist *)
SET(receiver, curl_write_callback)
SET_FUNCTION(debug_receiver, CURLOPT_DEBUGFUNCTION, curl_debug_callback)
SET_FUNCTION(prerequest, CURLOPT_PREREQFUNCTION, curl_prereq_callback)
SET_FUNCTION(progress, CURLOPT_XFERINFOFUNCTION, curl_xferinfo_callback)
SET_FUNCTION(open_socket, CURLOPT_OPENSOCKETFUNCTION, curl_opensocket_callback)
SET_FUNCTION(close_socket, CURLOPT_CLOSESOCKETFUNCTION, curl_closesocket_callback)
GET(long, long)
GET(offset, curl_off_t)
GET(pointer, void *)

int ccurl_socket(int family, int type, int protocol) {
  return (int)syscall(SYS_socket, (long)family, (long)(type | SOCK_CLOEXEC), (long)protocol);
}

int ccurl_parse_time(const char *text, const char *format, struct tm *parts) {
  return strptime(text, format, parts) != NULL;
}
