// SPDX-License-Identifier: MIT
// Folders with quantized weights: every method and layout, against numbers computed here from random codes, which are
// packed bit by bit.
#include "format/folder_build.h"
#include "format/rows.h"

#include <inttypes.h>
#include <math.h>

enum { HIDDEN = 64, FF = 128, MAX_TENSORS = 128 };

// ------------------------------------------------------------------------------------- building

typedef struct stored {
    char name[192];
    const char *type;
    int n_dims;
    int64_t shape[4];
    uint8_t *bytes;
    size_t n_bytes;
} stored;

static stored tensors[MAX_TENSORS];
static int n_tensors;
static frit_rng rng;

static void *store(const char *name, const char *type, size_t size, int n_dims, int64_t a, int64_t b, int64_t c)
{
    stored *t = &tensors[n_tensors++];
    assert_in_range(n_tensors, 1, MAX_TENSORS);
    *t = (stored){.type = type, .n_dims = n_dims, .shape = {a, b, c, 16}};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->n_bytes = size;
    for (int i = 0; i < n_dims; i++) t->n_bytes *= (size_t)t->shape[i];
    return t->bytes = calloc(1, t->n_bytes);
}

static void store_floats(const char *name, int n_dims, int64_t a, int64_t b)
{
    random_normal(&rng, store(name, "F32", 4, n_dims, a, b, 1), (size_t)(a * b), 1);
}

// Writes tensors sorted by element size, as files are, and drops them.
static void write_stored(const char *left_out)
{
    frit_buf header = {0};
    size_t end = 0;
    frit_buf_text(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int i = 0; i < n_tensors; i++) {
        const stored *t = &tensors[i];
        if (left_out && strstr(t->name, left_out)) continue;
        frit_buf_printf(&header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, t->type);
        for (int d = 0; d < t->n_dims; d++) frit_buf_printf(&header, "%s%lld", d ? "," : "", (long long)t->shape[d]);
        frit_buf_printf(&header, "],\"data_offsets\":[%zu,%zu]}", end, end + t->n_bytes);
        end += t->n_bytes;
    }
    frit_buf_char(&header, '}');
    image made = image_of(header.data, end);
    uint8_t *at = (uint8_t *)made.bytes + made.n_bytes - end;
    for (int i = 0; i < n_tensors; i++) {
        if (left_out && strstr(tensors[i].name, left_out)) continue;
        memcpy(at, tensors[i].bytes, tensors[i].n_bytes);
        at += tensors[i].n_bytes;
    }
    write_file(in_folder("model.safetensors"), made.bytes, made.n_bytes);
    free(made.bytes);
    frit_buf_free(&header);
}

static void forget(void)
{
    for (int i = 0; i < n_tensors; i++) free(tensors[i].bytes);
    n_tensors = 0;
}

static void set_bits(uint32_t *words, int64_t first, int64_t stride, int64_t at, int n_bits, unsigned code)
{
    for (int b = 0; b < n_bits; b++)
        words[first + (at + b) / 32 * stride] |= (uint32_t)(code >> b & 1) << ((at + b) % 32);
}

// ------------------------------------------------------------------------------------- methods

typedef struct method {
    const char *config;   // quantization_config
    void (*store)(const struct method *m, const char *base, int64_t out, int64_t in, float *want);
    int bits;
    int64_t group;   // columns; 0: all
    bool shuffled;   // g_idx is out of order
    bool no_zeros;
    int less;   // the stored zero points are smaller by this number
    int64_t block_rows, block_columns;
    const char *scale_name;
} method;

static unsigned random_code(int bits)
{
    return (unsigned)random_between(&rng, 0, (1 << bits) - 1);
}

static float random_scale(void)
{
    return (float)random_between(&rng, 1, 64) / 1024;   // exact in any type
}

static const char *ending(const char *base, const char *end)
{
    static char name[160];
    snprintf(name, sizeof name, "%s%s", base, end);
    return name;
}

