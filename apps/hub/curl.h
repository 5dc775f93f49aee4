// SPDX-License-Identifier: MIT
// hub/curl.h: functions of libcurl that requests and transfers share.
#pragma once
#include "hub/http.h"

#define CURL_DISABLE_DEPRECATION   // the opened library may be older than the replacement of a deprecated option
#include <curl/curl.h>

// Checks that libcurl can be called. A program that is linked to libcurl can always call it; otherwise
// HUB_E_UNSUPPORTED if the machine has no libcurl.
#ifdef FRIT_CURL_OPENED
hub_status hub_curl_ready(void);
#else
static inline hub_status hub_curl_ready(void)
{
    return HUB_OK;
}
#endif
// Returns a handle with proxies, certificates and time limits; NULL: out of memory.
CURL *hub_curl_new(void);
// Sets the address, and a token for the server of `origin` only. *headers replaces the handle's list.
bool hub_curl_address(CURL *curl, const char *url, const char *token, const char *origin, struct curl_slist **headers);
// For CURLOPT_HEADERFUNCTION, with a hub_head.
size_t hub_curl_header(char *line, size_t size, size_t n, void *head);
void hub_head_reset(hub_head *head);
// Resolves the address of a redirect. HUB_E_NETWORK: it is not an address, or may not be followed.
hub_status hub_curl_redirect(const char *from, const char *location, hub_path *out);
hub_status hub_curl_failed(CURLcode code, const char *detail, const char *url);
