// SPDX-License-Identifier: MIT
// common/ranking.h: documents in the order of their scores. Shared by frit rerank and the server.
#pragma once
#include <stddef.h>

typedef struct app_ranked {
    size_t index;   // the document's
    float score;
} app_ranked;

// Sorts by falling score; documents of equal scores by index.
void app_rank(app_ranked *documents, size_t n);
