// SPDX-License-Identifier: MIT
// nanochat. Heads are rotated the other way round than elsewhere, which is the usual rotation of heads whose halves
// change places.
#include "format/hf/hf_rows.h"
#include "format/rows.h"

// Row i of the order in which the halves of each head of *dim rows change places.
static int64_t swapped_row(const void *dim, int64_t i)
{
    const int64_t n = *(const int64_t *)dim;
    return i % n < n / 2 ? i + n / 2 : i - n / 2;
}

static frit_status swap_halves(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    int64_t *dim = frit_arena_new(&hf->ckpt->arena, int64_t, 1);
    if (!dim) return frit_fail_memory(sizeof *dim, tensor->name);
    *dim = (int64_t)frit_hf_written(hf, "attention.key_length");
    if (*dim % 2 != 0 || tensor->shape[0] % *dim != 0)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld rows, expected a multiple of %lld, an even head size",
                         tensor->name, (long long)tensor->shape[0], (long long)*dim);
    if (is_bias) return frit_reorder_numbers(&hf->ckpt->arena, tensor, swapped_row, dim, tensor->shape[0]);
    return frit_reorder(&hf->ckpt->arena, tensor, swapped_row, dim, tensor->shape[0], 0);
}

// clang-format off
static const frit_hf_key nanochat_keys[] = {
    {"final_logit_softcapping", "final_logit_softcapping", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};

#define AT "model.layers.*"
static const frit_hf_tensor nanochat_tensors[] = {
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.gguf = "blk.*.attn_norm", .none = true},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.gguf = "output_norm", .none = true},
    {.name = AT ".self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "attention_bias", .rewrite = swap_halves},
    {.name = AT ".self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "attention_bias", .rewrite = swap_halves},
    {.name = AT ".self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "attention_bias"},
    {.name = AT ".self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = AT ".mlp.fc1", .gguf = "blk.*.ffn_up"},
    {.name = AT ".mlp.fc2", .gguf = "blk.*.ffn_down"},
};
// clang-format on

const frit_hf_family frit_hf_nanochat = {
    .model_type = "nanochat",
    .class_name = "NanoChatForCausalLM",
    .arch = "nanochat",
    .act = "relu2",
    .shared = &frit_hf_decoder,
    .own = {nanochat_keys, FRIT_COUNT(nanochat_keys), nanochat_tensors, FRIT_COUNT(nanochat_tensors)},
};
