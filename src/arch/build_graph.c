// SPDX-License-Identifier: MIT
// The graph of a step: embedding, the architecture's layers, the rows with outputs, final norm, output head.
#include "arch/arch.h"

static float or_one(float factor)
{
    return factor != 0 ? factor : 1;
}

static frit_node *build_head(frit_build *b, frit_node *x)
{
    const frit_weights *weights = b->weights;
    if (frit_has(&weights->mlm_dense)) {
        x = frit_activate(b->g, frit_linear(b, &weights->mlm_dense, x), b->hp->act);
        x = frit_norm(b, &weights->mlm_norm, x);
    }
    x = frit_linear(b, &weights->lm_head, x);
    x = frit_scale(b->g, x, or_one(b->hp->logit_scale));
    return frit_softcap(b->g, x, b->hp->logit_softcap);
}

// Adds learned position embeddings, which end at the trained context.
static frit_node *add_positions(frit_build *b, frit_node *x)
{
    frit_node *table = frit_weight_node(b->g, b->weights->pos_embd.w);
    return frit_add(b->g, x, frit_embed(b->g, table, b->positions));
}

static frit_status check_positions(const frit_hparams *hp, const frit_weights *weights)
{
    const frit_tensor *table = weights->pos_embd.w ? weights->pos_embd.w : weights->dec_pos.w;
    if (!table || hp->n_ctx <= table->shape[0]) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "a context of %d tokens is requested, but the model has learned %lld positions",
                     (int)hp->n_ctx, (long long)table->shape[0]);
}

static frit_node *build_embedding(frit_build *b)
{
    const frit_weights *weights = b->weights;
    frit_node *x = frit_embed(b->g, frit_weight_node(b->g, weights->tok_embd.w), b->tokens);
    if (weights->tok_embd.scale) x = frit_scale(b->g, x, *(const float *)weights->tok_embd.scale->data);
    x = frit_adapt(b, &weights->tok_embd, b->tokens, NULL, 0, x);
    x = frit_scale(b->g, x, or_one(b->hp->embd_scale));
    if (frit_has(&weights->type_embd)) x = frit_add(b->g, x, frit_weight_node(b->g, weights->type_embd.w));
    if (frit_has(&weights->pos_embd)) x = add_positions(b, x);
    if (frit_has(&weights->tok_norm) || b->arch->norm_embedding) x = frit_norm(b, &weights->tok_norm, x);
    return b->embedding = x;
}

bool frit_arch_reads_media(const frit_arch *arch, const frit_hparams *hp)
{
    return arch->reads_media && !hp->is_next;
}

// Rows may stand for pictures. Then they bring features in place of their embedding, features that are added to the
// results of the first layers, and with M-RoPE their rotation. Other rows bring zeros to be added. Where rows of a
// picture see each other, rows bring the end of the positions that they see.
static frit_node *place_media(frit_build *b, frit_node *x)
{
    const int64_t n = b->hp->n_embd, n_all = frit_feature_width(b->hp);
    const int64_t n_turns = frit_has_rope_axes(b->hp) ? b->hp->rope.dim : 0;
    frit_node *given = frit_given_node(b->g, frit_soft_row_width(b->hp));
    if (b->hp->media.seeing != FRIT_SEEING_NONE) b->ends = given;
    b->ends_at = (int32_t)(1 + n_all + n_turns);
    if (n_turns > 0) b->turns = frit_slice(b->g, given, 1 + n_all, n_turns);
    if (n_all > n) b->deep = frit_slice(b->g, given, 1 + n, n_all - n);
    return b->embedding = frit_place_rows(b->g, x, frit_slice(b->g, given, 0, 1 + n));
}

bool frit_arch_has_logits(const frit_arch *arch, const frit_weights *weights)
{
    return !arch->is_encoder || frit_has(&weights->mlm_dense);
}

bool frit_arch_can_begin_later(const frit_arch *arch, const frit_hparams *hp)
{
    if (arch->begin || arch->end || arch->is_encoder || arch->is_encoder_decoder || hp->is_next) return false;
    if (hp->res_bank_interval != 0 || hp->recurrent.value_rank > 0) return false;
    for (int32_t i = 0; i < hp->n_layer; i++)
        if (hp->layers[i].shares_kv || hp->layers[i].has_index) return false;
    return true;
}

frit_status frit_arch_build(frit_graph *g, const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights,
                            const frit_build_options *options)
{
    frit_build b = {.g = g, .arch = arch, .hp = hp, .weights = weights, .attn_temp = hp->attn_temp_scale != 0};
    const int32_t n_enc = arch->is_encoder_decoder ? hp->n_layer_enc : 0;
    const bool encodes = n_enc > 0 && options && options->encode;
    const int32_t first = options ? options->first_layer : 0;
    if (options) b.adapters = options->adapters;
    b.encodes = encodes;
    FRIT_TRY(check_positions(hp, weights));
    b.tokens = frit_input_node(g, FRIT_INPUT_TOKENS);
    b.positions = frit_input_node(g, FRIT_INPUT_POSITIONS);
    frit_node *x = build_embedding(&b);
    if (options && options->media) x = place_media(&b, x);
    if (hp->is_next) x = frit_next_input(&b, x);
    b.written = frit_arena_new(g->arena, frit_node *, (size_t)hp->n_layer);
    if (!b.written) return frit_fail_memory((size_t)hp->n_layer * sizeof *b.written, "a graph");
    if (arch->begin) x = arch->begin(&b, x);
    if (first > 0) x = frit_given_node(g, hp->n_embd);
    for (b.i_layer = encodes ? 0 : n_enc + first; b.i_layer < (encodes ? n_enc : hp->n_layer); b.i_layer++) {
        b.lhp = &hp->layers[b.i_layer];
        b.n_state = 0;
        g->depth = b.i_layer;
        x = arch->layer(&b, &weights->layers[b.i_layer], x);
        if (x && b.n_state != b.lhp->n_state)
            return frit_fail(FRIT_E_INVALID, "%s: layer %d has a state of %d numbers, expected %d", arch->name,
                             (int)b.i_layer, (int)b.n_state, (int)b.lhp->n_state);
        if (b.deep && b.i_layer < hp->media.n_deep)
            x = frit_add(g, x, frit_slice(g, b.deep, b.i_layer * (int64_t)hp->n_embd, hp->n_embd));
        if (b.adapters && b.adapters->steers) x = frit_steer(g, x, b.i_layer);
    }
    g->depth = b.i_layer;
    if (arch->end) x = arch->end(&b, x);
    if (encodes && frit_has(&weights->enc_norm)) x = frit_norm(&b, &weights->enc_norm, x);
    if (encodes) x = arch->write_source(&b, x);
    const bool is_residual = options && options->is_residual, keeps = options && options->keeps_hidden;
    const bool norms = !arch->no_out_norm && !encodes && !is_residual;
    if (norms && keeps) x = frit_norm(&b, &weights->out_norm, x);
    if (keeps) frit_graph_add_result(g, x);
    x = frit_take_rows(g, x, frit_input_node(g, FRIT_INPUT_OUT_ROWS));
    if (norms && !keeps) x = frit_norm(&b, &weights->out_norm, x);
    if (frit_has(&weights->out_proj)) x = frit_linear(&b, &weights->out_proj, x);
    const bool has_head = !encodes && frit_arch_has_logits(arch, weights);
    g->output = !has_head || (options && options->hidden) ? x : build_head(&b, x);
    return frit_graph_check(g);
}
