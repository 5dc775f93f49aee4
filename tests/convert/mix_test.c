// SPDX-License-Identifier: MIT
// Mixes: the types equal those of llama-quantize, for shapes of known models and for every small model of the goldens.
#include "convert/convert.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <dirent.h>

static frit_mix_options options_of(const frit_type_mix *mix, bool has_importance)
{
    return (frit_mix_options){
        .mix = mix, .has_importance = has_importance, .output = FRIT_DTYPE_COUNT, .table = FRIT_DTYPE_COUNT};
}

// ------------------------------------------------------------------------------------- shapes of known models

enum { MAX_LINES = 64, MAX_TENSORS = 2048 };

typedef struct shapes {
    frit_checkpoint *ckpt;
    char name[64], arch[64];
    size_t n_lines, first[MAX_LINES + 1];   // tensors of each line
    size_t n_checked;
} shapes;

static void begin_model(shapes *s, const char *line)
{
    if (s->ckpt) frit_checkpoint_close(s->ckpt);
    s->n_lines = 0;
    assert_int_equal(sscanf(line, "model %63s %63s", s->name, s->arch), 2);
    assert_ok(frit_checkpoint_new(&s->ckpt, s->name));
    assert_ok(frit_meta_add_text(&s->ckpt->meta, "general.architecture", s->arch));
}

static void add_key(const shapes *s, const char *line)
{
    char name[64], key[160];
    unsigned long long value;
    assert_int_equal(sscanf(line, "key %63s %llu", name, &value), 2);
    snprintf(key, sizeof key, "%s.%s", s->arch, name);
    assert_ok(frit_meta_add_u64(&s->ckpt->meta, key, value));
}

static void add_tensor(const shapes *s, const char *name, const int64_t *ne, int n_dims)
{
    frit_tensor tensor = {.name = frit_arena_text(&s->ckpt->arena, name, strlen(name)),
                          .dtype = FRIT_DTYPE_BF16,
                          .n_dims = n_dims,
                          .shape = {1, 1, 1, 1}};
    for (int i = 0; i < n_dims; i++) tensor.shape[i] = ne[n_dims - 1 - i];
    assert_ok(frit_checkpoint_add_tensor(s->ckpt, &tensor));
}

static void add_tensors(shapes *s, const char *line)
{
    char pattern[96], shape[96], name[128];
    long long ne[3];
    int first = -1, last = -1, at = 0;
    int64_t n_layer = 0;
    assert_int_equal(sscanf(line, "tensor %95s %95s", pattern, shape), 2);
    const int n_dims = sscanf(shape, "%lldx%lldx%lld", &ne[0], &ne[1], &ne[2]);
    const int64_t sizes[] = {ne[0], n_dims > 1 ? ne[1] : 1, n_dims > 2 ? ne[2] : 1};
    assert_true(s->n_lines < MAX_LINES);
    s->first[s->n_lines++] = s->ckpt->n_tensors;
    snprintf(name, sizeof name, "%s.block_count", s->arch);
    assert_ok(frit_meta_get_i64(&s->ckpt->meta, name, &n_layer, NULL));
    if (strncmp(pattern, "blk.*.", 6) == 0)
        first = 0, last = (int)n_layer - 1, at = 6;
    else if (sscanf(pattern, "blk.%d-%d.%n", &first, &last, &at) != 2)
        add_tensor(s, pattern, sizes, n_dims);
    for (int i = first; i >= 0 && i <= last; i++) {
        snprintf(name, sizeof name, "blk.%d.%s", i, pattern + at);
        add_tensor(s, name, sizes, n_dims);
    }
    s->first[s->n_lines] = s->ckpt->n_tensors;
}

