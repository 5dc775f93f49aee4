// SPDX-License-Identifier: MIT
// Resolves the rows of a weight list for one model: dimensions, names, required tensors. Lists all resulting tensors.
#include "arch/arch.h"

#include <stdio.h>

static int64_t resolve_recurrent(const frit_recurrent_params *r, frit_dim dim)
{
    const int64_t inner = r->inner, state = r->state, rank = r->rank;
    switch (dim) {
    case FRIT_DIM_RECURRENT_1:
        return 1;
    case FRIT_DIM_INNER:
        return inner;
    case FRIT_DIM_INNER_2:
        return 2 * inner;
    case FRIT_DIM_INNER_3:
        return 3 * inner;
    case FRIT_DIM_CHANNELS:
        return r->n_channels;
    case FRIT_DIM_TAPS:
        return (int64_t)r->n_channels * r->n_taps;
    case FRIT_DIM_INNER_TAPS:
        return inner * r->n_taps;
    case FRIT_DIM_IN_ZXS:
        return inner + r->n_channels + rank;
    case FRIT_DIM_IN_QKVZ:
        return inner + r->n_channels;
    case FRIT_DIM_STATE:
        return state;
    case FRIT_DIM_STATES:
        return inner * state;
    case FRIT_DIM_RANK:
        return rank;
    case FRIT_DIM_RANK_2:
        return 2 * rank;
    case FRIT_DIM_STEP:
        return r->step_dim;
    case FRIT_DIM_MIX:
        return r->step_dim + 2 * state;
    case FRIT_DIM_KEYS:
        return (int64_t)r->n_groups * state;
    case FRIT_DIM_HEAD_WIDTH:
    case FRIT_DIM_DELTA_HEAD:
        return rank > 0 ? inner / rank : 0;
    default:
        return 0;
    }
}

// Dimensions of hyper-connections, and of attention to blocks.
static int64_t resolve_blocks(const frit_hparams *hp, const frit_layer_hparams *lhp, frit_dim dim)
{
    const int64_t n = hp->n_hyper, index = lhp->has_index ? hp->index.dim : 0;
    const int64_t block = lhp->block, head = block > 0 ? lhp->k_dim : 0, n_parts = lhp->has_index ? 2 : 1;
    switch (dim) {
    case FRIT_DIM_HYPER:
        return n;
    case FRIT_DIM_HYPER_MIX:
        return (2 + n) * n;
    case FRIT_DIM_HYPER_IN:
        return n * hp->n_embd;
    case FRIT_DIM_HYPER_PARTS:
        return n > 0 ? 3 : 0;
    case FRIT_DIM_BLOCK_HEAD:
        return head;
    case FRIT_DIM_COMPRESSED:
        return n_parts * head;
    case FRIT_DIM_COMPRESSED_BLOCK:
        return block * n_parts * head;
    case FRIT_DIM_INDEX_HEAD:
        return index;
    case FRIT_DIM_INDEX_COMPRESSED:
        return 2 * index;
    case FRIT_DIM_INDEX_COMPRESSED_BLOCK:
        return block * 2 * index;
    case FRIT_DIM_O_GROUPS:
        return hp->o_groups;
    case FRIT_DIM_O_GROUP:
        return hp->o_groups > 0 ? lhp->n_head * (int64_t)lhp->v_dim / hp->o_groups : 0;
    case FRIT_DIM_O_RANK:
        return hp->o_rank;
    case FRIT_DIM_O_RANKS:
        return (int64_t)hp->o_groups * hp->o_rank;
    case FRIT_DIM_N_EXPERT_USED:
        return hp->n_expert_used;
    default:
        return 0;
    }
}