static void store_gptq(const method *m, const char *base, int64_t out, int64_t in, float *want)
{
    const int64_t group = m->group ? m->group : in, n_groups = (in + group - 1) / group;
    uint32_t *codes = store(ending(base, ".qweight"), "I32", 4, 2, in * m->bits / 32, out, 1);
    uint32_t *zeros = store(ending(base, ".qzeros"), "I32", 4, 2, n_groups, out * m->bits / 32, 1);
    float *scales = store(ending(base, ".scales"), "F32", 4, 2, n_groups, out, 1);
    int32_t *groups = m->shuffled ? store(ending(base, ".g_idx"), "I32", 4, 1, in, 1, 1) : NULL;
    int *true_zeros = calloc((size_t)(n_groups * out), sizeof *true_zeros);
    for (int64_t i = 0; i < n_groups * out; i++) {
        const unsigned zero = random_code(m->bits);
        scales[i] = random_scale();
        true_zeros[i] = (int)zero + m->less;
        set_bits(zeros, i / out * (out * m->bits / 32), 1, i % out * m->bits, m->bits, zero);
    }
    for (int64_t i = 0; i < in; i++) {
        const int64_t g = m->shuffled ? random_between(&rng, 0, n_groups - 1) : i / group;
        if (groups) groups[i] = (int32_t)g;
        for (int64_t o = 0; o < out; o++) {
            const unsigned code = random_code(m->bits);
            set_bits(codes, o, out, i * m->bits, m->bits, code);
            want[o * in + i] = (float)((int)code - true_zeros[g * out + o]) * scales[g * out + o];
        }
    }
    free(true_zeros);
}

static void store_awq(const method *m, const char *base, int64_t out, int64_t in, float *want)
{
    static const int order[] = {0, 2, 4, 6, 1, 3, 5, 7};   // row of the k-th four bits of a word
    const int64_t n_groups = in / m->group;
    uint32_t *codes = store(ending(base, ".qweight"), "I32", 4, 2, in, out / 8, 1);
    uint32_t *zeros = store(ending(base, ".qzeros"), "I32", 4, 2, n_groups, out / 8, 1);
    float *scales = store(ending(base, ".scales"), "F32", 4, 2, n_groups, out, 1);
    for (int64_t i = 0; i < in; i++)
        for (int64_t w = 0; w < out / 8; w++)
            for (int k = 0; k < 8; k++) {
                const int64_t o = 8 * w + order[k], g = i / m->group;
                const unsigned code = random_code(4);
                if (i % m->group == 0) {
                    set_bits(zeros, g * (out / 8) + w, 1, 4 * k, 4, random_code(4));
                    scales[g * out + o] = random_scale();
                }
                set_bits(codes, i * (out / 8) + w, 1, 4 * k, 4, code);
                const int zero = (int)(zeros[g * (out / 8) + w] >> 4 * k & 15);
                want[o * in + i] = (float)((int)code - zero) * scales[g * out + o];
            }
}

static void store_words(const method *m, const char *base, int64_t out, int64_t in, float *want)
{
    const int64_t group = m->group ? m->group : in, n_groups = in / group, n_words = in * m->bits / 32;
    uint32_t *codes = store(ending(base, ".weight_packed"), "I32", 4, 2, out, n_words, 1);
    uint32_t *zeros =
        m->no_zeros ? NULL : store(ending(base, ".weight_zero_point"), "I32", 4, 2, out * m->bits / 32, n_groups, 1);
    float *scales = store(ending(base, ".weight_scale"), "F32", 4, 2, out, n_groups, 1);
    int64_t *shape = store(ending(base, ".weight_shape"), "I64", 8, 1, 2, 1, 1);
    shape[0] = out;
    shape[1] = in;
    for (int64_t o = 0; o < out; o++) {
        unsigned zero = 1u << (m->bits - 1);
        for (int64_t i = 0; i < in; i++) {
            const unsigned code = random_code(m->bits);
            if (i % group == 0) {
                scales[o * n_groups + i / group] = random_scale();
                if (zeros) zero = random_code(m->bits);
                if (zeros) set_bits(zeros, i / group, n_groups, o * m->bits, m->bits, zero);
            }
            set_bits(codes, o * n_words, 1, i * m->bits, m->bits, code);
            want[o * in + i] = (float)((int)code - (int)zero) * scales[o * n_groups + i / group];
        }
    }
}

