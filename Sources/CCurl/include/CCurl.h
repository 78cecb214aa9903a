/// libcurl for Swift: the whole of curl.h, loaded when it is needed, and typed doors to its variadic functions.
///
/// Nothing links libcurl: with all that it brings along it takes longer to load than a worker needs to find that there is nothing to do.
///
/// Swift imports no C function that takes `...`, and libcurl sets and reads every option through three of those.
/// Each ccurl_set_ and ccurl_get_ function fixes the type of the third argument; which option takes which type stands
/// in that option's man page (CURLOPT_*(3), CURLINFO_*(3)).
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>
#include <stdint.h>

#define CCURL_SONAME "libcurl.so.4"

/// Loads libcurl (dlopen(3)); NULL, or why it cannot be. No other function here may be called before this one gave NULL: another of curl.h's
/// than those in CCurl.c does not link. Not for several threads at once.
const char *ccurl_load(void);

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value);
/// libcurl copies the string, except for CURLOPT_POSTFIELDS, which nobody uses here.
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value);
/// For the options whose memory stays the caller's: CURLOPT_ERRORBUFFER, CURLOPT_PRIVATE, the callbacks' data.
CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value);
/// The list stays the caller's and has to outlive the transfer.
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list);
/// CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION.
CURLcode ccurl_set_receiver(CURL *easy, CURLoption option, curl_write_callback function);
CURLcode ccurl_set_debug_receiver(CURL *easy, curl_debug_callback function);
CURLcode ccurl_set_prerequest(CURL *easy, curl_prereq_callback function);
CURLcode ccurl_set_open_socket(CURL *easy, curl_opensocket_callback function);
CURLcode ccurl_set_close_socket(CURL *easy, curl_closesocket_callback function);

CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value);
CURLcode ccurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value);
CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value);

/// curl_url_get(3), whose handle is const in the headers of some versions only.
CURLUcode ccurl_url_get(CURLU *handle, CURLUPart part, char **text, unsigned flags);

/// The result of a finished transfer; Swift sees the union that holds it only as raw memory.
static inline CURLcode ccurl_message_result(const CURLMsg *message) {
  return message->data.result;
}

/// Macros with casts are not imported either.
static inline long ccurl_global_default(void) { return CURL_GLOBAL_DEFAULT; }

#endif