// Dimensions that few architectures have.
static int64_t resolve_rare(const frit_hparams *hp, const frit_layer_hparams *lhp, frit_dim dim)
{
    const int64_t n_lerps = hp->recurrent.gate_rank > 0 ? 6 : 5;
    switch (dim) {
    case FRIT_DIM_EXPERT_IN:
        return hp->n_expert_latent > 0 ? hp->n_expert_latent : hp->n_embd;
    case FRIT_DIM_SHARED:
        return (int64_t)hp->recurrent.n_groups * hp->recurrent.head_dim;
    case FRIT_DIM_N_LERPS:
        return n_lerps;
    case FRIT_DIM_LERPS:
        return n_lerps * hp->n_embd;
    case FRIT_DIM_MIX_RANK:
        return hp->recurrent.mix_rank;
    case FRIT_DIM_MIX_RANKS:
        return n_lerps * hp->recurrent.mix_rank;
    case FRIT_DIM_DECAY_RANK:
        return hp->recurrent.decay_rank;
    case FRIT_DIM_RATE_RANK:
        return hp->recurrent.rate_rank;
    case FRIT_DIM_VALUE_RANK:   // the first layer has unused matrices of another size
        return lhp == hp->layers ? hp->recurrent.rate_rank : hp->recurrent.value_rank;
    case FRIT_DIM_GATE_RANK:
        return hp->recurrent.gate_rank;
    case FRIT_DIM_ROPE_PAIRS_SWA:
        return hp->rope_swa.dim / 2;
    case FRIT_DIM_GATE:
        return lhp->n_head * (int64_t)(hp->gates_elements ? lhp->v_dim : 1);
    case FRIT_DIM_LATENT:
        return hp->n_expert_latent;
    case FRIT_DIM_EMBD_IN:
        return hp->n_embd_in > 0 ? hp->n_embd_in : hp->n_embd;
    case FRIT_DIM_PLACES:
        return (int64_t)hp->media.side * hp->media.side;
    case FRIT_DIM_PLACES_1:
        return (int64_t)hp->media.side * hp->media.side + 1;
    case FRIT_DIM_SIDES:
        return 2 * (int64_t)hp->media.side;
    case FRIT_DIM_MERGED:
        return (int64_t)hp->n_embd * hp->media.merge * hp->media.merge;
    case FRIT_DIM_PROJECTOR:
        return hp->media.n_projector;
    case FRIT_DIM_DEEP:
        return lhp - hp->layers < hp->media.n_deep ? (int64_t)hp->n_embd * hp->media.merge * hp->media.merge : 0;
    case FRIT_DIM_EMBD_OUT:
        return frit_hidden_width(hp);
    case FRIT_DIM_INDEX_HEADS:
        return hp->index.n_head;
    case FRIT_DIM_INDEX:
        return hp->index.dim;
    case FRIT_DIM_N_INDEX_Q:
        return (int64_t)hp->index.n_head * hp->index.dim;
    case FRIT_DIM_LAYER_EMBD:
        return hp->n_embd_layer;
    case FRIT_DIM_LAYERS_EMBD:
        return (int64_t)hp->n_embd_layer * hp->n_layer;
    case FRIT_DIM_LAYER_NORM:
        return hp->n_embd_layer > 0 ? hp->n_embd : 0;
    case FRIT_DIM_RES_BANK:
        return hp->res_bank_interval > 0;
    case FRIT_DIM_ALTUP:
        return hp->n_altup;
    case FRIT_DIM_ALTUP_REST:
        return hp->n_altup - 1;
    case FRIT_DIM_ALTUP_SQUARE:
        return (int64_t)hp->n_altup * hp->n_altup;
    case FRIT_DIM_LAUREL:
        return hp->laurel_rank;
    default:
        return resolve_blocks(hp, lhp, dim);
    }
}

int64_t frit_dim_size(const frit_hparams *hp, const frit_layer_hparams *lhp, frit_dim dim)
{
    const int64_t n_head = lhp->n_head, n_head_kv = lhp->n_head_kv;
    if (dim >= FRIT_DIM_RECURRENT_1) return lhp->is_recurrent ? resolve_recurrent(&hp->recurrent, dim) : 0;
    switch (dim) {
    case FRIT_DIM_1:
        return 1;
    case FRIT_DIM_N_VOCAB:
        return hp->n_vocab;
    case FRIT_DIM_N_EMBD:
        return hp->n_embd;
    case FRIT_DIM_N_CTX:
        return hp->n_ctx_train;
    case FRIT_DIM_N_FF:
        return lhp->n_ff;
    case FRIT_DIM_N_FF_2:
        return 2 * (int64_t)lhp->n_ff;
    case FRIT_DIM_N_FF_EXP:
        return hp->n_ff_exp;
    case FRIT_DIM_N_FF_EXP_2:
        return 2 * (int64_t)hp->n_ff_exp;
    case FRIT_DIM_N_FF_SHEXP:
        return hp->n_ff_shexp;
    case FRIT_DIM_N_FF_SHEXP_2:
        return 2 * (int64_t)hp->n_ff_shexp;
    case FRIT_DIM_N_FF_CHUNK:
        return hp->n_ff_chunk_exp;
    case FRIT_DIM_N_EXPERT:
        return hp->n_expert;
    case FRIT_DIM_N_CHUNK_EXPERT:
        return hp->n_expert / (hp->expert_group_size > 0 ? hp->expert_group_size : 1);
    case FRIT_DIM_N_HEAD:
        return n_head;
    case FRIT_DIM_Q_RANK:
        return n_head > 0 ? hp->q_rank : 0;
    case FRIT_DIM_KV_RANK:
        return n_head > 0 ? hp->kv_rank : 0;
    case FRIT_DIM_KV_A:
        return n_head > 0 ? (int64_t)hp->kv_rank + hp->rope.dim : 0;
    case FRIT_DIM_N_KV_B:
        return n_head * ((int64_t)hp->k_dim_mla - hp->rope.dim + hp->v_dim_mla);
    case FRIT_DIM_N_Q_MLA:
        return n_head * hp->k_dim_mla;
    case FRIT_DIM_N_O_MLA:
        return n_head * hp->v_dim_mla;
    case FRIT_DIM_NOPE_MLA:
        return (int64_t)hp->k_dim_mla - hp->rope.dim;
    case FRIT_DIM_V_MLA:
        return hp->v_dim_mla;
    case FRIT_DIM_N_Q:
        return n_head * lhp->k_dim;
    case FRIT_DIM_N_Q_2:
        return 2 * n_head * lhp->k_dim;
    case FRIT_DIM_N_K:
        return n_head_kv * lhp->k_dim;
    case FRIT_DIM_N_V:
        return n_head_kv * lhp->v_dim;
    case FRIT_DIM_N_O:
        return n_head * lhp->v_dim;
    case FRIT_DIM_N_QKV:
        return (n_head + n_head_kv) * lhp->k_dim + n_head_kv * lhp->v_dim;
    case FRIT_DIM_N_EMBD_2:
        return 2 * (int64_t)hp->n_embd;
    case FRIT_DIM_N_EMBD_3:
        return 3 * (int64_t)hp->n_embd;
    case FRIT_DIM_HEAD:
        return n_head > 0 ? lhp->k_dim : 0;
    case FRIT_DIM_N_BUCKETS:
        return hp->rel_buckets;
    case FRIT_DIM_ROPE_PAIRS:
        return hp->rope.dim / 2;
    default:
        return resolve_rare(hp, lhp, dim);
    }
}