// Stores eight bits each: integers if m->bits is 8, floats if it is 0.
static void store_scaled(const method *m, const char *base, int64_t out, int64_t in, float *want)
{
    const int64_t rows = m->block_rows ? m->block_rows : out, columns = m->block_columns ? m->block_columns : in;
    const int64_t n_rows = (out + rows - 1) / rows, n_columns = (in + columns - 1) / columns;
    uint8_t *codes = store(ending(base, ".weight"), m->bits ? "I8" : "F8_E4M3", 1, 2, out, in, 1);
    float *scales = store(ending(base, m->scale_name), "F32", 4, n_rows * n_columns > 1 ? 2 : 1, n_rows, n_columns, 1);
    for (int64_t i = 0; i < n_rows * n_columns; i++) scales[i] = random_scale();
    for (int64_t i = 0; i < out * in; i++) {
        do codes[i] = (uint8_t)random_code(8);
        while (!m->bits && (codes[i] & 127) == 127);   // NaN is not written
        const int exponent = codes[i] / 8 % 16, mantissa = codes[i] % 8;
        const double value = exponent ? (1 + mantissa / 8.0) * pow(2, exponent - 7) : mantissa / 8.0 * pow(2, -6);
        const float number = m->bits ? (float)(int8_t)codes[i] : (float)(codes[i] > 127 ? -value : value);
        want[i] = number * scales[i / in / rows * n_columns + i % in / columns];
    }
}

#define COMPRESSED(format, weights)                                                                       \
    "{\"quant_method\":\"compressed-tensors\",\"format\":\"" format "\",\"config_groups\":{\"group_0\":{" \
    "\"targets\":[\"Linear\"],\"weights\":" weights "}},\"ignore\":[\"lm_head\"]}"

// clang-format off
static const method methods[] = {
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32}", store_gptq, .bits = 4, .group = 32, .less = 1},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"desc_act\":true}", store_gptq, .bits = 4, .group = 32, .less = 1, .shuffled = true},
    {"{\"quant_method\":\"gptq\",\"bits\":2,\"group_size\":16,\"sym\":false}", store_gptq, .bits = 2, .group = 16, .less = 1},
    {"{\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":32,\"checkpoint_format\":\"gptq\"}", store_gptq, .bits = 3, .group = 32, .less = 1},
    {"{\"quant_method\":\"gptq\",\"bits\":8,\"group_size\":-1}", store_gptq, .bits = 8, .less = 1},
    {"{\"quant_method\":\"gptq\",\"bits\":4,\"group_size\":32,\"checkpoint_format\":\"gptq_v2\"}", store_gptq, .bits = 4, .group = 32},
    {"{\"quant_method\":\"awq\",\"bits\":4,\"group_size\":32,\"version\":\"gemm\"}", store_awq, .bits = 4, .group = 32},
    {COMPRESSED("pack-quantized", "{\"num_bits\":4,\"group_size\":32,\"strategy\":\"group\"}"), store_words, .bits = 4, .group = 32, .no_zeros = true},
    {COMPRESSED("pack-quantized", "{\"num_bits\":4,\"group_size\":32,\"symmetric\":false}"), store_words, .bits = 4, .group = 32},
    {COMPRESSED("pack-quantized", "{\"num_bits\":8,\"strategy\":\"channel\"}"), store_words, .bits = 8, .no_zeros = true},
    {COMPRESSED("float-quantized", "{\"num_bits\":8,\"type\":\"float\"}"), store_scaled, .block_rows = 1, .scale_name = ".weight_scale"},
    {COMPRESSED("float-quantized", "{\"num_bits\":8,\"strategy\":\"block\",\"block_structure\":[16,48]}"), store_scaled,
     .block_rows = 16, .block_columns = 48, .scale_name = ".weight_scale"},
    {COMPRESSED("int-quantized", "{\"num_bits\":8,\"strategy\":\"channel\"}"), store_scaled, .bits = 8, .block_rows = 1, .scale_name = ".weight_scale"},
    {"{\"quant_method\":\"fp8\",\"weight_block_size\":[32,128]}", store_scaled, .block_rows = 32, .block_columns = 128, .scale_name = ".weight_scale_inv"},
    {"{\"quant_method\":\"fp8\",\"weight_block_size\":[32,48]}", store_scaled, .block_rows = 32, .block_columns = 48, .scale_name = ".weight_scale_inv"},
    {"{\"quant_method\":\"fp8\"}", store_scaled, .scale_name = ".weight_scale"},
    {"{\"quant_method\":\"fbgemm_fp8\"}", store_scaled, .block_rows = 1, .scale_name = ".weight_scale"},
};

