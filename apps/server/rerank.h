// SPDX-License-Identifier: MIT
// server/rerank.h: /v1/rerank, from the request to the answer. Runs as embeddings do (embeddings.h).
#pragma once
#include "server/request.h"
#include "server/routes.h"

enum { SERVER_MAX_DOCUMENTS = 2048 };

// NULL with a problem in the exchange.
server_job *server_rerank_job(server_exchange *exchange, const server_rerank *request);
