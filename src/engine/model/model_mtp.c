// SPDX-License-Identifier: MIT
// A model's layer for multi-token prediction as a model. It shares the file, the vocabulary and the packed weights.
#include "engine/model/model.h"

#include <stdatomic.h>
#include <stdlib.h>

frit_status frit_model_open_next(frit_model **out, frit_model *model)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    const char *path = model->info.path;
    if (model->vocab_only) return frit_fail_file(FRIT_E_INVALID, "%s: was opened for its vocabulary only", path);
    frit_model *next = calloc(1, sizeof *next);
    frit_layer *layer = calloc(1, sizeof *layer);
    if (!next || !layer) {
        free(next);
        free(layer);
        return frit_fail_memory(sizeof *next + sizeof *layer, "a model");
    }
    atomic_init(&next->n_refs, 1);
    next->of = model;
    next->layer = layer;
    next->ckpt = model->ckpt;
    next->log = model->log;
    next->arch = model->arch;
    next->hp = model->hp;
    next->weights = model->weights;
    next->vocab = model->vocab;
    next->tokenizer = model->tokenizer;
    next->chats = model->chats;
    next->chat = model->chat;
    next->tool_chat = model->tool_chat;
    next->info = model->info;
    next->keys = model->keys;
    next->sampling_sequence = model->sampling_sequence;
    next->stores = model->stores;
    next->trie_lock = model->trie_lock;
    frit_model_ref(model);
    const frit_status status = frit_next_take(&next->hp, &next->weights, layer, model->arch);
    if (status != FRIT_OK) {
        frit_model_free(next);
        return frit_fail_in(path, status);
    }
    next->info.n_layer = 1;
    atomic_store(&model->is_drafted, true);
    *out = next;
    return FRIT_OK;
}

void frit_model_free_next(frit_model *model)
{
    for (size_t i = 0; i < FRIT_COUNT(model->tries); i++) {
        frit_token_trie_free(model->tries[i].trie);
        free(model->tries[i].pieces);
    }
    frit_model_free(model->of);
    free(model->layer);
    free(model);
}
