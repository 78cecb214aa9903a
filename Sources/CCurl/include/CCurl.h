/// libcurl for Swift: the whole of curl.h, and typed doors to its variadic functions.
///
/// Swift imports no C function that takes `...`, and libcurl sets and reads every option through three of those.
/// Each inline function below fixes the type of the third argument; which option takes which type stands in that
/// option's man page (CURLOPT_*(3), CURLINFO_*(3), CURLMOPT_*(3)).
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}

/// libcurl copies the string, except for CURLOPT_POSTFIELDS, which nobody uses here.
static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

/// For the options whose memory stays the caller's: CURLOPT_ERRORBUFFER, CURLOPT_PRIVATE, the callbacks' data.
static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}

/// The list stays the caller's and has to outlive the transfer.
static inline CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list) {
  return curl_easy_setopt(easy, option, list);
}

/// CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION.
static inline CURLcode ccurl_set_receiver(CURL *easy, CURLoption option, curl_write_callback function) {
  return curl_easy_setopt(easy, option, function);
}

static inline CURLcode ccurl_set_debug_receiver(CURL *easy, curl_debug_callback function) {
  return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, function);
}

static inline CURLcode ccurl_set_prerequest(CURL *easy, curl_prereq_callback function) {
  return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, function);
}

static inline CURLcode ccurl_set_open_socket(CURL *easy, curl_opensocket_callback function) {
  return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode ccurl_set_close_socket(CURL *easy, curl_closesocket_callback function) {
  return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, function);
}

static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) {
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_pointer(CURL *easy, CURLINFO info, void **value) {
  return curl_easy_getinfo(easy, info, value);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

/// The result of a finished transfer; Swift sees the union that holds it only as raw memory.
static inline CURLcode ccurl_message_result(const CURLMsg *message) {
  return message->data.result;
}

/// Macros with casts are not imported either.
static inline long ccurl_global_default(void) { return CURL_GLOBAL_DEFAULT; }

#endif