// Checks "q6_k*4,q4_k" for tensors [first, end).
static void check_types(const shapes *s, const frit_dtype *types, size_t first, size_t end, const char *mix,
                        const char *text)
{
    while (*text) {
        char want[32];
        int n_text = 0, n_same = 1, n_count = 0;
        assert_int_equal(sscanf(text, "%31[a-z0-9_]%n", want, &n_text), 1);
        text += n_text;
        if (*text == '*') assert_int_equal(sscanf(text, "*%d%n", &n_same, &n_count), 1);
        text += n_count;
        const bool is_all = *text == 0;   // all remaining tensors
        for (; first < end && (n_same-- > 0 || is_all); first++) {
            const frit_tensor *tensor = &s->ckpt->tensors[first];
            const char *got =
                frit_dtype_get(frit_convert_is_mixed(tensor)
                                   ? frit_convert_fit(types[first], tensor->shape[tensor->n_dims - 1], true)
                                   : tensor->dtype)
                    ->name;
            if (strcmp(got, want) != 0)
                fail_msg("%s as %s: %s is %s, expected %s", s->name, mix, tensor->name, got, want);
        }
        text += *text == ',';
    }
    assert_int_equal(first, end);
}

static void check_mix(shapes *s, char *line)
{
    static frit_dtype types[MAX_TENSORS];
    char *rest = NULL, *mix = strtok_r(line + 4, " ", &rest), *row = strtok_r(NULL, " ", &rest);
    assert_non_null(frit_mix_find(mix));
    assert_true(s->ckpt->n_tensors <= MAX_TENSORS);
    if (strcmp(rest, "refused") == 0) return;   // llama-quantize has no type for such rows; frit uses f16
    for (int important = 0; important < 2; important++) {
        if (strcmp(row, "both") != 0 && strcmp(row, important ? "important" : "plain") != 0) continue;
        const frit_mix_options options = options_of(frit_mix_find(mix), important);
        char *copy = strdup(rest), *at = NULL, *text = strtok_r(copy, " ", &at);
        assert_ok(frit_mix_types(s->ckpt, &options, types));
        for (size_t i = 0; i < s->n_lines; i++, text = strtok_r(NULL, " ", &at)) {
            assert_non_null(text);
            check_types(s, types, s->first[i], s->first[i + 1], mix, text);
        }
        free(copy);
        s->n_checked++;
    }
}

static void known_models_get_the_types_of_llama_quantize(void **state)
{
    (void)state;
    shapes s = {0};
    size_t n;
    char *text = read_file(project_path("tests/goldens/quantize/mixes.txt"), &n), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "model ", 6) == 0) begin_model(&s, line);
        if (strncmp(line, "key ", 4) == 0) add_key(&s, line);
        if (strncmp(line, "tensor ", 7) == 0) add_tensors(&s, line);
        if (strncmp(line, "mix ", 4) == 0) check_mix(&s, line);
    }
    frit_checkpoint_close(s.ckpt);
    free(text);
    print_message("%zu tables of types are equal\n", s.n_checked);
    assert_in_range(s.n_checked, 13 * 2 * (FRIT_MIX_COUNT - 3), 10000);
}

// ------------------------------------------------------------------------------------- goldens

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
    return hash;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(const frit_tensor *const *)a)->name, (*(const frit_tensor *const *)b)->name);
}

// Reads lines "NAME TYPE", sorted by name.
static uint64_t hash_types(uint64_t hash, const frit_checkpoint *ckpt, const frit_dtype *types)
{
    const frit_tensor **sorted = calloc(ckpt->n_tensors, sizeof *sorted);
    for (size_t i = 0; i < ckpt->n_tensors; i++) sorted[i] = &ckpt->tensors[i];
    qsort(sorted, ckpt->n_tensors, sizeof *sorted, compare_names);
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_tensor *t = sorted[i];
        const frit_dtype type = types[t - ckpt->tensors];
        const frit_dtype got =
            frit_convert_is_mixed(t) ? frit_convert_fit(type, t->shape[t->n_dims - 1], true) : t->dtype;
        hash = hash_text(hash_text(hash_text(hash_text(hash, t->name), " "), frit_dtype_get(got)->name), "\n");
    }
    free(sorted);
    return hash;
}