bool frit_weight_may_be_absent(const frit_weight_row *row, const frit_hparams *hp, int32_t i_layer)
{
    const frit_layer_hparams *lhp = &hp->layers[i_layer];
    if (row->flags & (FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_OR_TOK_EMBD)) return true;
    if (row->flags & FRIT_WEIGHT_OWN_INDEX) return !lhp->has_index;
    if (row->flags & FRIT_WEIGHT_OWN_KV) return lhp->shares_kv;
    return row->flags & (lhp->has_experts ? FRIT_WEIGHT_DENSE : FRIT_WEIGHT_EXPERT);
}

void frit_weight_name(const frit_weight_row *row, const frit_hparams *hp, int32_t i_layer, char base[96],
                      char name[128])
{
    if (row->flags & FRIT_WEIGHT_ENC)
        snprintf(base, 96, "enc.blk.%d.%s", (int)i_layer, row->name);
    else if (row->flags & FRIT_WEIGHT_DEC)
        snprintf(base, 96, "dec.blk.%d.%s", (int)(i_layer - hp->n_layer_enc), row->name);
    else if (row->flags & FRIT_WEIGHT_LAYER)
        snprintf(base, 96, "blk.%d.%s", (int)i_layer, row->name);
    else
        snprintf(base, 96, "%s", row->name);
    snprintf(name, 128, row->flags & FRIT_WEIGHT_WHOLE_NAME ? "%s" : "%s.weight", base);
}

// ------------------------------------------------------------------------------- all tensors

static void set_shape(frit_listed_tensor *tensor, int64_t a, int64_t b, int64_t c)
{
    const int64_t dims[3] = {a, b, c};
    tensor->n_dims = c > 0 ? 3 : b > 0 ? 2 : 1;
    for (int i = 0; i < FRIT_MAX_DIMS; i++) tensor->shape[i] = i < tensor->n_dims ? dims[i] : 1;
}

// The number of values in the file of a vector whose values are repeated: one for each head, or one.
static int64_t count_spread(const frit_listed_tensor *tensor, const frit_hparams *hp)
{
    const frit_dim out = tensor->row->out;
    if (out == FRIT_DIM_INNER) return hp->recurrent.rank;
    return out == FRIT_DIM_N_Q ? hp->layers[tensor->i_layer].n_head : 1;
}

