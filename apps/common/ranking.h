// SPDX-License-Identifier: MIT
// common/ranking.h: documents in the order of their scores. Shared by frit rerank and the server.
#pragma once
#include <stddef.h>

typedef struct app_ranked {
    size_t index;   // of the document
    float score;
} app_ranked;

// The best first; documents with the same score in the order of their indices.
void app_rank(app_ranked *documents, size_t n);