// Line format: NAME HASH [mixes that llama-quantize refuses ...].
static void check_golden(const char *line)
{
    static frit_dtype types[MAX_TENSORS];
    char name[128];
    unsigned long long want;
    int at;
    uint64_t hash = UINT64_C(14695981039346656037);
    frit_checkpoint *ckpt;
    assert_int_equal(sscanf(line, "%127s %llx%n", name, &want, &at), 2);
    assert_ok(frit_checkpoint_open(&ckpt, shared_path("goldens/arch/%s.gguf", name), NULL));
    assert_true(ckpt->n_tensors <= MAX_TENSORS);
    for (int i = 0; i < 2 * FRIT_MIX_COUNT; i++) {
        const frit_mix_options options = options_of(frit_mix_get((size_t)i / 2), i % 2);
        char refused[64];
        snprintf(refused, sizeof refused, " %s%s", options.mix->name, i % 2 ? "+" : "-");
        if (strstr(line + at, refused)) continue;
        assert_ok(frit_mix_types(ckpt, &options, types));
        hash = hash_types(hash_text(hash_text(hash, refused + 1), "\n"), ckpt, types);
    }
    if (hash != want) fail_msg("%s: other types than llama-quantize's", name);
    frit_checkpoint_close(ckpt);
}

static void small_models_get_the_types_of_llama_quantize(void **state)
{
    (void)state;
    shared_path("goldens/arch");   // skips the test before anything is allocated
    size_t n, n_checked = 0;
    char *text = read_file(project_path("tests/goldens/quantize/arch.txt"), &n), *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (*line == '#') continue;
        check_golden(line);
        n_checked++;
    }
    free(text);
    assert_in_range(n_checked, 100, 1000);
}

// ------------------------------------------------------------------------------------- options

static frit_dtype type_of(const frit_checkpoint *ckpt, const frit_dtype *types, const char *name)
{
    const frit_tensor *tensor = frit_checkpoint_find(ckpt, name);
    assert_non_null(tensor);
    return types[tensor - ckpt->tensors];
}

static void a_user_may_set_types(void **state)
{
    (void)state;
    static const char *const items[] = {"attn_v=q8_0", "blk\\.[01]\\.=f16", "attn_k.weight=q5_0"};
    static const frit_option_list keep = {items, 3};
    frit_dtype types[MAX_TENSORS];
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, project_path("models/fable.gguf"), NULL));
    for (size_t i = 0; i < ckpt->n_tensors; i++)   // as if nothing were quantized
        if (frit_convert_is_matrix(&ckpt->tensors[i])) ckpt->tensors[i].dtype = FRIT_DTYPE_BF16;
    frit_mix_options options = options_of(frit_mix_find("Q4_K_M"), false);
    options.keep = &keep;
    assert_ok(frit_mix_types(ckpt, &options, types));
    assert_int_equal(type_of(ckpt, types, "blk.0.attn_v.weight"), FRIT_DTYPE_Q8_0);   // the first rule applies
    assert_int_equal(type_of(ckpt, types, "blk.1.attn_k.weight"), FRIT_DTYPE_F16);
    assert_int_equal(type_of(ckpt, types, "blk.2.attn_k.weight"), FRIT_DTYPE_Q5_0);
    assert_int_equal(type_of(ckpt, types, "blk.2.attn_q.weight"), FRIT_DTYPE_Q4_K);
    assert_int_equal(type_of(ckpt, types, "token_embd.weight"), FRIT_DTYPE_Q6_K);   // tied: it is the output
    options.output = FRIT_DTYPE_Q8_0;
    assert_ok(frit_mix_types(ckpt, &options, types));
    assert_int_equal(type_of(ckpt, types, "token_embd.weight"), FRIT_DTYPE_Q8_0);
    options.table = FRIT_DTYPE_Q5_K;
    assert_ok(frit_mix_types(ckpt, &options, types));
    assert_int_equal(type_of(ckpt, types, "token_embd.weight"), FRIT_DTYPE_Q5_K);
    options = options_of(frit_mix_find("q4_k"), false);
    options.is_pure = true;
    assert_ok(frit_mix_types(ckpt, &options, types));
    assert_int_equal(type_of(ckpt, types, "token_embd.weight"), FRIT_DTYPE_Q4_K);
    assert_int_equal(type_of(ckpt, types, "output_norm.weight"), FRIT_DTYPE_F32);
    frit_checkpoint_close(ckpt);
}

