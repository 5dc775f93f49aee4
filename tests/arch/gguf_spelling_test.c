// SPDX-License-Identifier: MIT
// GGUF files in the form of other writers, made from reference files: other names, separate experts, encoders beside
// the text model, four dimensions everywhere, missing keys. Their logits must equal those of the original file.
#include "format/gguf.h"
#include "format/rows.h"
#include "frit.h"
#include "support/support.h"

#include <jansson.h>

enum { MAX_CHANGES = 6 };

typedef struct change {
    const char *from, *to;   // `to` NULL: leaves it out
} change;

typedef struct respelling {
    const char *file;        // of goldens/arch
    const char *from, *to;   // architecture names
    change keys[MAX_CHANGES], tensors[MAX_CHANGES];
    bool has_encoders, splits_experts, has_ones;
} respelling;

// clang-format off
static const respelling files[] = {
    {.file = "gpt-oss-moe", .from = "gpt-oss", .to = "gptoss",
     .keys = {{"gpt-oss.expert_feed_forward_length", NULL}},
     .tensors = {{".attn_output.", ".attn_out."}, {".attn_sinks.weight", ".attn_sinks"}, {".post_attention_norm.", ".ffn_norm."}}},
    {.file = "qwen2vl-dense", .from = "qwen2vl", .to = "qwen25vl", .has_encoders = true,
     .keys = {{"qwen2vl.rope.dimension_sections", "qwen25vl.rope.mrope_section"}}},
    {.file = "lfm2-dense", .from = "lfm2", .to = "lfm2", .tensors = {{"token_embd_norm.weight", "output_norm.weight"}}},
    {.file = "qwen35-dense", .from = "qwen35", .to = "qwen35", .has_encoders = true, .tensors = {{".ssm_dt.bias", ".ssm_dt"}}},
    {.file = "qwen35moe-moe", .from = "qwen35moe", .to = "qwen35moe", .has_encoders = true, .tensors = {{".ssm_dt.bias", ".ssm_dt"}}},
    {.file = "qwen3next-moe", .from = "qwen3next", .to = "qwen3next", .tensors = {{".ssm_dt.bias", ".ssm_dt"}}},
    {.file = "mistral3-dense", .from = "mistral3", .to = "mistral3", .has_encoders = true,
     .keys = {{"mistral3.rope.scaling.yarn_beta_fast", "mistral3.rope.scaling.beta_fast"},
              {"mistral3.rope.scaling.yarn_beta_slow", "mistral3.rope.scaling.beta_slow"},
              {"mistral3.rope.scaling.yarn_log_multiplier", "mistral3.rope.scaling.mscale_all_dim"},
              {"mistral3.attention.temperature_scale", "mistral3.rope.scaling_beta"}}},
    {.file = "llama-dense", .from = "llama", .to = "llama", .has_encoders = true},
    {.file = "llama-moe", .from = "llama", .to = "llama", .splits_experts = true},
    {.file = "qwen2moe-moe", .from = "qwen2moe", .to = "qwen2moe",
     .keys = {{"qwen2moe.expert_feed_forward_length", NULL}, {"qwen2moe.expert_shared_feed_forward_length", NULL}}},
    {.file = "grok-moe", .from = "grok", .to = "grok", .keys = {{"grok.expert_feed_forward_length", NULL}}},
    {.file = "llama-dense", .from = "llama", .to = "llama", .has_ones = true},
    {.file = "llama-moe", .from = "llama", .to = "llama", .has_ones = true},
    {.file = "gpt2-dense", .from = "gpt2", .to = "gpt2", .has_ones = true},
    {.file = "qwen35-dense", .from = "qwen35", .to = "qwen35", .has_ones = true},
    {.file = "mamba-dense", .from = "mamba", .to = "mamba", .has_ones = true},
    {.file = "gpt-oss-moe", .from = "gpt-oss", .to = "gpt-oss", .has_ones = true},
};
// clang-format on

static const char *rename_key(frit_arena *arena, const respelling *r, frit_str key)
{
    char text[300];
    snprintf(text, sizeof text, "%.*s", (int)key.len, key.ptr);
    for (size_t i = 0; i < MAX_CHANGES && r->keys[i].from; i++)
        if (strcmp(text, r->keys[i].from) == 0)
            return r->keys[i].to ? frit_arena_text(arena, r->keys[i].to, strlen(r->keys[i].to)) : NULL;
    const size_t n = strlen(r->from);
    char other[400];
    if (strncmp(text, r->from, n) == 0 && text[n] == '.')
        snprintf(other, sizeof other, "%s%s", r->to, text + n);
    else
        snprintf(other, sizeof other, "%s", text);
    return frit_arena_text(arena, other, strlen(other));
}

