// SPDX-License-Identifier: MIT
// Information about a model: its description, tensors, files and metadata.
#include "engine/session/pooling.h"
#include "engine/kv/kv.h"

#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- file type

typedef struct file_type {
    int id;   // general.file_type
    const char *name;
} file_type;

// Recipes that quantizers write into files. The most frequent type of the tensors tells less.
static const file_type file_types[] = {
    {0, "f32"},     {1, "f16"},     {2, "q4_0"},     {3, "q4_1"},    {7, "q8_0"},    {8, "q5_0"},    {9, "q5_1"},
    {10, "q2_k"},   {11, "q3_k_s"}, {12, "q3_k_m"},  {13, "q3_k_l"}, {14, "q4_k_s"}, {15, "q4_k_m"}, {16, "q5_k_s"},
    {17, "q5_k_m"}, {18, "q6_k"},   {19, "iq2_xxs"}, {20, "iq2_xs"}, {21, "q2_k_s"}, {22, "iq3_xs"}, {23, "iq3_xxs"},
    {24, "iq1_s"},  {25, "iq4_nl"}, {26, "iq3_s"},   {27, "iq3_m"},  {28, "iq2_s"},  {29, "iq2_m"},  {30, "iq4_xs"},
    {31, "iq1_m"},  {32, "bf16"},   {36, "tq1_0"},   {37, "tq2_0"},  {38, "mxfp4"},  {39, "nvfp4"},  {40, "q1_0"},
};

// The recipe's name if it begins with the most frequent type (q4_k_m: q4_k), otherwise that type: files can be
// mislabelled.
static const char *file_type_of(const frit_checkpoint *ckpt)
{
    if (ckpt->n_tensors == 0) return "";
    const char *type = frit_dtype_get(frit_convert_main_type(ckpt))->name;
    int64_t id = -1;
    bool found;
    if (frit_meta_get_i64(&ckpt->meta, "general.file_type", &id, &found) != FRIT_OK || !found) return type;
    for (size_t i = 0; i < FRIT_COUNT(file_types); i++)
        if (file_types[i].id == id && strncmp(file_types[i].name, type, 2) == 0) return file_types[i].name;
    return type;
}

// ------------------------------------------------------------------------------- what a token costs

static void count_weight(const frit_weight *weight, frit_model_info *info)
{
    const frit_tensor *const parts[] = {weight->w, weight->b, weight->scale};
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        if (!parts[i]) continue;
        info->bytes_per_token += parts[i]->n_bytes;
        info->ops_per_token += 2 * (uint64_t)frit_tensor_n_elems(parts[i]);
    }
}

// Counts every bound weight once, and one row of the embedding table. A tied output head counts as the head.
static void count_token(const frit_model *model, frit_model_info *info)
{
    const frit_arch *arch = model->arch;
    for (const frit_weight_row *row = arch->rows; row < arch->rows + arch->n_rows; row++) {
        bool per_layer = row->flags & FRIT_WEIGHT_LAYER;
        for (int32_t i = 0; i < (per_layer ? model->hp.n_layer : 1); i++) {
            const char *base = per_layer ? (const char *)&model->weights.layers[i] : (const char *)&model->weights;
            const frit_weight *weight = (const frit_weight *)(const void *)(base + row->offset);
            if (weight != &model->weights.tok_embd) count_weight(weight, info);
        }
    }
    const frit_tensor *table = model->weights.tok_embd.w;
    if (table && table->shape[0] > 0) info->bytes_per_token += table->n_bytes / (uint64_t)table->shape[0];
}

// ------------------------------------------------------------------------------- describing

static frit_status copy_text(frit_model *model, const char *key, const char **out)
{
    frit_str text = {"", 0};
    bool found;
    FRIT_TRY(frit_meta_get_text(&model->ckpt->meta, key, &text, &found));
    *out = frit_arena_text(&model->arena, text.ptr, text.len);
    return *out ? FRIT_OK : frit_fail_memory(text.len, key);
}

static frit_status copy_keys(frit_model *model)
{
    const frit_meta *meta = &model->ckpt->meta;
    model->keys = frit_arena_new(&model->arena, const char *, meta->n + 1);
    for (size_t i = 0; model->keys && i < meta->n; i++)
        model->keys[i] = frit_arena_text(&model->arena, meta->pairs[i].key.ptr, meta->pairs[i].key.len);
    return frit_arena_failed(&model->arena) ? frit_fail_memory(meta->n, "metadata keys") : FRIT_OK;
}

static frit_model_kind kind_of(const frit_arch *arch)
{
    if (arch && arch->is_encoder_decoder) return FRIT_KIND_ENCODER_DECODER;
    return arch && arch->is_encoder ? FRIT_KIND_ENCODER : FRIT_KIND_DECODER;
}

static frit_status describe_embeddings(frit_model *model)
{
    char names[96];
    FRIT_TRY(frit_model_pooling(model, names));
    model->info.pooling = frit_arena_text(&model->arena, names, strlen(names));
    int64_t *most = &model->info.n_embed_tokens;
    FRIT_TRY(frit_meta_get_i64(&model->ckpt->meta, "frit.embed.max_length", most, NULL));
    if (*most < 0) *most = 0;
    return model->info.pooling ? FRIT_OK : frit_fail_memory(sizeof names, "the names of pooling");
}

