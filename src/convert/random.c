// SPDX-License-Identifier: MIT
// Random weights: the tensors of a shape, their types and values.
//
// Matrices consist of pieces of 256 numbers that were encoded once: every type gets scales of a normal size, and rows
// are generated at the speed of copying.
#include "convert/random.h"
#include "text/vocab/vocab_random.h"

#include "base/number.h"
#include "base/rng.h"
#include "convert/convert.h"
#include "format/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256, N_PIECES = 512 };   // numbers, a multiple of every type's blocks

static const double spread = 0.02;   // standard deviation of weights around 0, and of factors around 1

// A mix like q4_k_m. For types coarser than q6_k the output is q6_k. fp8 and fp8_weights are like folders of fp8
// weights, whose token table and output are not quantized, made for inputs in fp8 or not.
typedef struct mix {
    const char *name;
    frit_dtype base, fine, output;   // fine: for attn_v and ffn_down in some layers
    int file_type;
} mix;

static const mix mixes[] = {
    {"q4_k_m", FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q6_K, 15},
    {"q5_k_m", FRIT_DTYPE_Q5_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q6_K, 17},
    {"fp8", FRIT_DTYPE_FP8_128, FRIT_DTYPE_FP8_128, FRIT_DTYPE_BF16, -1},
    {"fp8_weights", FRIT_DTYPE_FP8_128, FRIT_DTYPE_FP8_128, FRIT_DTYPE_BF16, -1},
};

typedef struct maker {
    const frit_random_row *row;
    frit_checkpoint *ckpt;
    const frit_arch *arch;
    frit_hparams hp;
    mix mix;
    bool is_whole, is_tied;
    float *numbers;                      // [N_PIECES * PIECE], normal
    uint8_t *pieces[FRIT_DTYPE_COUNT];   // the numbers in each type; NULL: not encoded yet
    frit_rng rng;
} maker;

// ------------------------------------------------------------------------------------- numbers

static double uniform(frit_rng *rng, double low, double high)
{
    return low + (high - low) * frit_rng_double(rng);
}

static double normal(frit_rng *rng)
{
    return sqrt(-2 * log(1 - frit_rng_double(rng))) * cos(6.283185307179586 * frit_rng_double(rng));
}

static double near_zero(frit_rng *rng)
{
    return spread * normal(rng);
}

static double near_one(frit_rng *rng)
{
    return 1 + spread * normal(rng);
}

static double tap(frit_rng *rng)
{
    return 0.5 * normal(rng);
}

static double decay(frit_rng *rng)
{
    return -uniform(rng, 1, 16);
}

// Draws a bias whose softplus is a time step of 0.001 to 0.1.
static double step_bias(frit_rng *rng)
{
    return log(expm1(exp(uniform(rng, log(0.001), log(0.1)))));
}

// Vectors that are neither norms (near 1) nor biases (near 0).
static const struct {
    size_t offset;   // in frit_layer
    double (*draw)(frit_rng *rng);
} drawn[] = {
    {offsetof(frit_layer, recurrent.a), decay},
    {offsetof(frit_layer, recurrent.dt_b), step_bias},
    {offsetof(frit_layer, recurrent.conv), tap},
    {offsetof(frit_layer, recurrent.conv_q), tap},
    {offsetof(frit_layer, recurrent.conv_k), tap},
    {offsetof(frit_layer, recurrent.conv_v), tap},
    {offsetof(frit_layer, recurrent.conv_b), near_zero},
    {offsetof(frit_layer, router_bias), near_zero},
    {offsetof(frit_layer, sinks), near_zero},
};

