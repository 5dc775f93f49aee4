// SPDX-License-Identifier: MIT
// server/http/http_body.h: collects the bodies of requests and makes jobs of them.
#pragma once
#include "server/http/http_request.h"

// Adds bytes to the body, or refuses the request. The body of a refused request is read and dropped, so that the
// connection stays usable.
void server_http_take_body(server_http_request *r, const char *bytes, size_t n);
size_t server_http_max_body(const server_http *http);   // most bytes of a body
void server_http_free_body(server_http_request *r);
void server_http_refuse_body(server_http_request *r);   // status 413
// Prepares a new request for the body readers.
void server_http_set_reader(server_http_request *r);
// The request is complete: gives its body to a body reader, or runs its route here if the route reads none.
void server_http_read_body(server_http_request *r);
// True while a body reader has the request. The connection is suspended then; it may be woken too early.
bool server_http_waits_for_reader(server_http_request *r);
// Submits the job of the request, if it has one, and has the connection resumed by the job's news.
void server_http_follow_job(server_http_request *r);
