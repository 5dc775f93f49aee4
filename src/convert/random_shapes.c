// SPDX-License-Identifier: MIT
// The shapes of known models, from their published configurations.
#include "base/nearest.h"
#include "convert/random.h"

#include <string.h>

#define LLAMA_HEADS(n)                                                                                               \
    "context_length=131072 rope.freq_base=500000.0 attention.layer_norm_rms_epsilon=1e-5 attention.head_count_kv=8 " \
    "attention.head_count=" n " vocab_size=128256 "
#define LLAMA LLAMA_HEADS("32")

// clang-format off
static const frit_random_row shapes[] = {
    {.shape = {.name = "llama-1b", .arch = "llama", .title = "Llama 3.2 1B", .n_layers = 16},
     .keys = LLAMA "embedding_length=2048 feed_forward_length=8192 attention.key_length=64 attention.value_length=64 "
             "rope.dimension_count=64"},
    {.shape = {.name = "llama-3b", .arch = "llama", .title = "Llama 3.2 3B", .n_layers = 28},
     .keys = LLAMA_HEADS("24") "embedding_length=3072 feed_forward_length=8192 attention.key_length=128 "
             "attention.value_length=128 rope.dimension_count=128"},
    {.shape = {.name = "llama-8b", .arch = "llama", .title = "Llama 3.1 8B", .n_layers = 32},
     .keys = LLAMA "embedding_length=4096 feed_forward_length=14336 attention.key_length=128 "
             "attention.value_length=128 rope.dimension_count=128",
     .optional = "output"},
    {.shape = {.name = "llama-70b", .arch = "llama", .title = "Llama 3.1 70B", .n_layers = 80},
     .keys = LLAMA_HEADS("64") "embedding_length=8192 feed_forward_length=28672 attention.key_length=128 "
             "attention.value_length=128 rope.dimension_count=128",
     .optional = "output"},
    {.shape = {.name = "qwen3-0.6b", .arch = "qwen3", .title = "Qwen3-0.6B", .n_layers = 28},
     .keys = "context_length=40960 embedding_length=1024 feed_forward_length=3072 attention.head_count=16 "
             "attention.head_count_kv=8 attention.key_length=128 attention.value_length=128 "
             "attention.layer_norm_rms_epsilon=1e-6 rope.freq_base=1e6 vocab_size=151936"},
    {.shape = {.name = "qwen3-30b-a3b", .arch = "qwen3moe", .title = "Qwen3-30B-A3B: experts", .n_layers = 48},
     .keys = "context_length=40960 embedding_length=2048 feed_forward_length=6144 attention.head_count=32 "
             "attention.head_count_kv=4 attention.key_length=128 attention.value_length=128 "
             "attention.layer_norm_rms_epsilon=1e-6 rope.freq_base=1e6 vocab_size=151936 expert_count=128 "
             "expert_used_count=8 expert_feed_forward_length=768",
     .optional = "output"},
    // Queries are not compressed. llama.cpp expects compressed queries (DeepSeek-V2) unless a file has 26 or 27 layers.
    {.shape = {.name = "deepseek-v2-lite", .arch = "deepseek2", .title = "DeepSeek-V2-Lite: latent attention, experts", .n_layers = 27},
     .keys = "context_length=163840 embedding_length=2048 feed_forward_length=10944 attention.head_count=16 "
             "attention.head_count_kv=1 attention.key_length=576 attention.value_length=512 "
             "attention.key_length_mla=192 attention.value_length_mla=128 attention.kv_lora_rank=512 "
             "rope.dimension_count=64 rope.freq_base=10000.0 attention.layer_norm_rms_epsilon=1e-6 vocab_size=102400 "
             "leading_dense_block_count=1 expert_count=64 expert_used_count=6 expert_shared_count=2 "
             "expert_feed_forward_length=1408 expert_weights_scale=1.0 expert_weights_norm=false expert_gating_func=1",
     .optional = "output attn_k_b attn_v_b",
     .keys_cut = "attention.q_lora_rank=1536",
     .optional_whole = "attn_q"},
    {.shape = {.name = "qwen3-next-80b-a3b", .arch = "qwen3next", .title = "Qwen3-Next-80B-A3B: gated delta nets, attention, experts", .n_layers = 48},
     .keys = "context_length=262144 embedding_length=2048 feed_forward_length=5120 attention.head_count=16 "
             "attention.head_count_kv=2 attention.key_length=256 attention.value_length=256 "
             "attention.layer_norm_rms_epsilon=1e-6 rope.dimension_count=64 rope.freq_base=1e7 vocab_size=151936 "
             "expert_count=512 expert_used_count=10 expert_feed_forward_length=512 "
             "expert_shared_feed_forward_length=512 ssm.conv_kernel=4 ssm.inner_size=4096 ssm.state_size=128 "
             "ssm.time_step_rank=32 ssm.group_count=16",
     .optional = "output attn_qkv attn_gate"},
    {.shape = {.name = "mamba2-2.7b", .arch = "mamba2", .title = "Mamba 2 2.7B: recurrent layers only", .n_layers = 64},
     .keys = "context_length=1048576 embedding_length=2560 feed_forward_length=0 attention.head_count=0 "
             "attention.layer_norm_rms_epsilon=1e-5 vocab_size=50288 ssm.conv_kernel=4 ssm.inner_size=5120 "
             "ssm.state_size=128 ssm.time_step_rank=80 ssm.group_count=1",
     .optional = "ssm_conv1d.bias ssm_norm"},
};
// clang-format on

const frit_random_shape *frit_random_shape_get(size_t i)
{
    return i < FRIT_COUNT(shapes) ? &shapes[i].shape : NULL;
}

static const char *known_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < FRIT_COUNT(shapes) ? shapes[i].shape.name : NULL;
}

frit_status frit_random_find(const frit_random_row **out, const char *name)
{
    *out = NULL;
    if (!name) name = "";
    for (size_t i = 0; i < FRIT_COUNT(shapes) && !*out; i++)
        if (strcmp(shapes[i].shape.name, name) == 0) *out = &shapes[i];
    if (*out) return FRIT_OK;
    frit_buf nearest = {0};
    frit_nearest_print(&nearest, name, known_name, NULL);
    frit_status status = frit_fail(FRIT_E_INVALID, "unknown shape '%.60s'; the nearest are %s", name,
                                   nearest.failed ? "" : nearest.data);
    frit_buf_free(&nearest);
    return status;
}
