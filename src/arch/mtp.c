// SPDX-License-Identifier: MIT
// Multi-token prediction, as DeepSeek-V3 defines it: a layer after the last that predicts the token after the next.
//
//     x[i] = proj [ norm(embedding of token i + 1) | norm(h[i]) ],  h[i] the last hidden state, after the final norm
//
// The layer follows, with a KV cache of its own, a norm and the head. Its hidden states can replace h to predict one
// more token. GGUF files name the parts blk.N.nextn.*; a file without its own embedding, head or norm uses the model's.
// The other weights and the layer function are the architecture's. The layer runs as a model of its own, with the
// tokens from the second on.
#include "arch/arch.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_LAYER_WEIGHT(next.proj,        "nextn.eh_proj",          N_EMBD,  N_EMBD_2, 0),
    FRIT_LAYER_WEIGHT(next.embd_norm,   "nextn.enorm",            N_EMBD,  1,        0),
    FRIT_LAYER_WEIGHT(next.hidden_norm, "nextn.hnorm",            N_EMBD,  1,        0),
    FRIT_LAYER_WEIGHT(next.tok_embd,    "nextn.embed_tokens",     N_VOCAB, N_EMBD,   FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(next.lm_head,     "nextn.shared_head_head", N_VOCAB, N_EMBD,   FRIT_WEIGHT_OPTIONAL),
    FRIT_LAYER_WEIGHT(next.out_norm,    "nextn.shared_head_norm", N_EMBD,  1,        FRIT_WEIGHT_OPTIONAL),
};
// clang-format on

const frit_weight_row *frit_next_rows(size_t *n_rows)
{
    *n_rows = FRIT_COUNT(rows);
    return rows;
}

frit_status frit_next_take(frit_hparams *hp, frit_weights *weights, frit_layer *layer, const frit_arch *arch)
{
    if (hp->n_layer_next == 0)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "the file has no layers for multi-token prediction (nextn_predict_layers)");
    if (!weights->has_next)
        return frit_fail(FRIT_E_UNSUPPORTED, "the layer for multi-token prediction cannot be used: %s",
                         weights->no_next ? weights->no_next : "it was not bound");
    const frit_layer_hparams *lhp = &hp->layers[hp->n_layer];
    const bool is_alone = !lhp->is_recurrent && !lhp->shares_kv && !arch->begin && !arch->end && !arch->is_encoder &&
                          !arch->is_encoder_decoder;
    if (!is_alone)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "multi-token prediction is not supported for the architecture '%s', whose "
                         "layers read more than the residual",
                         arch->name);
    *layer = weights->layers[hp->n_layer];
    const frit_next_weights *next = &layer->next;
    if (frit_has(&next->tok_embd)) weights->tok_embd = next->tok_embd;
    if (frit_has(&next->lm_head)) weights->lm_head = next->lm_head;
    if (frit_has(&next->out_norm)) weights->out_norm = next->out_norm;
    weights->layers = layer;
    hp->layers = &hp->layers[hp->n_layer];
    hp->n_layer = 1;
    hp->n_layer_next = 0;
    hp->n_loops = 0;
    hp->is_next = true;
    return FRIT_OK;
}

frit_node *frit_next_input(frit_build *b, frit_node *embedding)
{
    const frit_next_weights *next = &b->weights->layers[0].next;
    frit_node *h = frit_norm(b, &next->hidden_norm, frit_given_node(b->g, b->hp->n_embd));
    return frit_linear(b, &next->proj, frit_concat(b->g, frit_norm(b, &next->embd_norm, embedding), h));
}