static void rules_that_say_nothing_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *error;
    } rows[] = {
        {"attn_v", "keep: 'attn_v' is not a rule, expected REGEX=TYPE"},
        {"=q8_0", "keep: '=q8_0' is not a rule"},
        {"(=q8_0", "keep: '(=q8_0': regex '('"},
        {"ffn_dwon=q8_0", "keep: 'ffn_dwon=q8_0' matches the name of no matrix that is quantized"},
        {"norm=q8_0", "keep: 'norm=q8_0' matches the name of no matrix that is quantized"},
        {"attn_v=q9", "unknown type 'q9'"},
        {"attn_v=i32", "unknown type 'i32'"},
        {"attn_(v=q8_0", "attn_(v"},
    };
    frit_dtype types[MAX_TENSORS];
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, project_path("models/fable.gguf"), NULL));
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const frit_option_list keep = {&rows[i].rule, 1};
        frit_mix_options options = options_of(frit_mix_get(0), false);
        options.keep = &keep;
        const frit_status status = frit_mix_types(ckpt, &options, types);
        assert_int_not_equal(status, FRIT_OK);
        if (!strstr(frit_error(), rows[i].error)) fail_msg("'%s', expected '%s'", frit_error(), rows[i].error);
    }
    frit_checkpoint_close(ckpt);
}

typedef struct planned {
    char down[16], others[16], table[16];
} planned;

static void look(void *ctx, const frit_planned_tensor *tensor)
{
    planned *p = ctx;
    if (tensor->n_dims < 2 || strstr(tensor->name, "norm")) return;
    char *to = strstr(tensor->name, "ffn_down") ? p->down : strstr(tensor->name, "token_embd") ? p->table : p->others;
    snprintf(to, 16, "%s", tensor->to);
}

// A float type as a mix, and one type for all, each with some matrices kept in another type; from files and folders.
static void floats_and_single_types_may_keep_some(void **state)
{
    (void)state;
    static const struct {
        const char *mix, *type, *others, *table;
    } rows[] = {
        {"f16", NULL, "f16", "q5_0"},   {"BF16", NULL, "bf16", "q5_0"}, {"f32", NULL, "f32", "q5_0"},
        {NULL, "q8_0", "q8_0", "q5_0"}, {NULL, "f16", "f16", "q5_0"},
    };
    char source[600];
    snprintf(source, sizeof source, "%s", tiny_model("floats.gguf", &(tiny_options){.times = 2}));
    const char *const sources[] = {source, shared_path("goldens/hf/qwen3")}, *const rules[] = {"ffn_down=q4_0"};
    for (size_t i = 0; i < FRIT_COUNT(rows) * 2; i++) {
        planned p = {0};
        if (!sources[i % 2]) continue;   // without reference data
        const frit_quantize_options quantize = {
            .mix = rows[i / 2].mix, .keep = {rules, 1}, .embedding_type = "q5_0", .plan = look, .plan_ctx = &p};
        const frit_convert_options options = {.type = rows[i / 2].type, .n_threads = 1, .quantize = &quantize};
        assert_ok(frit_convert(sources[i % 2], NULL, &options));
        assert_string_equal(p.down, "q4_0");
        assert_string_equal(p.others, rows[i / 2].others);
        assert_string_equal(p.table, rows[i / 2].table);
    }
}

