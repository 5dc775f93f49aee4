// SPDX-License-Identifier: MIT
// server/http/http_reply.h: sends replies to requests.
#pragma once
#include "server/http/http_request.h"

// Sends the reply of a request whose body was read. While the status of a job's reply is unknown, the connection is
// suspended instead.
enum MHD_Result server_http_reply(server_http_request *r);
enum MHD_Result server_http_send_problem(server_http_request *r);
