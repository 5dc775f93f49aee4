// SPDX-License-Identifier: MIT
// hub/curl.h: what requests and transfers share of libcurl.
#pragma once
#include "hub/http.h"

#define CURL_DISABLE_DEPRECATION   // the library that is opened may be older than what replaces an option
#include <curl/curl.h>

// Can libcurl be called? A program that is linked to it always can; HUB_E_UNSUPPORTED: this machine has no libcurl.
#ifdef FRIT_CURL_OPENED
hub_status hub_curl_ready(void);
#else
static inline hub_status hub_curl_ready(void)
{
    return HUB_OK;
}
#endif
// A handle with proxies, certificates and time limits; NULL: out of memory.
CURL *hub_curl_new(void);
// Sets address and token, which is sent only to the server of `origin`. *headers replaces the handle's list.
bool hub_curl_address(CURL *curl, const char *url, const char *token, const char *origin, struct curl_slist **headers);
// For CURLOPT_HEADERFUNCTION, with a hub_head.
size_t hub_curl_header(char *line, size_t size, size_t n, void *head);
void hub_head_reset(hub_head *head);
// The address that a redirect leads to. HUB_E_NETWORK: it is no address, or may not be followed.
hub_status hub_curl_redirect(const char *from, const char *location, hub_path *out);
hub_status hub_curl_failed(CURLcode code, const char *detail, const char *url);