static void count_type(void *ctx, const frit_planned_tensor *tensor)
{
    planned *p = ctx;
    if (strstr(tensor->name, "blk.0.ffn_up")) snprintf(p->others, sizeof p->others, "%s", tensor->to);
}

static void keep_sentence(void *ctx, frit_log_level level, const char *sentence)
{
    (void)level;
    if (strstr(sentence, "four bits")) snprintf(ctx, 256, "%s", sentence);
}

// Matrices in these types, or floats on their grids, are copied if the mix would take as many bytes.
static void matrices_of_four_bits_are_copied(void **state)
{
    (void)state;
    static const char *const natives[] = {"mxfp4", "q4_0"};
    char source[600], native[600], decoded[600], again[600];
    snprintf(source, sizeof source, "%s", tiny_model("floats.gguf", &(tiny_options){.times = 8}));
    for (size_t i = 0; i < FRIT_COUNT(natives) * 2; i++) {
        const char *type = natives[i / 2];
        const bool is_float = i % 2 == 1;
        planned p = {0};
        char said[256] = "";
        snprintf(native, sizeof native, "%s", temp_path("native.gguf"));
        snprintf(decoded, sizeof decoded, "%s", temp_path("decoded.gguf"));
        snprintf(again, sizeof again, "%s", temp_path("again.gguf"));
        assert_ok(frit_convert(source, native, &(frit_convert_options){.type = type, .n_threads = 1}));
        assert_ok(frit_convert(native, decoded, &(frit_convert_options){.type = "f32", .n_threads = 1}));
        const char *from = is_float ? decoded : native;
        frit_quantize_options quantize = {.mix = "q4_k_m", .plan = count_type, .plan_ctx = &p};
        frit_convert_options options = {.n_threads = 1, .quantize = &quantize, .log = keep_sentence, .log_ctx = said};
        assert_ok(frit_convert(from, NULL, &options));
        assert_string_equal(p.others, type);
        assert_non_null(strstr(said, "copied without loss"));
        quantize.plan = NULL;
        assert_ok(frit_convert(from, again, &options));
        frit_checkpoint *a, *b;
        assert_ok(frit_checkpoint_open(&a, native, NULL));
        assert_ok(frit_checkpoint_open(&b, again, NULL));
        const frit_tensor *x = frit_checkpoint_find(a, "blk.0.ffn_up.weight"),
                          *y = frit_checkpoint_find(b, "blk.0.ffn_up.weight");
        assert_int_equal(x->n_bytes, y->n_bytes);
        if (strcmp(type, "q4_0") == 0 || !is_float) assert_memory_equal(x->data, y->data, x->n_bytes);
        frit_checkpoint_close(a);
        frit_checkpoint_close(b);
        quantize =
            // A type of fewer bytes is requested.
            (frit_quantize_options){.mix = "q2_k", .plan = count_type, .plan_ctx = &p};
        assert_ok(frit_convert(from, NULL, &options));
        assert_string_not_equal(p.others, type);
        quantize.mix = "bf16";
        assert_ok(frit_convert(from, NULL, &options));
        assert_string_equal(p.others, "bf16");
    }
    planned p = {0};   // random floats are on no grid
    const frit_quantize_options quantize = {.mix = "q4_k_m", .plan = count_type, .plan_ctx = &p};
    assert_ok(frit_convert(source, NULL, &(frit_convert_options){.n_threads = 1, .quantize = &quantize}));
    assert_string_equal(p.others, "q4_k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_models_get_the_types_of_llama_quantize),
        cmocka_unit_test(small_models_get_the_types_of_llama_quantize),
        cmocka_unit_test(a_user_may_set_types),
        cmocka_unit_test(floats_and_single_types_may_keep_some),
        cmocka_unit_test(matrices_of_four_bits_are_copied),
        cmocka_unit_test(rules_that_say_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