static const char *rename_tensor(frit_arena *arena, const respelling *r, const char *name)
{
    for (size_t i = 0; i < MAX_CHANGES && r->tensors[i].from; i++) {
        const char *at = strstr(name, r->tensors[i].from);
        if (!at) continue;
        char text[200];
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - name), name, r->tensors[i].to,
                 at + strlen(r->tensors[i].from));
        return frit_arena_text(arena, text, strlen(text));
    }
    return name;
}

typedef struct written {
    frit_arena arena;
    frit_meta meta;
    frit_tensor tensors[400];
    size_t n;
} written;

static void add_tensor(written *w, const char *name, const frit_tensor *like)
{
    frit_tensor *tensor = &w->tensors[w->n++];
    assert_true(w->n <= FRIT_COUNT(w->tensors));
    *tensor = *like;
    tensor->name = frit_arena_text(&w->arena, name, strlen(name));
}

// Adds the experts one by one: "blk.0.ffn_up_exps.weight" becomes "blk.0.ffn_up.3.weight", the last expert first.
static void add_experts(written *w, const frit_tensor *stack, const char *at)
{
    for (int64_t i = stack->shape[0] - 1; i >= 0; i--) {
        char name[160];
        frit_tensor part = frit_tensor_cut(stack, i, 1);
        snprintf(name, sizeof name, "%.*s.%d.weight", (int)(at - stack->name), stack->name, (int)i);
        part.n_dims = 2;
        for (int d = 0; d < 3; d++) part.shape[d] = part.shape[d + 1];
        add_tensor(w, name, &part);
    }
}

static void add_ones(frit_tensor *tensor)
{
    const int n = FRIT_MAX_DIMS - tensor->n_dims;
    for (int d = FRIT_MAX_DIMS - 1; d >= 0; d--) tensor->shape[d] = d >= n ? tensor->shape[d - n] : 1;
    tensor->n_dims = FRIT_MAX_DIMS;
}

static void respell(const respelling *r, const char *source, const char *target)
{
    static const float zeros[64];
    static const char *const encoders[] = {"v.patch_embedding.weight", "v.blk.0.attn_q.weight",
                                           "mm.input_projection.weight", "a.conv1.weight", "mtp.fc.weight"};
    written *w = calloc(1, sizeof *w);
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, source, NULL));
    frit_meta_init(&w->meta, &w->arena);
    for (size_t i = 0; i < ckpt->meta.n; i++) {
        const frit_pair *pair = &ckpt->meta.pairs[i];
        if (frit_str_is(pair->key, "general.architecture")) {
            assert_ok(frit_meta_add_text(&w->meta, "general.architecture", r->to));
            continue;
        }
        const char *key = rename_key(&w->arena, r, pair->key);
        if (key) assert_ok(frit_meta_add(&w->meta, frit_str_of(key), pair->value));
    }
    const frit_tensor other = {
        .dtype = FRIT_DTYPE_F32, .n_dims = 2, .shape = {8, 8, 1, 1}, .data = zeros, .n_bytes = sizeof zeros};
    for (size_t i = 0; i < FRIT_COUNT(encoders) && r->has_encoders; i++) add_tensor(w, encoders[i], &other);
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_tensor *tensor = &ckpt->tensors[i];
        const char *at = strstr(tensor->name, "_exps.weight");
        if (r->splits_experts && at)
            add_experts(w, tensor, at);
        else
            add_tensor(w, rename_tensor(&w->arena, r, tensor->name), tensor);
        if (r->has_ones) add_ones(&w->tensors[w->n - 1]);
    }
    assert_ok(frit_gguf_write_contents(&(frit_gguf_contents){&w->meta, w->tensors, w->n, NULL, NULL}, target));
    frit_meta_deinit(&w->meta);
    frit_arena_free(&w->arena);
    frit_checkpoint_close(ckpt);
    free(w);
}

// ------------------------------------------------------------------------------------- logits

enum { N_TOKENS = 20 };

static char warnings[600];

static void note(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    if (level == FRIT_LOG_WARNING) snprintf(warnings, sizeof warnings, "%s", sentence);
}