static frit_status fill_vector(maker *m, const frit_weight_row *row, frit_tensor *tensor)
{
    const int64_t n = frit_tensor_n_elems(tensor);
    float *values = frit_arena_new(&m->ckpt->arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    double (*draw)(frit_rng * rng) = near_one;
    for (size_t i = 0; i < FRIT_COUNT(drawn); i++)
        if ((row->flags & FRIT_WEIGHT_LAYER) && row->offset == drawn[i].offset) draw = drawn[i].draw;
    for (int64_t i = 0; i < n; i++) values[i] = (float)draw(&m->rng);
    tensor->data = values;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- rows

typedef struct random_rows {
    frit_recipe base;
    const uint8_t *pieces;
    uint64_t seed;
    size_t piece_bytes, row_bytes;
} random_rows;

static void make_rows(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const random_rows *r = (const random_rows *)recipe;
    (void)scratch;
    for (int64_t i = begin; i < begin + n; i++) {
        frit_rng rng;
        frit_rng_init(&rng, r->seed + (uint64_t)i);
        for (size_t left = r->row_bytes; left > 0;) {
            const size_t n_bytes = left < r->piece_bytes ? left : r->piece_bytes;
            memcpy(rows, r->pieces + frit_rng_next(&rng) % N_PIECES * r->piece_bytes, n_bytes);
            rows += n_bytes;
            left -= n_bytes;
        }
    }
}

static frit_status make_pieces(maker *m, frit_dtype dtype)
{
    if (m->pieces[dtype]) return FRIT_OK;
    const size_t n_bytes = (size_t)frit_dtype_row_bytes(dtype, PIECE);
    uint8_t *pieces = frit_arena_alloc(&m->ckpt->arena, N_PIECES, n_bytes);
    if (!pieces) return frit_fail_memory(N_PIECES * n_bytes, "random weights");
    for (size_t i = 0; i < N_PIECES; i++)
        frit_dtype_get(dtype)->encode(m->numbers + i * PIECE, pieces + i * n_bytes, PIECE, NULL);
    m->pieces[dtype] = pieces;
    return FRIT_OK;
}

static frit_status fill_matrix(maker *m, frit_tensor *tensor)
{
    FRIT_TRY(make_pieces(m, tensor->dtype));
    random_rows *r = frit_arena_new(&m->ckpt->arena, random_rows, 1);
    if (!r) return frit_fail_memory(sizeof *r, tensor->name);
    *r = (random_rows){.base = {.make = make_rows},
                       .pieces = m->pieces[tensor->dtype],
                       .seed = frit_rng_next(&m->rng),
                       .piece_bytes = (size_t)frit_dtype_row_bytes(tensor->dtype, PIECE),
                       .row_bytes = (size_t)frit_tensor_row_bytes(tensor)};
    tensor->recipe = &r->base;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- types

static double bits_of(frit_dtype dtype)
{
    const frit_dtype_info *type = frit_dtype_get(dtype);
    return 8.0 * type->block_bytes / type->block_elems;
}

static bool has_encoder(frit_dtype dtype)
{
    return frit_dtype_get(dtype)->encode != NULL;
}

static frit_status find_mix(maker *m, const char *name)
{
    if (!name) name = mixes[0].name;
    for (size_t i = 0; i < FRIT_COUNT(mixes); i++) {
        m->mix = mixes[i];
        if (strcmp(name, mixes[i].name) == 0) return FRIT_OK;
    }
    frit_dtype type;
    if (frit_convert_find_type(name, &type) != FRIT_OK || !has_encoder(type))
        return frit_fail(FRIT_E_INVALID, "%s, q4_k_m, q5_k_m or fp8", frit_error());
    const frit_dtype output = bits_of(type) < bits_of(FRIT_DTYPE_Q6_K) ? FRIT_DTYPE_Q6_K : type;
    m->mix = (mix){name, type, type, output, frit_file_type_id(type)};
    return FRIT_OK;
}

// True for the first eighth of the layers, the last, and every third between.
static bool is_fine_layer(int32_t i, int32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

// Returns the type of a layer's matrix; mixes choose finer types for some matrices.
static frit_dtype type_in_layer(const maker *m, size_t offset, int32_t i_layer)
{
    static const size_t fine[] = {offsetof(frit_layer, v), offsetof(frit_layer, qkv), offsetof(frit_layer, ffn.down),
                                  offsetof(frit_layer, experts.down), offsetof(frit_layer, shared.down)};
    const bool is_absorbed = offset == offsetof(frit_layer, k_b) || offset == offsetof(frit_layer, v_b);
    if (is_absorbed && bits_of(m->mix.base) < 8) return FRIT_DTYPE_Q8_0;
    for (size_t i = 0; i < FRIT_COUNT(fine); i++)
        if (offset == fine[i] && is_fine_layer(i_layer, m->hp.n_layer)) return m->mix.fine;
    return m->mix.base;
}

static frit_dtype type_of(const maker *m, const frit_listed_tensor *listed, const frit_tensor *tensor)
{
    const size_t offset = listed->row->offset;
    const bool is_table = offset == offsetof(frit_weights, tok_embd);
    frit_dtype wanted = m->mix.base;
    if (listed->row->flags & FRIT_WEIGHT_LAYER)
        wanted = type_in_layer(m, offset, listed->i_layer);
    else if (offset == offsetof(frit_weights, lm_head) || (is_table && m->is_tied))
        wanted = m->mix.output;
    else if (wanted == FRIT_DTYPE_FP8_128)
        wanted = FRIT_DTYPE_BF16;
    return frit_convert_type(tensor, wanted, false);
}

// ------------------------------------------------------------------------------------- tensors

static bool is_word_of(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, n) == 0 && (at[n] == ' ' || at[n] == 0)) return true;
    }
    return false;
}

static bool is_wanted(const maker *m, const char *name)
{
    return is_word_of(m->row->optional, name) || (m->is_whole && is_word_of(m->row->optional_whole, name));
}

static frit_status add_tensor(void *ctx, const frit_listed_tensor *listed)
{
    maker *m = ctx;
    if (listed->may_be_absent && !is_wanted(m, listed->row->name)) return FRIT_OK;
    frit_tensor tensor = {.name = frit_arena_text(&m->ckpt->arena, listed->name, strlen(listed->name)),
                          .n_dims = listed->n_dims};
    if (!tensor.name) return frit_fail_memory(strlen(listed->name), "the name of a tensor");
    memcpy(tensor.shape, listed->shape, sizeof tensor.shape);
    tensor.dtype = type_of(m, listed, &tensor);
    tensor.n_bytes = (uint64_t)frit_tensor_n_rows(&tensor) * frit_tensor_row_bytes(&tensor);
    const bool is_vector = listed->row->in == FRIT_DIM_1;
    FRIT_TRY(is_vector ? fill_vector(m, listed->row, &tensor) : fill_matrix(m, &tensor));
    return frit_checkpoint_add_tensor(m->ckpt, &tensor);
}

// ------------------------------------------------------------------------------------- metadata

static frit_status add_value(maker *m, const char *name, size_t n, frit_value value)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%.*s", m->row->shape.arch, (int)n, name);
    const char *kept = frit_arena_text(&m->ckpt->arena, key, strlen(key));
    if (!kept) return frit_fail_memory(strlen(key), "a key");
    return frit_meta_add(&m->ckpt->meta, frit_str_of(kept), value);
}

