// SPDX-License-Identifier: MIT
// The list of architectures. A new one is a file, and its name in ARCHS, in alphabetical order: X(llama) is
// frit_arch_llama.
#include "arch/arch.h"

#include "base/nearest.h"

// clang-format off
#define ARCHS(X) \
    X(afmoe) \
    X(apertus) \
    X(arcee) \
    X(arctic) \
    X(arwkv7) \
    X(baichuan) \
    X(bailingmoe) \
    X(bailingmoe2) \
    X(bailingmoe3) \
    X(bart) \
    X(bert) \
    X(bitnet) \
    X(bloom) \
    X(chatglm) \
    X(codeshell) \
    X(cogvlm) \
    X(cohere2) \
    X(cohere2moe) \
    X(command_r) \
    X(dbrx) \
    X(deberta) \
    X(deci) \
    X(deepseek) \
    X(deepseek2) \
    X(deepseek2_ocr) \
    X(deepseek32) \
    X(deepseek4) \
    X(dots1) \
    X(dream) \
    X(electra) \
    X(embedding_gemma2) \
    X(ernie4_5) \
    X(ernie4_5_moe) \
    X(eurobert) \
    X(exaone) \
    X(exaone4) \
    X(exaone_moe) \
    X(falcon) \
    X(falcon_h1) \
    X(gemma) \
    X(gemma2) \
    X(gemma3) \
    X(gemma3n) \
    X(gemma4) \
    X(gemma_embedding) \
    X(glm4) \
    X(glm4moe) \
    X(glm_dsa) \
    X(gpt2) \
    X(gpt_oss) \
    X(gptneox) \
    X(granite) \
    X(granite_swa) \
    X(granitehybrid) \
    X(granitemoe) \
    X(grok) \
    X(grovemoe) \
    X(hunyuan_dense) \
    X(hunyuan_moe) \
    X(hunyuan_vl) \
    X(hy_v3) \
    X(internlm2) \
    X(jais) \
    X(jais2) \
    X(jamba) \
    X(jina_bert_v2) \
    X(jina_bert_v3) \
    X(kimi_k3) \
    X(kimi_linear) \
    X(laguna) \
    X(lfm2) \
    X(lfm2moe) \
    X(lfm3) \
    X(llada) \
    X(llada_moe) \
    X(llama) \
    X(llama4) \
    X(llama_embed) \
    X(maincoder) \
    X(mamba) \
    X(mamba2) \
    X(mbart) \
    X(mellum) \
    X(mimo2) \
    X(minicpm) \
    X(minicpm3) \
    X(minimax_01) \
    X(minimax_m2) \
    X(minimax_m3) \
    X(mistral3) \
    X(mistral4) \
    X(modern_bert) \
    X(modernbert_decoder) \
    X(mpnet) \
    X(mpt) \
    X(muse_glimmer) \
    X(nanbeige) \
    X(nanochat) \
    X(nemotron) \
    X(nemotron_h) \
    X(nemotron_h_moe) \
    X(neo_bert) \
    X(nomic_bert) \
    X(nomic_bert_moe) \
    X(olmo) \
    X(olmo2) \
    X(olmo_hybrid) \
    X(olmoe) \
    X(openelm) \
    X(opt) \
    X(orion) \
    X(paddleocr) \
    X(pangu_embedded) \
    X(phi2) \
    X(phi3) \
    X(phimoe) \
    X(plamo) \
    X(plamo2) \
    X(plamo3) \
    X(plm) \
    X(qwen) \
    X(qwen2) \
    X(qwen2moe) \
    X(qwen2vl) \
    X(qwen3) \
    X(qwen35) \
    X(qwen35moe) \
    X(qwen3moe) \
    X(qwen3next) \
    X(qwen3vl) \
    X(qwen3vlmoe) \
    X(recurrent_gemma) \
    X(refact) \
    X(rnd1) \
    X(rwkv) \
    X(rwkv6) \
    X(rwkv6qwen2) \
    X(rwkv7) \
    X(seed_oss) \
    X(smallthinker) \
    X(smollm3) \
    X(stablelm) \
    X(starcoder) \
    X(starcoder2) \
    X(static_embedding) \
    X(step35) \
    X(t5) \
    X(t5encoder) \
    X(talkie) \
    X(xverse)
// clang-format on

#define DECLARE(name) extern const frit_arch frit_arch_##name;
ARCHS(DECLARE)
#undef DECLARE

static const frit_arch *const archs[] = {
#define ROW(name) &frit_arch_##name,
    ARCHS(ROW)
#undef ROW
};

const frit_arch *frit_arch_get(size_t i)
{
    return i < FRIT_COUNT(archs) ? archs[i] : NULL;
}

const frit_arch *frit_arch_find(const char *name)
{
    for (size_t i = 0; i < FRIT_COUNT(archs); i++) {
        if (strcmp(archs[i]->name, name) == 0) return archs[i];
    }
    return NULL;
}

enum { MAX_NAME = 48 };

static const char *known_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < FRIT_COUNT(archs) ? archs[i]->name : NULL;
}

frit_status frit_arch_of(const frit_arch **out, const frit_checkpoint *ckpt)
{
    *out = NULL;
    frit_str name = {0};
    bool found;
    frit_status got = frit_meta_get_text(&ckpt->meta, "general.architecture", &name, &found);
    if (got != FRIT_OK) return frit_fail_in(ckpt->path, got);
    if (!found) return frit_fail_file(FRIT_E_FORMAT, "%s: the metadata has no key 'general.architecture'", ckpt->path);
    char text[MAX_NAME + 1] = "";
    memcpy(text, name.ptr, name.len < MAX_NAME ? name.len : MAX_NAME);
    if (name.len <= MAX_NAME) *out = frit_arch_find(text);
    if (*out) return FRIT_OK;
    frit_buf nearest = {0};
    frit_nearest_print(&nearest, text, known_name, NULL);
    frit_status status =
        frit_fail_file(FRIT_E_UNSUPPORTED, "%s: the architecture '%s' is not supported; the nearest known ones are %s",
                       ckpt->path, text, nearest.failed ? "" : nearest.data);
    frit_buf_free(&nearest);
    return status;
}