// Returns the logits [n, n_vocab], malloc'd.
static float *logits_of(const char *path, const frit_token *ids, size_t n, const char *type, size_t *n_vocab)
{
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_model_info info;
    const frit_engine_options options = {
        .n_ctx = 64, .n_threads = 1, .cpu = "reference", .cache_type_k = "f32", .cache_type_v = "f32"};
    warnings[0] = 0;
    assert_ok(frit_model_open(&model, path, &(frit_model_options){.type = type, .log = note}));
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_model_get_info(model, &info));
    *n_vocab = (size_t)info.n_vocab;
    float *logits = malloc(n * *n_vocab * sizeof *logits);
    for (size_t i = 0; i < n; i++) {
        int32_t n_rows;
        assert_ok(frit_session_push(session, &ids[i], 1, NULL));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
        memcpy(logits + i * *n_vocab, frit_session_logits(session), *n_vocab * sizeof *logits);
    }
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return logits;
}

static void expect_same_logits(const char *a, const char *b, const char *type)
{
    frit_token ids[N_TOKENS];
    size_t n_a, n_b;
    for (int i = 0; i < N_TOKENS; i++) ids[i] = 7 * i % 100 + 1;
    float *x = logits_of(a, ids, N_TOKENS, type, &n_a), *y = logits_of(b, ids, N_TOKENS, type, &n_b);
    assert_int_equal(n_a, n_b);
    if (memcmp(x, y, N_TOKENS * n_a * sizeof *x) != 0) fail_msg("%s and %s have other logits", a, b);
    free(x);
    free(y);
}

static void files_of_other_writers_have_the_same_logits(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; i < FRIT_COUNT(files); i++) {
        if (!shared_has("goldens/arch/%s.gguf", files[i].file)) continue;
        char source[600], target[600];
        snprintf(source, sizeof source, "%s", shared_path("goldens/arch/%s.gguf", files[i].file));
        snprintf(target, sizeof target, "%s", temp_path("respelled.gguf"));
        respell(&files[i], source, target);
        print_message("%s as %s\n", files[i].file, files[i].to);
        expect_same_logits(source, target, NULL);
        if (files[i].has_encoders) assert_non_null(strstr(warnings, "5 tensors that do not belong to the text model"));
        if (files[i].splits_experts || files[i].has_ones) expect_same_logits(source, target, "q8_0");
        n++;
    }
    if (n == 0 && shared_least(2) < 2) skip_because("the reference data ../shared/goldens/arch is not here");
    assert_int_equal(n, FRIT_COUNT(files));
}

// ------------------------------------------------------------------------------------- reported files

static void reported_files_have_the_logits_of_their_twins(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"09-rope-scale_linear/old-key-2.gguf", "09-rope-scale_linear/new-keys-2.gguf"},
        {"13-mixtral-with-split-experts/split.gguf", "13-mixtral-with-split-experts/fused.gguf"},
    };
    char a[600], b[600];
    for (size_t i = 0; i < FRIT_COUNT(pairs); i++) {
        snprintf(a, sizeof a, "%s", shared_path("bugs/%s", pairs[i][0]));
        snprintf(b, sizeof b, "%s", shared_path("bugs/%s", pairs[i][1]));
        expect_same_logits(a, b, NULL);
    }
    size_t n_vocab;
    const frit_token id = 1;
    free(
        logits_of(shared_path("bugs/18-tensors-with-trailing-dimensions-of-1/four-dims.gguf"), &id, 1, NULL, &n_vocab));
    free(
        logits_of(shared_path("bugs/07-ollama-blob-with-vision-tensors/text-and-vision.gguf"), &id, 1, NULL, &n_vocab));
    assert_non_null(
        strstr(warnings, "3 tensors that do not belong to the text model, such as 'v.patch_embedding.weight'"));
}

// ------------------------------------------------------------------------------------- defaults