// Adds keys "NAME=NUMBER ...": f32 with a point or an exponent, bool for t and f, otherwise u32.
static frit_status add_keys(maker *m, const char *text)
{
    while (text && *text) {
        const char *is = strchr(text, '='), *end = strchr(is, ' ');
        const size_t n = end ? (size_t)(end - is) : strlen(is);
        double real = 0;
        frit_value value = {.type = FRIT_VALUE_U32, .u = strtoul(is + 1, NULL, 10)};
        if (is[1] == 't' || is[1] == 'f')
            value = (frit_value){.type = FRIT_VALUE_BOOL, .u = is[1] == 't'};
        else if ((memchr(is, '.', n) || memchr(is, 'e', n)) && frit_parse_double(is + 1, n - 1, &real) > 0)
            value = (frit_value){.type = FRIT_VALUE_F32, .f = (float)real};
        FRIT_TRY(add_value(m, text, (size_t)(is - text), value));
        text = end ? end + 1 : NULL;
    }
    return FRIT_OK;
}

static frit_status add_meta(maker *m, int32_t n_layers)
{
    frit_meta *meta = &m->ckpt->meta;
    FRIT_TRY(frit_meta_add_text(meta, "general.architecture", m->row->shape.arch));
    FRIT_TRY(frit_meta_add_text(meta, "general.name", m->ckpt->path));
    const frit_value version = {.type = FRIT_VALUE_U32, .u = 2},
                     type = {.type = FRIT_VALUE_U32, .u = (uint64_t)m->mix.file_type},
                     layers = {.type = FRIT_VALUE_U32, .u = (uint64_t)n_layers};
    FRIT_TRY(frit_meta_add(meta, frit_str_of("general.quantization_version"), version));
    if (strcmp(m->mix.name, "fp8") == 0) FRIT_TRY(frit_meta_add_text(meta, "frit.product_inputs", "fp8"));
    if (m->mix.file_type >= 0) FRIT_TRY(frit_meta_add(meta, frit_str_of("general.file_type"), type));
    FRIT_TRY(add_value(m, "block_count", strlen("block_count"), layers));
    FRIT_TRY(add_keys(m, m->row->keys));
    return m->is_whole ? FRIT_OK : add_keys(m, m->row->keys_cut);
}