static const struct {
    const char *name, *gguf;
    int64_t out, in;
} linears[] = {
    {"self_attn.q_proj", "attn_q", HIDDEN, HIDDEN}, {"self_attn.k_proj", "attn_k", HIDDEN / 2, HIDDEN},
    {"self_attn.v_proj", "attn_v", HIDDEN / 2, HIDDEN}, {"self_attn.o_proj", "attn_output", HIDDEN, HIDDEN},
    {"mlp.gate_proj", "ffn_gate", FF, HIDDEN}, {"mlp.up_proj", "ffn_up", FF, HIDDEN},
    {"mlp.down_proj", "ffn_down", HIDDEN, FF},
};
// clang-format on

static void write_quantization(const char *quantization, const char *dtype)
{
    char changes[1200];
    snprintf(changes, sizeof changes,
             "{\"hidden_size\":%d,\"intermediate_size\":%d,\"vocab_size\":8,\"torch_dtype\":\"%s\","
             "\"quantization_config\":%s}",
             HIDDEN, FF, dtype, quantization);
    write_changed_config(changes);
}

// `want` gets all numbers in sequence.
static void store_model(const method *m, float *want)
{
    static const char *const norms[] = {"norm", "layers.0.input_layernorm", "layers.0.post_attention_layernorm"};
    char name[160];
    forget();
    for (size_t i = 0; i < FRIT_COUNT(linears); i++) {
        snprintf(name, sizeof name, "model.layers.0.%s", linears[i].name);
        m->store(m, name, linears[i].out, linears[i].in, want);
        want += linears[i].out * linears[i].in;
    }
    for (size_t i = 0; i < FRIT_COUNT(norms); i++) {
        snprintf(name, sizeof name, "model.%s.weight", norms[i]);
        store_floats(name, 1, HIDDEN, 1);
    }
    store_floats("model.embed_tokens.weight", 2, 8, HIDDEN);
    store_floats("lm_head.weight", 2, 8, HIDDEN);
}

static float wanted[8 * FF * HIDDEN], got[8 * FF * HIDDEN];

static const frit_tensor *find_linear(const frit_checkpoint *ckpt, size_t i)
{
    char name[64];
    snprintf(name, sizeof name, "blk.0.%s.weight", linears[i].gguf);
    const frit_tensor *tensor = frit_checkpoint_find(ckpt, name);
    assert_non_null(tensor);
    assert_int_equal(tensor->shape[0], linears[i].out);
    assert_int_equal(tensor->shape[1], linears[i].in);
    return tensor;
}

// ------------------------------------------------------------------------------------- tests

static void no_warning(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx, (void)level;
    fail_msg("unexpected: %s", sentence);
}

// Checks that a tensor's sources are in a mapped file: only such weights are packed once, and dropped while they are
// packed.
static void assert_mapped(const frit_tensor *tensor)
{
    assert_true(tensor->data || tensor->recipe->n_parts > 0);
    if (tensor->data && !tensor->is_mapped) fail_msg("%s lies in no mapped file", tensor->name);
    for (size_t i = 0; !tensor->data && i < tensor->recipe->n_parts; i++) {
        const frit_tensor *part = &tensor->recipe->parts[i];
        if (part->data || part->recipe) assert_mapped(part);
    }
}

