// SPDX-License-Identifier: MIT
// arch/golden.h: the list of reference models with the logits that others computed for them.
#pragma once
#include "support/support.h"

typedef struct golden {
    char *path;   // of the model
    int32_t *tokens;
    float *logits;   // [n_tokens, n_vocab]
    size_t n_tokens, n_vocab;
    frit_output output;   // kind of the reference's result for each token
    int32_t *source;      // source text of an encoder-decoder, whose decoder reads `tokens`; NULL: another kind of
                          // model
    size_t n_source;
} golden;

enum {
    GOLDEN_AT_ONCE = 1,   // every token sees all others, so the whole text must run at once
    GOLDEN_LONG = 2,      // the reference ran with a context of 256
    GOLDEN_HIDDEN = 4,    // an encoder: the reference gives hidden states
    GOLDEN_MORE = 8,      // the reference lies in hf-more or arch-more, not in hf or arch
    GOLDEN_MORE_ENCODER = GOLDEN_MORE | GOLDEN_AT_ONCE | GOLDEN_HIDDEN,
};

typedef struct golden_row {
    const char *name;
    unsigned flags;
} golden_row;

// Hugging Face folders with golden.json and golden.f32, and GGUF files with .logits.
static const golden_row golden_folders[] = {
    {"llama", 0},
    {"llama-rope3", 0},
    {"llama-linear-rope", 0},
    {"llama-yarn", 0},
    {"llama-bias-tied", 0},
    {"mistral", 0},
    {"qwen2", 0},
    {"qwen2-tied", 0},
    {"qwen3", 0},
    {"gemma", 0},
    {"apertus", 0},
    {"arcee", 0},
    {"bloom", 0},
    {"cohere", 0},
    {"cohere2", 0},
    {"deepseek_v2", 0},
    {"deepseek_v3", 0},
    {"dots1", 0},
    {"ernie4_5", 0},
    {"ernie4_5_moe", 0},
    {"falcon-mq", 0},
    {"falcon-new", 0},
    {"gemma2", 0},
    {"gemma3_text", 0},
    {"gemma3n_text", 0},
    {"gemma4_text", 0},
    {"glm", 0},
    {"glm4", 0},
    {"glm4_moe", 0},
    {"gpt2", 0},
    {"gpt_bigcode", 0},
    {"gpt_neox", 0},
    {"gpt_neox-seq", 0},
    {"gpt_oss", 0},
    {"gptj", 0},
    {"granite", 0},
    {"granitemoe", 0},
    {"hunyuan_v1_dense", 0},
    {"hunyuan_v1_moe", 0},
    {"mixtral", 0},
    {"mpt", 0},
    {"nemotron", 0},
    {"olmo", 0},
    {"olmo2", 0},
    {"olmo3", 0},
    {"olmoe", 0},
    {"phi", 0},
    {"phi3", 0},
    {"phi3-longrope", 0},
    {"phimoe", 0},
    {"qwen2_moe", 0},
    {"qwen3_moe", 0},
    {"seed_oss", 0},
    {"smollm3", 0},
    {"stablelm", 0},
    {"stablelm-par", 0},
    {"starcoder2", 0},
    {"qwen3_next", 0},
    {"qwen3_5_text", 0},
    {"nemotron_h", 0},
    {"mamba2", 0},
    {"mamba", 0},
    {"rwkv", 0},
    {"lfm2_moe", 0},
    {"lfm2", 0},
    {"minimax", 0},
    {"granitemoehybrid", 0},
    {"jamba", 0},
    {"falcon_h1", 0},
    {"bamba", 0},
    {"qwen3_5_moe_text", GOLDEN_MORE},
    {"qwen3_5_moe", GOLDEN_MORE},
    {"deepseek_v32", GOLDEN_MORE},
    {"glm_moe_dsa", GOLDEN_MORE},
    {"glm4_moe_lite", GOLDEN_MORE},
    {"minimax_m2", GOLDEN_MORE},
    {"ministral3", GOLDEN_MORE},
    {"mistral4", GOLDEN_MORE},
    {"llama4_text", GOLDEN_MORE},
    {"exaone4", GOLDEN_MORE},
    {"gemma4_unified_text", GOLDEN_MORE},
    {"gemma4_unified", GOLDEN_MORE},
    {"hy_v3", GOLDEN_MORE},
    {"kimi_linear", GOLDEN_MORE},
    {"bailing_hybrid", GOLDEN_MORE},
    {"granitemoeshared", GOLDEN_MORE},
    {"nemotron_h-moe", GOLDEN_MORE},
    {"nemotron_h-latent", GOLDEN_MORE},
    {"nemotron_h-published", GOLDEN_MORE},
    {"solar_open", GOLDEN_MORE},
    {"falcon_mamba", GOLDEN_MORE},
    {"qwen2_5_vl", GOLDEN_MORE},
    {"qwen2_vl", GOLDEN_MORE},
    {"qwen3_vl", GOLDEN_MORE},
    {"qwen3_vl_moe", GOLDEN_MORE},
    {"glm4v", GOLDEN_MORE},
    {"glm4v_moe", GOLDEN_MORE},
    {"cwm", GOLDEN_MORE},
    {"helium", GOLDEN_MORE},
    {"hyperclovax", GOLDEN_MORE},
    {"gpt_neo", GOLDEN_MORE},
    {"codegen", GOLDEN_MORE},
    {"deepseek_v4", GOLDEN_MORE},
    {"minimax_m3_vl", GOLDEN_MORE},
    {"olmo_hybrid", GOLDEN_MORE},
    {"recurrent_gemma", GOLDEN_MORE},
    {"opt", GOLDEN_MORE},
    {"lfm3", GOLDEN_MORE},
    {"nanochat", GOLDEN_MORE},
    {"modernbert-decoder", GOLDEN_MORE},
    {"afmoe", GOLDEN_MORE},
    {"exaone_moe", GOLDEN_MORE},
    {"laguna", GOLDEN_MORE},
    {"step3p7", GOLDEN_MORE},
    {"mimo_v2_flash", GOLDEN_MORE},
    {"muse_glimmer", GOLDEN_MORE},
    {"cohere2_moe", GOLDEN_MORE},
    {"granite_swa", GOLDEN_MORE},
    {"granitemoe_swa", GOLDEN_MORE},
    {"bitnet", GOLDEN_MORE},
    {"qwen3_5", GOLDEN_MORE},
    {"gemma3", GOLDEN_MORE},
    {"gemma4", GOLDEN_MORE},
    {"mistral3", GOLDEN_MORE},
    {"llava", GOLDEN_MORE},
    {"t5", 0},
    {"t5-gated", 0},
    {"umt5", GOLDEN_MORE},
    {"mt5", GOLDEN_MORE},
    {"bart", GOLDEN_MORE},
    {"marian", GOLDEN_MORE},
    {"mbart", GOLDEN_MORE},
    {"m2m_100", GOLDEN_MORE},
    {"pegasus", GOLDEN_MORE},
    {"bert", GOLDEN_AT_ONCE | GOLDEN_HIDDEN},
    {"xlm-roberta", GOLDEN_AT_ONCE | GOLDEN_HIDDEN},
    {"modernbert", GOLDEN_AT_ONCE | GOLDEN_HIDDEN},
    {"eurobert", GOLDEN_AT_ONCE | GOLDEN_HIDDEN},
    {"nomic_bert", GOLDEN_MORE_ENCODER},
    {"gte", GOLDEN_MORE_ENCODER},
    {"jina_embeddings_v3", GOLDEN_MORE_ENCODER},
    {"mpnet", GOLDEN_MORE_ENCODER},
    {"distilbert", GOLDEN_MORE_ENCODER},
    {"electra", GOLDEN_MORE_ENCODER},
    {"albert", GOLDEN_MORE_ENCODER},
    {"camembert", GOLDEN_MORE_ENCODER},
    {"deberta-v2", GOLDEN_MORE_ENCODER},
    {"gemma3_text-embedding", GOLDEN_MORE_ENCODER},
    {"embedding_gemma2", GOLDEN_MORE_ENCODER},
    {"bert-splade", GOLDEN_MORE | GOLDEN_AT_ONCE},
    {"modernbert-mlm", GOLDEN_MORE | GOLDEN_AT_ONCE},
};
static const golden_row golden_files[] = {
    {"afmoe-moe", GOLDEN_MORE},
    {"exaone-moe-moe", GOLDEN_MORE},
    {"laguna-moe", GOLDEN_MORE},
    {"laguna-m1-moe", GOLDEN_MORE},
    {"step35-moe", GOLDEN_MORE},
    {"mimo2-moe", GOLDEN_MORE},
    {"muse-glimmer-dense", GOLDEN_MORE},
    {"cohere2moe-moe", GOLDEN_MORE},
    {"deepseek2-ocr-moe", GOLDEN_MORE},
    {"deepseek4-moe", GOLDEN_MORE | GOLDEN_LONG},
    {"minimax-m3-moe", GOLDEN_MORE},
    {"granite_swa-dense", GOLDEN_MORE},
    {"granite_swa-moe", GOLDEN_MORE},
    {"plamo3-dense", GOLDEN_MORE},
    {"plm-dense", GOLDEN_MORE},
    {"bitnet-dense", GOLDEN_MORE},
    {"rwkv6", GOLDEN_MORE},
    {"rwkv6qwen2", GOLDEN_MORE},
    {"rwkv7", GOLDEN_MORE},
    {"arwkv7", GOLDEN_MORE},
    {"arcee-dense", 0},
    {"arctic-moe", 0},
    {"baichuan-dense", 0},
    {"bailingmoe-moe", 0},
    {"bailingmoe2-moe", 0},
    {"bloom-dense", 0},
    {"chatglm-dense", 0},
    {"codeshell-dense", 0},
    {"cogvlm-dense", 0},
    {"command-r-dense", 0},
    {"dbrx-moe", 0},
    {"deci-dense", 0},
    {"deepseek-moe", 0},
    {"deepseek2-moe", 0},
    {"deepseek32-moe", 0},
    {"dots1-moe", 0},
    {"dream-dense", GOLDEN_AT_ONCE},
    {"ernie4_5-moe", 0},
    {"ernie4_5-moe-moe", 0},
    {"exaone-dense", 0},
    {"exaone4-dense", 0},
    {"falcon-dense", 0},
    {"gemma-dense", 0},
    {"gemma2-dense", 0},
    {"glm4-dense", 0},
    {"glm4moe-moe", 0},
    {"glm-dsa-moe", 0},
    {"gpt-oss-moe", 0},
    {"gpt2-dense", 0},
    {"gptneox-dense", 0},
    {"granite-dense", 0},
    {"granite-moe", 0},
    {"granitemoe-dense", 0},
    {"granitemoe-moe", 0},
    {"grok-moe", 0},
    {"grovemoe-moe", 0},
    {"hunyuan-dense-dense", 0},
    {"hunyuan-moe-moe", 0},
    {"hunyuan_vl-dense", 0},
    {"hy_v3-moe", 0},
    {"internlm2-dense", 0},
    {"jais-dense", 0},
    {"jais2-dense", 0},
    {"llada-dense", GOLDEN_AT_ONCE},
    {"llada-moe-moe", GOLDEN_AT_ONCE},
    {"llama-dense", 0},
    {"llama-moe", 0},
    {"llama4-moe", 0},
    {"maincoder-dense", 0},
    {"minicpm-dense", 0},
    {"minicpm-moe", 0},
    {"minicpm3-dense", GOLDEN_LONG},
    {"minimax-m2-moe", 0},
    {"mistral3-dense", 0},
    {"mistral3-moe", 0},
    {"mistral4-moe", 0},
    {"mpt-dense", 0},
    {"nanbeige-dense", 0},
    {"nemotron-dense", 0},
    {"olmo-dense", 0},
    {"olmoe-moe", 0},
    {"openelm-dense", 0},
    {"orion-dense", 0},
    {"paddleocr-moe", 0},
    {"pangu-embedded-dense", 0},
    {"phi2-dense", 0},
    {"phi3-dense", GOLDEN_LONG},
    {"phimoe-moe", GOLDEN_LONG},
    {"plamo-dense", 0},
    {"qwen-dense", 0},
    {"qwen2-dense", 0},
    {"qwen2moe-moe", 0},
    {"qwen2vl-dense", 0},
    {"qwen3-dense", 0},
    {"qwen3moe-moe", 0},
    {"qwen3vl-dense", 0},
    {"qwen3vlmoe-moe", 0},
    {"refact-dense", 0},
    {"refact-moe", 0},
    {"rnd1-moe", GOLDEN_AT_ONCE},
    {"seed_oss-dense", 0},
    {"smallthinker-moe", 0},
    {"smollm3-dense", 0},
    {"stablelm-dense", 0},
    {"starcoder-dense", 0},
    {"starcoder2-dense", 0},
    {"talkie-dense", 0},
    {"xverse-dense", 0},
    {"qwen35moe-moe", 0},
    {"qwen35-dense", 0},
    {"qwen3next-moe", 0},
    {"plamo2-dense", 0},
    {"nemotron_h_moe-dense", 0},
    {"nemotron_h-dense", 0},
    {"minimax-01-moe", 0},
    {"mamba2-dense", 0},
    {"mamba-dense", 0},
    {"lfm2moe-moe", 0},
    {"lfm2-dense", 0},
    {"kimi-linear-moe", 0},
    {"kimi-k3-moe", 0},
    {"jamba-dense", 0},
    {"granitehybrid-dense", 0},
    {"falcon-h1-dense", 0},
    {"bailingmoe3-moe", 0},
    {"nomic-bert", GOLDEN_MORE_ENCODER},
    {"nomic-bert-moe", GOLDEN_MORE_ENCODER},
    {"jina-bert-v2", GOLDEN_MORE_ENCODER},
    {"jina-bert-v2-code", GOLDEN_MORE_ENCODER},
    {"jina-bert-v3", GOLDEN_MORE_ENCODER},
    {"neo-bert", GOLDEN_MORE_ENCODER},
    {"gemma-embedding", GOLDEN_MORE_ENCODER},
    {"llama-embed", GOLDEN_MORE_ENCODER},
};
enum { N_GOLDEN_FOLDERS = FRIT_COUNT(golden_folders), N_GOLDENS = N_GOLDEN_FOLDERS + FRIT_COUNT(golden_files) };