// ------------------------------------------------------------------------------------- opening

static frit_status make_model(maker *m, const frit_random_options *options)
{
    const int32_t n_all = m->row->shape.n_layers, n_layers = options->n_layers > 0 ? options->n_layers : n_all;
    if (options->n_layers < 0 || n_layers > n_all)
        return frit_fail(FRIT_E_INVALID, "%s has %d layers, %d are requested", m->row->shape.name, (int)n_all,
                         (int)options->n_layers);
    frit_arena *arena = &m->ckpt->arena;
    m->is_whole = n_layers == n_all;
    m->is_tied = !is_wanted(m, "output");
    FRIT_TRY(find_mix(m, options->type));
    FRIT_TRY(add_meta(m, n_layers));
    FRIT_TRY(frit_arch_of(&m->arch, m->ckpt));
    FRIT_TRY(frit_hparams_read(&m->hp, m->arch, m->ckpt, arena));
    FRIT_TRY(frit_random_add_vocabulary(m->ckpt, m->hp.n_vocab));
    m->numbers = frit_arena_new(arena, float, N_PIECES *PIECE);
    if (!m->numbers) return frit_fail_memory(N_PIECES * PIECE * sizeof *m->numbers, "random numbers");
    for (int i = 0; i < N_PIECES * PIECE; i++) m->numbers[i] = (float)near_zero(&m->rng);
    return frit_arch_list(m->arch, &m->hp, add_tensor, m);
}

frit_status frit_random_open(frit_checkpoint **out, const frit_random_row *row, const frit_random_options *options)
{
    maker m = {.row = row};
    *out = NULL;
    char name[64];
    snprintf(name, sizeof name, "random %s", m.row->shape.name);
    FRIT_TRY(frit_checkpoint_new(&m.ckpt, name));
    m.ckpt->format = "random weights";
    frit_rng_init(&m.rng, 1);
    frit_status status = make_model(&m, options);
    if (status != FRIT_OK) {
        frit_checkpoint_close(m.ckpt);
        return status;
    }
    *out = m.ckpt;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- writing

typedef struct writing {
    const frit_checkpoint *ckpt;
    const frit_random_options *options;
    frit_pool *pool;
    uint64_t n_bytes, n_done;
} writing;

static frit_status report_bytes(void *ctx, uint64_t n_bytes)
{
    writing *w = ctx;
    w->n_done += n_bytes;
    const frit_random_options *o = w->options;
    if (!o->progress || o->progress(o->progress_ctx, (double)w->n_done / (double)w->n_bytes)) return FRIT_OK;
    return frit_fail_file(FRIT_E_CANCELLED, "%s: writing was cancelled", w->ckpt->path);
}

static frit_status write_tensor(void *ctx, size_t i, frit_file_writer *writer)
{
    writing *w = ctx;
    return frit_convert_write(&w->ckpt->tensors[i], w->pool, writer, report_bytes, w);
}

frit_status frit_random_save(const frit_checkpoint *ckpt, const char *path, const frit_random_options *options)
{
    writing w = {.ckpt = ckpt, .options = options};
    for (size_t i = 0; i < ckpt->n_tensors; i++) w.n_bytes += ckpt->tensors[i].n_bytes;
    const frit_gguf_contents contents = {&ckpt->meta, ckpt->tensors, ckpt->n_tensors, write_tensor, &w};
    FRIT_TRY(frit_pool_new(&w.pool, options->n_threads));
    frit_status status = frit_gguf_write_contents(&contents, path);
    frit_pool_free(w.pool);
    return status;
}

frit_status frit_random_write(const char *path, const frit_random_options *options)
{
    FRIT_REQUIRE(path);
    FRIT_REQUIRE(options);
    FRIT_REQUIRE_UNUSED(options);
    const frit_random_row *row;
    frit_checkpoint *ckpt;
    FRIT_TRY(frit_random_find(&row, options->shape));
    FRIT_TRY(frit_random_open(&ckpt, row, options));
    frit_status status = frit_random_save(ckpt, path, options);
    frit_checkpoint_close(ckpt);
    return status;
}