static void every_method_gives_its_numbers(void **state)
{
    (void)state;
    const frit_log log = {no_warning, NULL};
    for (size_t k = 0; k < FRIT_COUNT(methods); k++) {
        frit_checkpoint *ckpt;
        const float *want = wanted;
        store_model(&methods[k], wanted);
        write_stored(NULL);
        write_quantization(methods[k].config, "float32");
        assert_ok(frit_checkpoint_open(&ckpt, folder_path, &(frit_checkpoint_options){.log = &log}));
        for (size_t i = 0; i < FRIT_COUNT(linears); i++) {
            const int64_t n = linears[i].out * linears[i].in;
            assert_mapped(find_linear(ckpt, i));
            assert_ok(frit_tensor_decode_rows(find_linear(ckpt, i), 0, linears[i].out, got));
            for (int64_t e = 0; e < n; e++)
                if (got[e] != want[e])
                    fail_msg("%s: %s[%lld, %lld] is %g, expected %g", methods[k].config, linears[i].name,
                             (long long)(e / linears[i].in), (long long)(e % linears[i].in), (double)got[e],
                             (double)want[e]);
            want += n;
        }
        frit_checkpoint_close(ckpt);
    }
}

// Rows of whole blocks of 128 numbers with one scale each stay fp8; the others become the model's type.
static void fp8_stays_what_it_is_if_scales_allow(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        bool is_kept;
    } rows[] = {{"[32,128]", true}, {"[16,256]", true}, {"null", true}, {"[32,48]", false}, {"[32,64]", false}};
    for (size_t k = 0; k < FRIT_COUNT(rows); k++) {
        frit_checkpoint *ckpt;
        char config[96];
        int64_t block[2] = {0, 0};
        snprintf(config, sizeof config, "{\"quant_method\":\"fp8\",\"weight_block_size\":%s}", rows[k].config);
        if (rows[k].config[0] == '[') sscanf(rows[k].config, "[%" SCNd64 ",%" SCNd64 "]", &block[0], &block[1]);
        const method m = {config, store_scaled, .block_rows = block[0], .block_columns = block[1],
                          .scale_name = ".weight_scale_inv"};
        store_model(&m, wanted);
        write_stored(NULL);
        write_quantization(config, "bfloat16");
        assert_ok(open_tiny(&ckpt));
        for (size_t i = 0; i < FRIT_COUNT(linears); i++) {
            const bool is_kept = rows[k].is_kept && linears[i].in == FF;
            assert_int_equal(find_linear(ckpt, i)->dtype, is_kept ? FRIT_DTYPE_FP8_128 : FRIT_DTYPE_BF16);
        }
        frit_checkpoint_close(ckpt);
    }
}

static void numbers_have_the_type_of_the_model(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        frit_dtype dtype;
    } rows[] = {{"float16", FRIT_DTYPE_F16}, {"bfloat16", FRIT_DTYPE_BF16}};
    for (size_t k = 0; k < FRIT_COUNT(rows); k++) {
        frit_checkpoint *ckpt;
        uint8_t expected[FF * 4], row[FF * 4];
        store_model(&methods[0], wanted);
        write_stored(NULL);
        write_quantization(methods[0].config, rows[k].name);
        assert_ok(open_tiny(&ckpt));
        const frit_tensor *tensor = find_linear(ckpt, 0);
        assert_int_equal(tensor->dtype, rows[k].dtype);
        uint8_t *scratch = malloc(frit_tensor_scratch_bytes(tensor));
        frit_tensor_read(tensor, 5, 1, row, scratch);
        frit_dtype_get(tensor->dtype)->encode(wanted + 5 * HIDDEN, expected, HIDDEN, NULL);
        assert_memory_equal(row, expected, 2 * HIDDEN);
        free(scratch);
        frit_checkpoint_close(ckpt);
    }
}

