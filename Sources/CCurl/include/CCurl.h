/// libcurl for Swift: all of curl.h, loaded when it is needed, and typed wrappers for its variadic functions.
///
/// Nothing links libcurl: loading it with its dependencies takes longer than a worker needs to find that there is
/// nothing to do.
///
/// Swift does not import C functions that take `...`, and libcurl sets and reads all options with three of those. Each
/// ccurl_set_ and ccurl_get_ function fixes the type of the third argument; see the option's man page for its type
/// (CURLOPT_*(3), CURLINFO_*(3)).
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>
#include <stdint.h>
#include <time.h>

#define CCURL_SONAME "libcurl.so.4"
#define CIDN_SONAME "libidn2.so.0"

/// Loads libcurl (dlopen(3)). Returns NULL, or why it cannot be loaded. No other function may be called before this one
/// has returned NULL. Functions of curl.h that are not in CCurl.c do not link. Not thread-safe.
const char *ccurl_load(void);

/// curl_global_init(3) with CURL_GLOBAL_DEFAULT, a macro with casts, which Swift does not import.
CURLcode ccurl_global_init(void);

/// The most connections that stay open (CURLMOPT_MAXCONNECTS(3)).
CURLMcode ccurl_keep_connections(CURLM *multi, long most);

/// An empty share of cookies alone (libcurl-share(3)); NULL if there is no memory.
CURLSH *ccurl_share_cookies(void);
/// No handle may have the share any more.
void ccurl_share_cleanup(CURLSH *share);

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value);
/// libcurl copies the string, except for CURLOPT_POSTFIELDS, which is not used here.
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value);
/// For options whose memory the caller owns: CURLOPT_ERRORBUFFER, CURLOPT_PRIVATE, the data of callbacks.
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value);
/// The caller owns the list, which has to outlive the transfer.
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list);
/// CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION.
CURLcode ccurl_set_receiver(CURL *easy, CURLoption option, curl_write_callback function);
CURLcode ccurl_set_debug_receiver(CURL *easy, curl_debug_callback function);
CURLcode ccurl_set_prerequest(CURL *easy, curl_prereq_callback function);
CURLcode ccurl_set_progress(CURL *easy, curl_xferinfo_callback function);
CURLcode ccurl_set_open_socket(CURL *easy, curl_opensocket_callback function);
CURLcode ccurl_set_close_socket(CURL *easy, curl_closesocket_callback function);

/// socket(2) with SOCK_CLOEXEC. glibc's passes on the upper halves of the registers, which its caller may leave
/// undefined, and a filter of seccomp such as RestrictAddressFamilies= (systemd.exec(5)) compares them, too. Here they
/// are defined.
int ccurl_socket(int family, int type, int protocol);

CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value);
CURLcode ccurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value);
CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value);

/// curl_url_get(3), whose handle is const only in the headers of some versions.
CURLUcode ccurl_url_get(CURLU *handle, CURLUPart part, char **text, unsigned flags);

/// Writes the form of a host name in UTF-8 that DNS has, such as xn--bcher-kva.example (IDNA 2008). Returns NULL, or
/// why that cannot be done.
const char *ccurl_ascii_host(const char *host, char *ascii, size_t size);

/// strptime(3), which Glibc's module lacks: 0 where the text has another format.
int ccurl_parse_time(const char *text, const char *format, struct tm *parts);

/// The result of a finished transfer. Swift imports the union that contains it only as raw memory.
static inline CURLcode ccurl_message_result(const CURLMsg *message) {
  return message->data.result;
}

#endif
