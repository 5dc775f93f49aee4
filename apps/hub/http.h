// SPDX-License-Identifier: MIT
// hub/http.h: requests. Redirects are followed here and not by libcurl, so that a token is sent only to the server that
// it belongs to (equal scheme, host and port), and an https address never redirects to an http one.
#pragma once
#include "hub/hub.h"

typedef struct hub_head {   // properties of a file from a reply's headers
    long status;
    uint64_t n_bytes;                                 // of the body; UINT64_MAX: unknown
    uint64_t begin, total;                            // of Content-Range; UINT64_MAX: absent
    char etag[256], linked_etag[256], modified[64];   // unchanged values of headers
    uint64_t linked_bytes;
    char commit[64];
    char location[HUB_PATH_BYTES];
    int retry_s;   // -1: absent
} hub_head;

typedef struct hub_request {
    const char *url;
    const char *token;    // for the server of `url`; NULL or "": none
    const char *accept;   // NULL: anything
    const hub_watch *watch;
    bool head_only;
    bool follows_near;   // follows redirects within the server only
    size_t max_bytes;    // of the body
} hub_request;

typedef struct hub_reply {
    hub_head head;
    char *body;   // malloc'd
    size_t n;
} hub_reply;

// HUB_OK for any status of a reply. HUB_E_NETWORK: there was no reply.
hub_status hub_http_get(const hub_request *request, hub_reply *reply);
void hub_reply_free(hub_reply *reply);
// Fails with the error for a status other than success: what is refused, and what the user can do. `what`: the model or
// file.
hub_status hub_http_refused(const hub_head *head, const char *url, const char *what, bool has_token);
// Writes "host:port" of an address, for errors.
void hub_host_of(const char *url, char out[256]);
// True if scheme, host and port are equal.
bool hub_same_server(const char *a, const char *b);