static void parts_that_are_missing_or_do_not_fit_are_refused(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    const method *gptq = &methods[1];
    write_quantization(gptq->config, "float32");
    store_model(gptq, wanted);
    write_stored("q_proj.scales");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "q_proj.qweight' needs '.scales', which is missing");
    write_stored("q_proj.qweight");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "tensor 'model.layers.0.self_attn.q_proj.weight' is missing");
    tensors[3].bytes[400 % tensors[3].n_bytes] = 99;   // of g_idx
    write_stored(NULL);
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "has a column in a group without scale");
    tensors[1].shape[0] *= 2;
    tensors[1].shape[1] /= 2;
    write_stored(NULL);
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "has zeros, scales or g_idx of another shape");
    const method *fp8 = &methods[FRIT_COUNT(methods) - 3];
    write_quantization("{\"quant_method\":\"fp8\",\"weight_block_size\":[16,16]}", "float32");
    store_model(fp8, wanted);
    write_stored(NULL);
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "has the shape [64, 64] and scales of the shape [2, 2]");
    write_stored("scale_inv");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "q_proj.weight' needs '_scale', which is missing");
}

static void what_is_not_known_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        frit_status status;
        const char *part;
    } rows[] = {
        {"{\"quant_method\":\"bitsandbytes\"}", FRIT_E_UNSUPPORTED,
         "(quant_method 'bitsandbytes'), which is not supported; supported are fp8"},
        {"{\"quant_method\":\"hqq\"}", FRIT_E_UNSUPPORTED, "quant_method 'hqq'"},
        {"{\"load_in_4bit\":true}", FRIT_E_UNSUPPORTED, "quant_method ''"},
        {"{\"quant_method\":7}", FRIT_E_FORMAT, "quant_method is 7, expected text"},
        {"{\"quant_method\":\"gptq\",\"bits\":5}", FRIT_E_UNSUPPORTED, "bits is 5, expected 2, 3, 4 or 8"},
        {"{\"quant_method\":\"gptq\",\"bits\":\"4\"}", FRIT_E_FORMAT, "bits is \"4\""},
        {"{\"quant_method\":\"gptq\",\"checkpoint_format\":\"marlin\"}", FRIT_E_UNSUPPORTED,
         "checkpoint_format is marlin, expected gptq and gptq_v2"},
        {"{\"quant_method\":\"gptq\",\"group_size\":0}", FRIT_E_FORMAT, "group_size is 0"},
        {"{\"quant_method\":\"awq\",\"version\":\"gemv\"}", FRIT_E_UNSUPPORTED, "version is gemv, expected gemm"},
        {"{\"quant_method\":\"awq\",\"bits\":3}", FRIT_E_UNSUPPORTED, "bits is 3, expected 4"},
        {"{\"quant_method\":\"fp8\",\"weight_block_size\":[0,1]}", FRIT_E_FORMAT, "is not a list of two sizes"},
        {COMPRESSED("nvfp4-pack-quantized", "{}"), FRIT_E_UNSUPPORTED, "format is nvfp4-pack-quantized"},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\"}", FRIT_E_FORMAT,
         "config_groups has no weights"},
        {"{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\",\"config_groups\":{\"a\":{\"weights\":"
         "{\"num_bits\":8}},\"b\":{\"weights\":{\"num_bits\":4}}}}",
         FRIT_E_UNSUPPORTED, "differ, expected equal settings"},
    };
    frit_checkpoint *ckpt;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        write_quantization(rows[i].config, "float32");
        assert_fails(open_tiny(&ckpt), rows[i].status, rows[i].part);
    }
}

