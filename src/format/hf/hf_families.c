// SPDX-License-Identifier: MIT
// The model families of Hugging Face folders, and the names that they share.
#include "format/hf/hf.h"

// clang-format off
#define FAMILIES(X) \
    X(albert) \
    X(apertus) \
    X(afmoe) \
    X(arcee) \
    X(bailing_hybrid) \
    X(bamba) \
    X(bart) \
    X(bert_alibi) \
    X(bert) \
    X(bitnet) \
    X(bloom) \
    X(camembert) \
    X(codegen) \
    X(cohere) \
    X(cohere2) \
    X(cohere2_moe) \
    X(cwm) \
    X(deberta_v2) \
    X(deepseek_v2) \
    X(deepseek_v3) \
    X(deepseek_v32) \
    X(deepseek_v4) \
    X(distilbert) \
    X(dots1) \
    X(electra) \
    X(embedding_gemma2_text) \
    X(ernie4_5) \
    X(ernie4_5_moe) \
    X(eurobert) \
    X(exaone) \
    X(exaone4) \
    X(exaone_moe) \
    X(falcon) \
    X(falcon_h1) \
    X(falcon_mamba) \
    X(gemma) \
    X(gemma2) \
    X(gemma3_embedding) \
    X(gemma3_text) \
    X(gemma3n_text) \
    X(gemma4_text) \
    X(gemma4_unified_text) \
    X(glm) \
    X(glm4) \
    X(glm4_moe) \
    X(glm4_moe_lite) \
    X(glm4v_moe_text) \
    X(glm4v_text) \
    X(glm_moe_dsa) \
    X(gpt2) \
    X(gpt_bigcode) \
    X(gpt_neo) \
    X(gpt_neox) \
    X(gpt_oss) \
    X(gpt_sw3) \
    X(gptj) \
    X(granite) \
    X(granite_swa) \
    X(granitemoe) \
    X(granitemoe_swa) \
    X(granitemoehybrid) \
    X(granitemoehybrid_dense) \
    X(granitemoeshared) \
    X(gte) \
    X(gte_new) \
    X(helium) \
    X(hunyuan_v1_dense) \
    X(hunyuan_v1_moe) \
    X(hy_v3) \
    X(hyperclovax) \
    X(internlm3) \
    X(iquestcoder) \
    X(jamba) \
    X(jina_embeddings_v3) \
    X(kimi_linear) \
    X(laguna) \
    X(lfm2) \
    X(lfm2_moe) \
    X(lfm3) \
    X(llama) \
    X(llama4_text) \
    X(llama_bidirec) \
    X(m2m_100) \
    X(mamba) \
    X(mamba2) \
    X(marian) \
    X(mbart) \
    X(mimo) \
    X(mimo_v2_flash) \
    X(minimax) \
    X(minimax_m2) \
    X(minimax_m3_vl_text) \
    X(ministral3) \
    X(mistral) \
    X(mistral4) \
    X(mixtral) \
    X(model2vec) \
    X(modernbert) \
    X(modernbert_decoder) \
    X(mpnet) \
    X(mpt) \
    X(mt5_encoder) \
    X(mt5) \
    X(muse_glimmer_text) \
    X(nanochat) \
    X(nemotron) \
    X(nemotron_h_moe) \
    X(nemotron_h) \
    X(neobert) \
    X(nomic_bert_moe) \
    X(nomic_bert) \
    X(olmo) \
    X(olmo2) \
    X(olmo3) \
    X(olmo_hybrid) \
    X(olmoe) \
    X(opt_after) \
    X(opt) \
    X(pegasus) \
    X(phi) \
    X(phi3) \
    X(phimoe) \
    X(qwen2) \
    X(qwen2_5_vl) \
    X(qwen2_5_vl_text) \
    X(qwen2_moe) \
    X(qwen2_vl) \
    X(qwen2_vl_text) \
    X(qwen3) \
    X(qwen3_5_moe_text) \
    X(qwen3_5_text) \
    X(qwen3_moe) \
    X(qwen3_next) \
    X(qwen3_vl_moe_text) \
    X(qwen3_vl_text) \
    X(recurrent_gemma) \
    X(roberta) \
    X(rwkv) \
    X(sarvam_mla) \
    X(sarvam_moe) \
    X(seed_oss) \
    X(smollm3) \
    X(solar_open) \
    X(stablelm) \
    X(starcoder2) \
    X(step3p5) \
    X(t5_encoder) \
    X(t5) \
    X(umt5_encoder) \
    X(umt5) \
    X(xlm_roberta_flash) \
    X(xlm_roberta)
// clang-format on