static inline const golden_row *golden_get(size_t i)
{
    return i < N_GOLDEN_FOLDERS ? &golden_folders[i] : &golden_files[i - N_GOLDEN_FOLDERS];
}

static inline frit_output golden_output(const golden_row *row)
{
    return row->flags & GOLDEN_HIDDEN ? FRIT_OUTPUT_EMBEDDINGS : FRIT_OUTPUT_ALL;
}

static inline const char *golden_name(size_t i)
{
    return golden_get(i)->name;
}

// The folder of the reference data in which a golden lies.
static inline const char *golden_set(size_t i)
{
    const bool is_more = golden_get(i)->flags & GOLDEN_MORE;
    if (i < N_GOLDEN_FOLDERS) return is_more ? "goldens/hf-more" : "goldens/hf";
    return is_more ? "goldens/arch-more" : "goldens/arch";
}

// Where ../shared is absent, only some are here.
static inline bool golden_is_here(size_t i)
{
    return shared_has(i < N_GOLDEN_FOLDERS ? "%s/%s" : "%s/%s.gguf", golden_set(i), golden_name(i));
}

// The numbers of NAME: [407, 86, ...]. NULL if it is not there.
static inline int32_t *golden_read_ids(const char *json, const char *name, size_t *n)
{
    const char *p = strstr(json, name);
    *n = 0;
    if (!p) return NULL;
    int32_t *ids = calloc(strlen(p), sizeof *ids);
    for (p += strlen(name); *p != ']'; p += *p == ',' ? 2 : 0) {
        char *end;
        long id = strtol(p, &end, 10);
        if (end == p) fail_msg("golden.json: expected a number at '%.20s'", p);
        ids[(*n)++] = (int32_t)id;
        p = end;
    }
    return ids;
}

