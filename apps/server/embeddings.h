// SPDX-License-Identifier: MIT
// server/embeddings.h: /v1/embeddings, from the request to the answer.
//
// Texts become tokens on the thread that reads the body. The job then holds an idle session, whose room in the cache it
// uses, and embeds a batch of texts at each turn of the engine thread, so that answers of others go on meanwhile.
#pragma once
#include "server/request.h"
#include "server/routes.h"

enum { SERVER_MAX_INPUTS = 2048 };

// NULL with a problem in the exchange.
server_job *server_embeddings_job(server_exchange *exchange, const server_embedding *request);