// clang-format off
#define VISIONS(X) \
    X(gemma3_vision) \
    X(gemma4_vision) \
    X(idefics3_vision) \
    X(internvl_vision) \
    X(lfm2_vl_vision) \
    X(llama4_vision) \
    X(llava_next_vision) \
    X(llava_onevision_vision) \
    X(llava_vision) \
    X(mistral3_vision) \
    X(qwen2_5_vl_vision) \
    X(qwen2_vl_vision) \
    X(qwen3_5_moe_vision) \
    X(qwen3_5_vision) \
    X(qwen3_vl_moe_vision) \
    X(qwen3_vl_vision) \
    X(smolvlm_vision)
// clang-format on

#define DECLARE(name) extern const frit_hf_family frit_hf_##name;
FAMILIES(DECLARE)
VISIONS(DECLARE)
#undef DECLARE

const frit_hf_family *frit_hf_family_get(size_t i)
{
    static const frit_hf_family *const families[] = {
#define ROW(name) &frit_hf_##name,
        FAMILIES(ROW)
#undef ROW
    };
    return i < FRIT_COUNT(families) ? families[i] : NULL;
}

const frit_hf_family *frit_hf_vision_get(size_t i)
{
    static const frit_hf_family *const families[] = {
#define ROW(name) &frit_hf_##name,
        VISIONS(ROW)
#undef ROW
    };
    return i < FRIT_COUNT(families) ? families[i] : NULL;
}

// clang-format off
static const frit_hf_key keys[] = {
    // config.json              GGUF                                kind             if absent        if null
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED},
    {"head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {"head_dim", "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor tensors[] = {
    {.name = "model.embed_tokens",                      .gguf = "token_embd"},
    {.name = "model.layers.*.input_layernorm",          .gguf = "blk.*.attn_norm"},
    {.name = "model.layers.*.self_attn.q_proj",         .gguf = "blk.*.attn_q"},
    {.name = "model.layers.*.self_attn.k_proj",         .gguf = "blk.*.attn_k"},
    {.name = "model.layers.*.self_attn.v_proj",         .gguf = "blk.*.attn_v"},
    {.name = "model.layers.*.self_attn.o_proj",         .gguf = "blk.*.attn_output"},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm"},
    {.name = "model.layers.*.mlp.gate_proj",            .gguf = "blk.*.ffn_gate"},
    {.name = "model.layers.*.mlp.up_proj",              .gguf = "blk.*.ffn_up"},
    {.name = "model.layers.*.mlp.down_proj",            .gguf = "blk.*.ffn_down"},
    {.name = "model.norm",                              .gguf = "output_norm"},
    {.name = "lm_head",                                 .gguf = "output", .may_be_tied = true},
};
// clang-format on

const frit_hf_names frit_hf_no_names = {NULL, 0, NULL, 0};
const frit_hf_names frit_hf_decoder = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)};

const frit_hf_key *frit_hf_key_get(const frit_hf_family *family, size_t i)
{
    const frit_hf_names *shared = family->shared, *own = &family->own;
    if (i < shared->n_keys) {
        for (size_t k = 0; k < own->n_keys; k++)
            if (strcmp(own->keys[k].key, shared->keys[i].key) == 0) return &own->keys[k];
        return &shared->keys[i];
    }
    // Rows of the family that replace no shared row follow the shared ones, in order.
    i -= shared->n_keys;
    for (size_t k = 0; k < own->n_keys; k++) {
        bool replaces = false;
        for (size_t s = 0; s < shared->n_keys; s++) replaces |= strcmp(own->keys[k].key, shared->keys[s].key) == 0;
        if (!replaces && i-- == 0) return &own->keys[k];
    }
    return NULL;
}

const frit_hf_tensor *frit_hf_tensor_get(const frit_hf_family *family, size_t i)
{
    const frit_hf_names *shared = family->shared, *own = &family->own;
    if (i < shared->n_tensors) {
        for (size_t k = 0; k < own->n_tensors; k++)
            if (strcmp(own->tensors[k].gguf, shared->tensors[i].gguf) == 0) return &own->tensors[k];
        return &shared->tensors[i];
    }
    i -= shared->n_tensors;
    for (size_t k = 0; k < own->n_tensors; k++) {
        bool replaces = false;
        for (size_t s = 0; s < shared->n_tensors; s++)
            replaces |= strcmp(own->tensors[k].gguf, shared->tensors[s].gguf) == 0;
        for (size_t e = 0; e < k; e++)   // an alternative name for a row that an earlier row replaces
            replaces = replaces && strcmp(own->tensors[k].gguf, own->tensors[e].gguf) != 0;
        if (!replaces && i-- == 0) return &own->tensors[k];
    }
    return NULL;
}