frit_status frit_model_describe(frit_model *model)
{
    const frit_checkpoint *ckpt = model->ckpt;
    const frit_hparams *hp = &model->hp;
    const bool has_chats = model->chats && model->chats->n > 0;
    frit_model_info *info = &model->info;
    *info = (frit_model_info){
        .kind = kind_of(model->arch),
        .decoder_start = hp->decoder_start,
        .path = ckpt->path,
        .format = ckpt->format,
        .file_type = file_type_of(ckpt),
        .tokenizer = model->tokenizer ? model->vocab.model : "none",
        .chat_format = model->chat        ? frit_chat_name(model->chat)
                       : model->tool_chat ? frit_chat_name(model->tool_chat)
                       : has_chats        ? "custom"
                                          : "",
        .n_vocab = hp->n_vocab > 0 ? hp->n_vocab : model->vocab.n,
        .n_ctx_train = hp->n_ctx_train,
        .n_embd = hp->n_embd,
        .n_layer = hp->n_layer,
        .n_layer_next = hp->n_layer_next,
        .n_tensors = ckpt->n_tensors,
        .n_meta = ckpt->meta.n,
        .adds_bos = model->tokenizer && model->vocab.add_bos,
        .adds_eos = model->tokenizer && model->vocab.add_eos,
    };
    for (int32_t i = 0; hp->layers && i < hp->n_layer; i++) {   // layers may differ: the largest are shown
        const frit_layer_hparams *layer = &hp->layers[i];
        if (layer->n_head > info->n_head) info->n_head = layer->n_head;
        if (layer->n_head_kv > info->n_head_kv) info->n_head_kv = layer->n_head_kv;
        if (layer->n_ff > info->n_ff) info->n_ff = layer->n_ff;
    }
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        info->n_params += frit_tensor_n_elems(&ckpt->tensors[i]);
        info->n_bytes += ckpt->tensors[i].n_bytes;
    }
    if (!model->vocab_only) count_token(model, info);
    FRIT_TRY(describe_embeddings(model));
    FRIT_TRY(copy_text(model, "general.architecture", &info->architecture));
    FRIT_TRY(copy_text(model, "general.name", &info->name));
    return copy_keys(model);
}

frit_status frit_model_get_info(const frit_model *model, frit_model_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_model_info){0};
    FRIT_REQUIRE(model);
    *info = model->info;
    return FRIT_OK;
}

bool frit_model_get_tensor(const frit_model *model, size_t i, frit_tensor_info *info)
{
    FRIT_REQUIRE_OR(false, model);
    FRIT_REQUIRE_OR(false, info);
    if (i >= model->ckpt->n_tensors) return false;
    const frit_tensor *tensor = &model->ckpt->tensors[i];
    *info = (frit_tensor_info){
        .name = tensor->name,
        .type = frit_dtype_get(tensor->dtype)->name,
        .n_dims = tensor->n_dims,
        .n_bytes = tensor->n_bytes,
    };
    memcpy(info->shape, tensor->shape, sizeof info->shape);
    return true;
}

bool frit_model_get_file(const frit_model *model, size_t i, frit_model_file *file)
{
    FRIT_REQUIRE_OR(false, file);
    *file = (frit_model_file){0};
    FRIT_REQUIRE_OR(false, model);
    if (i >= model->ckpt->n_files) return false;
    const frit_file *from = model->ckpt->files[i];
    *file = (frit_model_file){.path = frit_file_path(from), .n_bytes = frit_file_size(from)};
    return true;
}

uint64_t frit_model_kv_bytes(const frit_model *model, const char *cache_type_k, const char *cache_type_v)
{
    FRIT_REQUIRE_OR(0, model);
    const frit_hparams *hp = &model->hp;
    frit_kv_types types = {.k = FRIT_DTYPE_F16, .v = FRIT_DTYPE_F16};
    if (cache_type_k && !frit_dtype_from_name(cache_type_k, &types.k)) return 0;
    if (cache_type_v && !frit_dtype_from_name(cache_type_v, &types.v)) return 0;
    const int32_t n_layers = frit_arch_n_cache_layers(hp);
    frit_cache_spec *specs = hp->layers ? calloc((size_t)n_layers + 1, sizeof *specs) : NULL;
    uint64_t n_bytes = 0;
    if (specs && frit_arch_cache_specs(hp, specs) == FRIT_OK)
        n_bytes = frit_kv_token_bytes(&(frit_kv_shape){.specs = specs, .n_layers = n_layers, .types = types});
    free(specs);
    return n_bytes;
}

const char *frit_model_get_meta(const frit_model *model, size_t i, char *buffer, size_t size, int max_items)
{
    FRIT_REQUIRE_OR(NULL, model);
    FRIT_REQUIRE_ITEMS_OR(NULL, buffer, size);
    if (i >= model->ckpt->meta.n) return NULL;
    if (size == 0) return model->keys[i];
    frit_buf text = {0};
    frit_value_print(&model->ckpt->meta.pairs[i].value, max_items, &text);
    size_t n = text.len;
    if (n > size - 1)   // cut before a character, not inside
        for (n = size - 1; n > 0 && ((unsigned char)text.data[n] & 0xc0) == 0x80; n--) {
        }
    if (n > 0) memcpy(buffer, text.data, n);
    buffer[n] = 0;
    frit_buf_free(&text);
    return model->keys[i];
}

const char *frit_model_get_meta_json(const frit_model *model, size_t i, char *buffer, size_t size, int max_items,
                                     size_t *n_bytes)
{
    FRIT_REQUIRE_OR(NULL, n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE_OR(NULL, model);
    FRIT_REQUIRE_ITEMS_OR(NULL, buffer, size);
    if (i >= model->ckpt->meta.n) return NULL;
    frit_buf text = {0};
    frit_value_print_json(&model->ckpt->meta.pairs[i].value, max_items, &text);
    *n_bytes = text.len;
    if (text.data && text.len < size) memcpy(buffer, text.data, text.len + 1);
    frit_buf_free(&text);
    return model->keys[i];
}