// gpt-oss: codes [n_expert, alternating rows of gate and up, n_in / 32, 16]. Plain tensors come from the golden folder.
static void mxfp4_stays_what_it_is(void **state)
{
    (void)state;
    static const float fp4[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
    frit_checkpoint *plain, *ckpt;
    json_t *config = json_load_file(shared_path("goldens/hf/gpt_oss/config.json"), 0, NULL);
    assert_non_null(config);
    assert_ok(frit_checkpoint_open(&plain, shared_path("goldens/hf/gpt_oss/model.safetensors"), NULL));
    json_object_set_new(config, "quantization_config", json_pack("{s:s}", "quant_method", "mxfp4"));
    char *text = json_dumps(config, 0);
    write_config(text);
    free(text);
    forget();
    const stored *first_codes = NULL, *first_scales = NULL;
    for (size_t i = 0; i < plain->n_tensors; i++) {
        const frit_tensor *t = &plain->tensors[i];
        const bool is_codes = strstr(t->name, "experts.") && !strstr(t->name, "bias");
        if (!is_codes) {
            const char *type = t->dtype == FRIT_DTYPE_F32 ? "F32" : t->dtype == FRIT_DTYPE_BF16 ? "BF16" : "F16";
            memcpy(store(t->name, type, (size_t)frit_dtype_row_bytes(t->dtype, 1), t->n_dims, t->shape[0], t->shape[1],
                         t->shape[2]),
                   t->data, t->n_bytes);
            continue;
        }
        const int64_t n = t->shape[0] * t->shape[2] * t->shape[1] / 32;
        uint8_t *codes = store(ending(t->name, "_blocks"), "U8", 1, 4, t->shape[0], t->shape[2], t->shape[1] / 32);
        uint8_t *scales = store(ending(t->name, "_scales"), "U8", 1, 3, t->shape[0], t->shape[2], t->shape[1] / 32);
        for (int64_t k = 0; k < 16 * n; k++) codes[k] = (uint8_t)random_code(8);
        for (int64_t k = 0; k < n; k++) scales[k] = (uint8_t)random_between(&rng, 118, 130);
        if (strstr(t->name, "layers.0.mlp.experts.gate_up_proj")) {
            first_codes = &tensors[n_tensors - 2];
            first_scales = &tensors[n_tensors - 1];
        }
    }
    write_stored(NULL);
    assert_ok(open_tiny(&ckpt));
    const frit_tensor *made = frit_checkpoint_find(ckpt, "blk.0.ffn_gate_up_exps.weight");
    assert_non_null(made);
    assert_int_equal(made->dtype, FRIT_DTYPE_MXFP4);
    assert_mapped(made);
    const int64_t n_rows = made->shape[1], width = made->shape[2], n_all = made->shape[0] * n_rows;
    float *values = calloc((size_t)(n_all * width), sizeof *values);
    assert_ok(frit_tensor_decode_rows(made, 0, n_all, values));
    for (int64_t i = 0; i < n_all * width; i++) {
        const int64_t e = i / width / n_rows, row = i / width % n_rows, column = i % width;
        const int64_t stored_row = row < n_rows / 2 ? 2 * row : 2 * (row - n_rows / 2) + 1;
        const int64_t block = (e * n_rows + stored_row) * (width / 32) + column / 32;
        const int code = first_codes->bytes[16 * block + column % 32 / 2] >> (column % 2 ? 4 : 0) & 15;
        const float want = fp4[code] * (float)pow(2, first_scales->bytes[block] - 127);
        if (values[i] != want)
            fail_msg("element %lld is %g, expected %g", (long long)i, (double)values[i], (double)want);
    }
    free(values);
    frit_checkpoint_close(ckpt);
    frit_checkpoint_close(plain);
    json_decref(config);
}

static int set_up(void **state)
{
    frit_rng_init(&rng, 7);
    return make_folder(state);
}

static int tear_down(void **state)
{
    (void)state;
    forget();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_method_gives_its_numbers),     TEST(fp8_stays_what_it_is_if_scales_allow),
        TEST(numbers_have_the_type_of_the_model), TEST(parts_that_are_missing_or_do_not_fit_are_refused),
        TEST(what_is_not_known_is_refused),       TEST(mxfp4_stays_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