// Sets the dimensions that files give a vector.
static void shape_vector(frit_listed_tensor *tensor, const frit_hparams *hp, int64_t n)
{
    const frit_recurrent_params *r = &hp->recurrent;
    const frit_layer_hparams *lhp = &hp->layers[tensor->i_layer];
    const bool is_spread = tensor->row->flags & FRIT_WEIGHT_SPREAD;
    const frit_dim out = tensor->row->out;
    if (is_spread) n = count_spread(tensor, hp);
    set_shape(tensor, n, is_spread && n > 1 ? 1 : 0, 0);
    if (!(tensor->row->flags & FRIT_WEIGHT_FLAT) || is_spread) return;
    if (out == FRIT_DIM_N_EMBD) set_shape(tensor, 1, 1, n);
    if (out == FRIT_DIM_LERPS) {
        tensor->n_dims = FRIT_MAX_DIMS;
        tensor->shape[0] = n / hp->n_embd;
        tensor->shape[FRIT_MAX_DIMS - 1] = hp->n_embd;
    }
    if (out == FRIT_DIM_COMPRESSED_BLOCK || out == FRIT_DIM_INDEX_COMPRESSED_BLOCK)
        set_shape(tensor, lhp->block, n / lhp->block, 0);
    if (out == FRIT_DIM_TAPS) set_shape(tensor, n / r->n_taps, r->n_taps, 0);
    if (out == FRIT_DIM_INNER_TAPS) set_shape(tensor, n / r->n_taps, 1, r->n_taps);
    if (out == FRIT_DIM_STATES) set_shape(tensor, n / r->state, r->state, 0);
    if (out == FRIT_DIM_RANK) set_shape(tensor, n, 1, 0);
    if (out == FRIT_DIM_INNER && r->n_groups > 0) set_shape(tensor, r->n_groups, n / r->n_groups, 0);
    if (out == FRIT_DIM_N_Q) set_shape(tensor, lhp->n_head, lhp->k_dim, 0);
    if (out == FRIT_DIM_N_K) set_shape(tensor, lhp->n_head_kv, lhp->k_dim, 0);
}

// True if this is the first required row of a field; the field's other rows are alternative forms.
static bool is_taken(const frit_arch *arch, const frit_hparams *hp, size_t i_row, int32_t i_layer)
{
    const frit_weight_row *row = &arch->rows[i_row];
    const unsigned owner = FRIT_WEIGHT_LAYER | FRIT_WEIGHT_ENC | FRIT_WEIGHT_DEC;
    for (size_t i = 0; i < i_row; i++) {
        const frit_weight_row *other = &arch->rows[i];
        if (other->offset == row->offset && (other->flags & owner) == (row->flags & owner) &&
            frit_dim_size(hp, &hp->layers[i_layer], other->out) > 0 && !frit_weight_may_be_absent(other, hp, i_layer))
            return true;
    }
    return false;
}

static frit_status list_one(const frit_arch *arch, const frit_hparams *hp, size_t i_row, int32_t i_layer,
                            frit_listed_fn fn, void *ctx)
{
    const frit_weight_row *row = &arch->rows[i_row];
    const frit_layer_hparams *lhp = &hp->layers[i_layer];
    const bool is_stack = row->flags & FRIT_WEIGHT_STACK;
    const int64_t out = frit_dim_size(hp, lhp, row->out), in = frit_dim_size(hp, lhp, row->in);
    const int64_t n = is_stack ? frit_dim_size(hp, lhp, row->n) : 1;
    if (row->flags & FRIT_WEIGHT_IF_FITS) return FRIT_OK;   // the other form is listed
    if (n < 1 || out < 1 || in < 1 || is_taken(arch, hp, i_row, i_layer)) return FRIT_OK;
    char base[96];
    frit_listed_tensor tensor = {
        .row = row, .i_layer = i_layer, .may_be_absent = frit_weight_may_be_absent(row, hp, i_layer)};
    frit_weight_name(row, hp, i_layer, base, tensor.name);
    if (is_stack)
        set_shape(&tensor, n, out, in);
    else if (row->in == FRIT_DIM_1)
        shape_vector(&tensor, hp, out);
    else if (out == 1)
        set_shape(&tensor, in, 0, 0);
    else
        set_shape(&tensor, out, in, 0);
    return fn(ctx, &tensor);
}

frit_status frit_arch_list(const frit_arch *arch, const frit_hparams *hp, frit_listed_fn fn, void *ctx)
{
    for (int32_t layer = -1; layer < hp->n_layer; layer++) {   // -1: tensors outside layers
        for (size_t i = 0; i < arch->n_rows; i++) {
            const unsigned flags = arch->rows[i].flags;
            const bool is_encoders = layer < hp->n_layer_enc;
            if ((flags & FRIT_WEIGHT_LAYER) == 0 ? layer >= 0 : layer < 0) continue;
            if (flags & FRIT_WEIGHT_ENC && !is_encoders) continue;
            if (flags & FRIT_WEIGHT_DEC && is_encoders) continue;
            FRIT_TRY(list_one(arch, hp, i, layer < 0 ? 0 : layer, fn, ctx));
        }
    }
    return FRIT_OK;
}