// Compares files that llama.cpp's converter made from folders with the logits of transformers.
static void text_models_of_the_converter_are_exact(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;   // tokens to compare; 0: all. The attention temperature of this folder rises earlier than in its
                    // files
    } rows[] = {{"llama4", 15},  {"mistral3", 0}, {"qwen2_5_vl", 0}, {"qwen2_audio", 0},
                {"qwen2_vl", 0}, {"qwen3_vl", 0}, {"voxtral", 0}};
    shared_path("goldens/media/%s/golden.json", rows[0].name);   // skips the test before anything is allocated
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *golden = json_load_file(shared_path("goldens/media/%s/golden.json", rows[i].name), 0, NULL);
        const json_t *first = json_array_get(json_object_get(golden, "cases"), 0), *ids = json_object_get(first, "ids");
        const json_t *array =
            json_object_get(json_object_get(golden, "arrays"), json_string_value(json_object_get(first, "logits")));
        assert_string_equal(json_string_value(json_object_get(first, "name")), "none");
        const size_t n_ids = json_array_size(ids), n = rows[i].n ? rows[i].n : n_ids,
                     offset = (size_t)json_integer_value(json_object_get(array, "offset"));
        frit_token tokens[128];
        size_t n_vocab, n_bytes;
        assert_in_range(n, 1, FRIT_COUNT(tokens));
        for (size_t k = 0; k < n; k++) tokens[k] = (frit_token)json_integer_value(json_array_get(ids, k));
        char *all = read_file(shared_path("goldens/media/%s/golden.f32", rows[i].name), &n_bytes);
        float *logits =
            logits_of(shared_path("goldens/media-gguf/%s.text.gguf", rows[i].name), tokens, n, NULL, &n_vocab);
        assert_true(offset + n * n_vocab * sizeof *logits <= n_bytes);
        const double error = nmse(logits, (const float *)(const void *)(all + offset), n * n_vocab);
        print_message("%-12s %.1e\n", rows[i].name, error);
        if (!(error < 1e-10)) fail_msg("%s: NMSE %g", rows[i].name, error);
        free(logits);
        free(all);
        json_decref(golden);
    }
}

// Keys that a writer left out, and the defaults of llama.cpp for them.
static void absent_keys_have_the_defaults_of_llama_cpp(void **state)
{
    (void)state;
    static const struct {
        const char *file, *arch, *key;
        double value;
    } rows[] = {
        {"gemma2-dense", "gemma2", "attn_logit_softcapping", 50},
        {"gemma2-dense", "gemma2", "final_logit_softcapping", 30},
        {"grok-moe", "grok", "attn_logit_softcapping", 30},
        {"llama4-moe", "llama4", "attention.sliding_window", 8192},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (!shared_has("goldens/arch/%s.gguf", rows[i].file)) continue;
        char source[600], with[600], without[600], key[100];
        snprintf(source, sizeof source, "%s", shared_path("goldens/arch/%s.gguf", rows[i].file));
        snprintf(with, sizeof with, "%s", temp_path("with.gguf"));
        snprintf(without, sizeof without, "%s", temp_path("without.gguf"));
        snprintf(key, sizeof key, "%s.%s", rows[i].arch, rows[i].key);
        respell(&(respelling){.from = rows[i].arch, .to = rows[i].arch, .keys = {{key, NULL}}}, source, without);
        frit_checkpoint *ckpt;
        assert_ok(frit_checkpoint_open(&ckpt, source, NULL));
        assert_ok(frit_meta_remove(&ckpt->meta, key));
        assert_ok(strstr(key, "sliding") ? frit_meta_add_u64(&ckpt->meta, key, (uint64_t)rows[i].value)
                                         : frit_meta_add_f64(&ckpt->meta, key, rows[i].value));
        assert_ok(frit_gguf_write(ckpt, with));
        frit_checkpoint_close(ckpt);
        print_message("%s\n", key);
        expect_same_logits(with, without, NULL);
    }
}

// ------------------------------------------------------------------------------------- refused

static void experts_that_are_missing_or_differ_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *sentence;
    } rows[] = {
        {".ffn_up.2.", ".ffn_up.9.", "'blk.0.ffn_up.9.weight' is of an expert beyond the 4 of the model"},
        {".ffn_up.2.", ".xxx_up.2.", "_exps.weight' lacks some of its 4 experts"},
    };
    const char *source = shared_path("goldens/arch/llama-moe.gguf");
    char all[600], split[600], bad[600];
    snprintf(all, sizeof all, "%s", source);
    snprintf(split, sizeof split, "%s", temp_path("split.gguf"));
    snprintf(bad, sizeof bad, "%s", temp_path("bad.gguf"));
    respell(&(respelling){.from = "llama", .to = "llama", .splits_experts = true}, all, split);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        size_t n_bytes;
        char *bytes = read_file(split, &n_bytes);
        const size_t n = strlen(rows[i].from);
        for (size_t k = 0; k + n <= n_bytes; k++)
            if (memcmp(bytes + k, rows[i].from, n) == 0) memcpy(bytes + k, rows[i].to, n);
        write_file(bad, bytes, n_bytes);
        free(bytes);
        frit_model *model;
        assert_fails(frit_model_open(&model, bad, NULL), FRIT_E_FORMAT, rows[i].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_other_writers_have_the_same_logits),
        cmocka_unit_test(reported_files_have_the_logits_of_their_twins),
        cmocka_unit_test(text_models_of_the_converter_are_exact),
        cmocka_unit_test(absent_keys_have_the_defaults_of_llama_cpp),
        cmocka_unit_test(experts_that_are_missing_or_differ_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
