// SPDX-License-Identifier: MIT
// The memory for a model of experts whose file is many times larger: conversion needs memory for a few tensors, loading
// for packed weights and some pages of the file. Each runs in a process of its own, whose largest resident set is
// measured. The weights are holes in the file, which are read like other bytes.
#include "support/support.h"

#include <frit_tools.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_LAYER = 8, N_EMBD = 512, N_EXPERT = 64, N_FF = 512, N_VOCAB = 256, N_HEAD = 8, MIB = 1 << 20 };

typedef struct header {
    FILE *file;
    long long end;
} header;

static void add(header *h, const char *name, int rows, int columns)
{
    const long long begin = h->end;
    h->end += 2LL * rows * (columns ? columns : 1);
    fprintf(h->file, "%s\"%s\":{\"dtype\":\"BF16\",\"shape\":[%d", begin ? "," : "{", name, rows);
    if (columns) fprintf(h->file, ",%d", columns);
    fprintf(h->file, "],\"data_offsets\":[%lld,%lld]}", begin, h->end);
}

static void add_layer(header *h, int layer)
{
    static const struct {
        const char *name;
        int rows, columns;
    } tensors[] = {
        {"input_layernorm", N_EMBD, 0},           {"post_attention_layernorm", N_EMBD, 0},
        {"self_attn.q_norm", N_EMBD / N_HEAD, 0}, {"self_attn.k_norm", N_EMBD / N_HEAD, 0},
        {"self_attn.q_proj", N_EMBD, N_EMBD},     {"self_attn.k_proj", N_EMBD, N_EMBD},
        {"self_attn.v_proj", N_EMBD, N_EMBD},     {"self_attn.o_proj", N_EMBD, N_EMBD},
        {"mlp.gate", N_EXPERT, N_EMBD},
    };
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    char name[128];
    for (size_t i = 0; i < FRIT_COUNT(tensors); i++) {
        snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, tensors[i].name);
        add(h, name, tensors[i].rows, tensors[i].columns);
    }
    for (int expert = 0; expert < N_EXPERT; expert++) {
        for (int i = 0; i < 3; i++) {
            snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%d.%s.weight", layer, expert, parts[i]);
            add(h, name, i < 2 ? N_FF : N_EMBD, i < 2 ? N_EMBD : N_FF);
        }
    }
}

// The weights have 820 MB, the largest tensor of the model 32 MiB.
static const char *make_folder(void)
{
    static char folder[4200];
    char path[4300];
    static const char config[] =
        "{\"model_type\":\"qwen3_moe\",\"vocab_size\":256,\"hidden_size\":512,\"num_hidden_layers\":8,"
        "\"num_attention_heads\":8,\"num_key_value_heads\":8,\"head_dim\":64,\"intermediate_size\":512,"
        "\"num_experts\":64,\"num_experts_per_tok\":4,\"moe_intermediate_size\":512,\"norm_topk_prob\":true,"
        "\"tie_word_embeddings\":false,\"max_position_embeddings\":64}";
    snprintf(folder, sizeof folder, "%s", temp_path("experts"));
    mkdir(folder, 0700);
    snprintf(path, sizeof path, "%s/config.json", folder);
    write_file(path, config, strlen(config));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    header h = {.file = fopen(path, "wb")};
    assert_non_null(h.file);
    fwrite("\0\0\0\0\0\0\0\0", 1, 8, h.file);
    add(&h, "model.embed_tokens.weight", N_VOCAB, N_EMBD);
    add(&h, "lm_head.weight", N_VOCAB, N_EMBD);
    add(&h, "model.norm.weight", N_EMBD, 0);
    for (int layer = 0; layer < N_LAYER; layer++) add_layer(&h, layer);
    fputc('}', h.file);
    while (ftell(h.file) % 8 != 0) fputc(' ', h.file);
    const long n_header = ftell(h.file) - 8;
    assert_true(h.end > 800LL * 1000 * 1000);
    rewind(h.file);
    for (int i = 0; i < 8; i++) fputc((int)((uint64_t)n_header >> 8 * i & 255), h.file);
    assert_int_equal(fclose(h.file), 0);
    assert_int_equal(truncate(path, n_header + 8 + h.end), 0);
    return folder;
}

// Returns the growth of the largest resident set of a process in MiB.
static long run_apart(bool (*act)(const char *folder, const char *type), const char *folder, const char *type)
{
    int result[2];
    long n_mib = 0;
    assert_int_equal(pipe(result), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        const bool done = act(folder, type);
        getrusage(RUSAGE_SELF, &after);
        if (!done) fprintf(stderr, "%s\n", frit_error());
        n_mib = (after.ru_maxrss - before.ru_maxrss) / 1024;
        const bool sent = write(result[1], &n_mib, sizeof n_mib) == sizeof n_mib;
        _exit(done && sent ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(result[0], &n_mib, sizeof n_mib), sizeof n_mib);
    close(result[0]);
    close(result[1]);
    return n_mib;
}

static bool convert(const char *folder, const char *type)
{
    const char *out = temp_path("converted.gguf");
    const bool done = frit_convert(folder, out, &(frit_convert_options){.type = type, .n_threads = 2}) == FRIT_OK;
    remove(out);
    return done;
}

static bool load(const char *folder, const char *type)
{
    frit_model *model;
    frit_engine *engine;
    if (frit_model_open(&model, folder, &(frit_model_options){.type = type}) != FRIT_OK) return false;
    return frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 32, .n_threads = 2}) == FRIT_OK;
}

static void experts_are_converted_in_little_memory(void **state)
{
    (void)state;
    if (IS_SANITIZED) skip_because("sanitizers use memory of their own");
    static const char *const types[] = {NULL, "q4_0"};
    const char *folder = make_folder();
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const long n_mib = run_apart(convert, folder, types[i]);
        print_message("as %s: %ld MiB\n", types[i] ? types[i] : "it is", n_mib);
        assert_true(n_mib < 160);
    }
}

static void experts_are_loaded_without_their_whole_file(void **state)
{
    (void)state;
    if (IS_SANITIZED) skip_because("sanitizers use memory of their own");
    // 0.56 bytes a weight are 220 MiB; pages of the file are dropped after each 64 MiB of packed weights.
    const long n_mib = run_apart(load, make_folder(), "q4_0");
    print_message("q4_0 while it is loaded: %ld MiB\n", n_mib);
    assert_true(n_mib < 220 + 64 * 16 / 4.5 + 60);
}

static bool write_random(const char *path, const char *shape)
{
    return frit_random_write(path, &(frit_random_options){.shape = shape, .n_layers = 12, .n_threads = 2}) == FRIT_OK;
}

static void random_weights_are_written_in_little_memory(void **state)
{
    (void)state;
    if (IS_SANITIZED) skip_because("sanitizers use memory of their own");
    const char *path = temp_path("random.gguf");
    const long n_mib = run_apart(write_random, path, "mamba2-2.7b");
    struct stat written;
    assert_int_equal(stat(path, &written), 0);
    print_message("a file of %ld MiB: %ld MiB\n", (long)(written.st_size / MIB), n_mib);
    assert_true(written.st_size / MIB > 300);
    assert_true(n_mib < 60);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_are_converted_in_little_memory),
        cmocka_unit_test(experts_are_loaded_without_their_whole_file),
        cmocka_unit_test(random_weights_are_written_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
