// SPDX-License-Identifier: MIT
// A build without libcurl finds, lists and removes models on this machine, but fetches nothing.
#include "hub/http.h"
#include "hub/transfer.h"

static hub_status refuse(void)
{
    return hub_fail(HUB_E_UNSUPPORTED, "this build of frit cannot fetch models: it was built without libcurl");
}

hub_status hub_http_get(const hub_request *request, hub_reply *reply)
{
    (void)request;
    *reply = (hub_reply){0};
    return refuse();
}

void hub_reply_free(hub_reply *reply)
{
    (void)reply;
}

hub_status hub_http_refused(const hub_head *head, const char *url, const char *what, bool has_token)
{
    (void)head, (void)url, (void)what, (void)has_token;
    return refuse();
}

bool hub_same_server(const char *a, const char *b)
{
    (void)a, (void)b;
    return false;
}

hub_status hub_transfer_run(const hub_transfer *transfer)
{
    (void)transfer;
    return refuse();
}