static inline void golden_load_folder(golden *g, const char *set, const char *name)
{
    g->path = strdup(shared_path("%s/%s", set, name));
    size_t n_bytes;
    char *json = read_file(shared_path("%s/%s/golden.json", set, name), &n_bytes);
    g->source = golden_read_ids(json, "\"ids\": [", &g->n_source);
    g->tokens = golden_read_ids(json, "\"decoder_ids\": [", &g->n_tokens);
    if (!g->tokens) {
        g->tokens = g->source;
        g->n_tokens = g->n_source;
        g->source = NULL;
    }
    free(json);
    g->logits = (float *)(void *)read_file(shared_path("%s/%s/golden.f32", set, name), &n_bytes);
    g->n_vocab = n_bytes / sizeof(float) / g->n_tokens;
}

static inline void golden_load_file(golden *g, const char *set, const char *name)
{
    g->path = strdup(shared_path("%s/%s.gguf", set, name));
    size_t n_bytes;
    char *bytes = read_file(shared_path("%s/%s.logits", set, name), &n_bytes);
    int32_t head[2];
    memcpy(head, bytes, sizeof head);
    g->n_tokens = (size_t)head[0];
    g->n_vocab = (size_t)head[1];
    size_t n_ids = g->n_tokens * sizeof *g->tokens, n_logits = g->n_tokens * g->n_vocab * sizeof *g->logits;
    assert_int_equal(n_bytes, sizeof head + n_ids + n_logits);
    g->tokens = malloc(n_ids);
    g->logits = malloc(n_logits);
    memcpy(g->tokens, bytes + sizeof head, n_ids);
    memcpy(g->logits, bytes + sizeof head + n_ids, n_logits);
    free(bytes);
}

// Skips the running test where the reference data is absent.
static inline golden golden_load(size_t i)
{
    golden g = {.output = golden_output(golden_get(i))};
    if (i < N_GOLDEN_FOLDERS)
        golden_load_folder(&g, golden_set(i), golden_name(i));
    else
        golden_load_file(&g, golden_set(i), golden_name(i));
    assert_true(g.n_tokens > 0 && g.n_vocab > 0);
    return g;
}

static inline void golden_free(golden *g)
{
    free(g->path);
    free(g->tokens);
    free(g->source);
    free(g->logits);
}
