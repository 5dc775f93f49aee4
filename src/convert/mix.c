// SPDX-License-Identifier: MIT
// The list of mixes, and the types that a mix gives to a checkpoint's tensors.
#include "convert/mix.h"

#include "convert/convert.h"
#include "text/tokenizer/regex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#define ROW(NAME, name, BASE, file_type) {name, FRIT_MIX_##NAME, FRIT_DTYPE_##BASE, file_type}
static const frit_type_mix mixes[] = {
    ROW(Q8_0, "q8_0", Q8_0, 7),
    ROW(Q6_K, "q6_k", Q6_K, 18),
    ROW(Q5_K_M, "q5_k_m", Q5_K, 17), ROW(Q5_K_S, "q5_k_s", Q5_K, 16), ROW(Q5_1, "q5_1", Q5_1, 9), ROW(Q5_0, "q5_0", Q5_0, 8),
    ROW(Q4_K_M, "q4_k_m", Q4_K, 15), ROW(Q4_K_S, "q4_k_s", Q4_K, 14), ROW(Q4_1, "q4_1", Q4_1, 3), ROW(Q4_0, "q4_0", Q4_0, 2),
    ROW(IQ4_NL, "iq4_nl", IQ4_NL, 25), ROW(IQ4_XS, "iq4_xs", IQ4_XS, 30),
    ROW(Q3_K_L, "q3_k_l", Q3_K, 13), ROW(Q3_K_M, "q3_k_m", Q3_K, 12), ROW(Q3_K_S, "q3_k_s", Q3_K, 11),
    ROW(IQ3_M, "iq3_m", IQ3_S, 27), ROW(IQ3_S, "iq3_s", IQ3_S, 26), ROW(IQ3_XS, "iq3_xs", IQ3_S, 22),
    ROW(IQ3_XXS, "iq3_xxs", IQ3_XXS, 23),
    ROW(Q2_K, "q2_k", Q2_K, 10), ROW(Q2_K_S, "q2_k_s", Q2_K, 21),
    ROW(IQ2_M, "iq2_m", IQ2_S, 29), ROW(IQ2_S, "iq2_s", IQ2_XS, 28), ROW(IQ2_XS, "iq2_xs", IQ2_XS, 20),
    ROW(IQ2_XXS, "iq2_xxs", IQ2_XXS, 19),
    ROW(IQ1_M, "iq1_m", IQ1_M, 31), ROW(IQ1_S, "iq1_s", IQ1_S, 24),
    ROW(TQ2_0, "tq2_0", TQ2_0, 37), ROW(TQ1_0, "tq1_0", TQ1_0, 36),
    ROW(Q2_0, "q2_0", Q2_0, 41), ROW(Q1_0, "q1_0", Q1_0, 40),
    ROW(MXFP4_MOE, "mxfp4_moe", MXFP4, 38),
};
#undef ROW
// clang-format on

const frit_type_mix frit_mix_chosen = {"chosen", FRIT_MIX_COUNT, FRIT_DTYPE_Q4_K, -1};

// Floats: no rule changes them. Only matrices of `keep` are quantized.
static const frit_type_mix floats[] = {
    {"bf16", FRIT_MIX_COUNT, FRIT_DTYPE_BF16, 32},
    {"f16", FRIT_MIX_COUNT, FRIT_DTYPE_F16, 1},
    {"f32", FRIT_MIX_COUNT, FRIT_DTYPE_F32, 0},
};

static const struct {
    const char *name, *means;
} aliases[] = {{"q3_k", "q3_k_m"}, {"q4_k", "q4_k_m"}, {"q5_k", "q5_k_m"}};

const frit_type_mix *frit_mix_get(size_t i)
{
    return i < FRIT_COUNT(mixes) ? &mixes[i] : NULL;
}

static bool is_name(const char *name, const char *of_table)
{
    for (; *name && *of_table; name++, of_table++) {
        const char c = *name >= 'A' && *name <= 'Z' ? (char)(*name + 32) : *name;
        if (c != *of_table) return false;
    }
    return *name == *of_table;
}

const frit_type_mix *frit_mix_find(const char *name)
{
    for (size_t i = 0; i < FRIT_COUNT(aliases); i++)
        if (is_name(name, aliases[i].name)) name = aliases[i].means;
    for (size_t i = 0; i < FRIT_COUNT(mixes); i++)
        if (is_name(name, mixes[i].name)) return &mixes[i];
    for (size_t i = 0; i < FRIT_COUNT(floats); i++)
        if (is_name(name, floats[i].name)) return &floats[i];
    return NULL;
}

frit_status frit_mix_fail_unknown(const char *option, const char *name)
{
    frit_buf names = {0};
    for (size_t i = 0; i < FRIT_COUNT(mixes); i++) frit_buf_printf(&names, "%s%s", i > 0 ? ", " : "", mixes[i].name);
    for (size_t i = 0; i < FRIT_COUNT(floats); i++) frit_buf_printf(&names, ", %s", floats[i].name);
    const frit_status status = frit_fail(FRIT_E_INVALID, "%s is '%.40s', expected one of %s", option, name,
                                         names.data ? names.data : "the mixes");
    frit_buf_free(&names);
    return status;
}

// ------------------------------------------------------------------------------------- models

static int64_t find_number(const frit_meta *meta, frit_str arch, const char *name, int64_t fallback)
{
    char key[160];
    snprintf(key, sizeof key, "%.*s.%s", (int)arch.len, arch.ptr, name);
    const frit_value *value = frit_meta_find(meta, key);
    if (value && value->type == FRIT_VALUE_ARRAY && value->array.n > 0 && value->array.type <= FRIT_VALUE_I32)
        return frit_value_item_i64(value, 0);   // of layer 0
    bool found;
    int64_t number;
    const bool is_read = value && frit_meta_get_i64(meta, key, &number, &found) == FRIT_OK;
    return is_read ? number : fallback;
}

static frit_status read_model(frit_mix_model *model, const frit_checkpoint *ckpt, bool has_importance)
{
    bool found = false;
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, "general.architecture", &model->arch, &found));
    if (!found) model->arch = frit_str_of("");
    const int64_t n_head = find_number(&ckpt->meta, model->arch, "attention.head_count", 0);
    const int64_t n_head_kv = find_number(&ckpt->meta, model->arch, "attention.head_count_kv", n_head);
    model->n_layer = find_number(&ckpt->meta, model->arch, "block_count", 0);
    model->n_expert = find_number(&ckpt->meta, model->arch, "expert_count", 0);
    model->n_head_per_kv = n_head_kv > 0 ? n_head / n_head_kv : 0;
    model->is_70b = frit_mix_is_70b(model);
    model->has_importance = has_importance;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- tensors

static frit_kind kind_of(const char *name)
{
    static const struct {
        const char *part;
        frit_kind kind;
        bool is_whole;   // compares the whole name
    } rows[] = {
        {"output.weight", FRIT_KIND_OUTPUT, true},
        {"token_embd.weight", FRIT_KIND_TABLE, true},
        {"per_layer_token_embd.weight", FRIT_KIND_TABLE, true},
        {"attn_qkv.weight", FRIT_KIND_V, false},
        {"attn_kv_b.weight", FRIT_KIND_V, false},
        {"attn_v.weight", FRIT_KIND_V, false},
        {"attn_k.weight", FRIT_KIND_K, false},
        {"attn_q.weight", FRIT_KIND_Q, false},
        {"attn_output.weight", FRIT_KIND_ATTENTION_OUTPUT, false},
        {"ffn_up", FRIT_KIND_UP, false},
        {"ffn_gate", FRIT_KIND_GATE, false},
        {"ffn_down", FRIT_KIND_DOWN, false},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        if (rows[i].is_whole ? strcmp(name, rows[i].part) == 0 : strstr(name, rows[i].part) != NULL)
            return rows[i].kind;
    return FRIT_KIND_OTHER;
}

// Returns the layer of a name: "blk.12.attn_q.weight" -> 12; -1 outside layers.
static int64_t layer_of(const char *name)
{
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9') return -1;
    int64_t layer = 0;
    for (name += 4; *name >= '0' && *name <= '9' && layer < 1000000; name++) layer = 10 * layer + (*name - '0');
    return layer;
}

typedef struct ordered {
    const char *name;
    int64_t layer;
    size_t i;   // in the checkpoint
} ordered;

static int compare(const void *a, const void *b)
{
    const ordered *x = a, *y = b;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return strcmp(x->name, y->name);
}

static ordered *order_tensors(const frit_checkpoint *ckpt)
{
    ordered *list = calloc(ckpt->n_tensors + 1, sizeof *list);
    for (size_t i = 0; list && i < ckpt->n_tensors; i++)
        list[i] = (ordered){ckpt->tensors[i].name, layer_of(ckpt->tensors[i].name), i};
    if (list) qsort(list, ckpt->n_tensors, sizeof *list, compare);
    return list;
}

// ------------------------------------------------------------------------------------- types set by hand

typedef struct keep_rule {
    const char *text;
    frit_regex *regex;
    frit_dtype type;
    bool has_matched;   // matched a matrix, even if an earlier rule applied
} keep_rule;

typedef struct choice {
    const frit_mix_options *options;
    frit_mix_model model;
    keep_rule *rules;
    size_t n_rules;
    frit_matcher matcher;
    bool has_matcher;
    bool is_tied;
    int64_t n_v, counts[FRIT_KIND_COUNT];   // numbers so far, by kind
} choice;

static frit_status read_rule(const char *text, keep_rule *rule)
{
    const char *at = strrchr(text, '=');
    if (!at || at == text) return frit_fail(FRIT_E_INVALID, "keep: '%.80s' is not a rule, expected REGEX=TYPE", text);
    rule->text = text;
    if (!frit_dtype_from_name(at + 1, &rule->type) || frit_file_type_id(rule->type) < 0)
        return frit_fail(FRIT_E_INVALID, "keep: '%.80s': unknown type '%.40s', expected one like q8_0 or f16", text,
                         at + 1);
    const frit_status status = frit_regex_new(&rule->regex, (frit_str){text, (size_t)(at - text)}, FRIT_DIALECT_PLAIN);
    if (status == FRIT_OK || status == FRIT_E_MEMORY) return status;
    return frit_fail(FRIT_E_INVALID, "keep: '%.80s': %s", text, frit_error());
}

static frit_status read_rules(choice *c)
{
    const frit_option_list *keep = c->options->keep;
    const size_t n = keep ? keep->n : 0;
    if (n == 0) return FRIT_OK;
    FRIT_TRY(frit_matcher_init(&c->matcher));
    c->has_matcher = true;
    c->rules = calloc(n, sizeof *c->rules);
    if (!c->rules) return frit_fail_memory(n * sizeof *c->rules, "rules of types");
    for (; c->n_rules < n; c->n_rules++) FRIT_TRY(read_rule(keep->items[c->n_rules], &c->rules[c->n_rules]));
    return FRIT_OK;
}

// Applies the first rule that matches.
static frit_status keep_type(choice *c, const char *name, frit_dtype *type, bool *is_kept)
{
    const frit_str text = frit_str_of(name);
    *is_kept = false;
    for (size_t i = 0; i < c->n_rules; i++) {
        keep_rule *rule = &c->rules[i];
        size_t start, end;
        bool matches;
        frit_matcher_allow(&c->matcher, text.len);
        FRIT_TRY(frit_matcher_next(&c->matcher, rule->regex, text, 0, &start, &end, &matches));
        rule->has_matched |= matches;
        if (matches && !*is_kept) *type = rule->type;
        *is_kept |= matches;
    }
    return FRIT_OK;
}

// Fails for a rule that matches nothing, such as one with a typing error.
static frit_status check_rules(const choice *c)
{
    for (size_t i = 0; i < c->n_rules; i++)
        if (!c->rules[i].has_matched)
            return frit_fail(
                FRIT_E_INVALID,
                "keep: '%.80s' matches the name of no matrix that is quantized, expected one like ffn_down",
                c->rules[i].text);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- types

static frit_dtype type_by_mix(choice *c, const frit_tensor *tensor, frit_kind kind)
{
    const int64_t layer = layer_of(tensor->name);
    const bool is_own_kind = kind != FRIT_KIND_TABLE || !c->is_tied;
    const int64_t n_before = c->counts[kind]++;
    const frit_mix_tensor t = {
        .model = &c->model,
        .kind = is_own_kind ? kind : FRIT_KIND_OUTPUT,
        .base = c->options->mix->base,
        .width = tensor->shape[tensor->n_dims - 1],
        .n_matrices = tensor->n_dims > 2 ? tensor->shape[tensor->n_dims - 3] : 1,
        .i_v = n_before,
        .n_v = c->n_v,
        .i_layer = c->model.n_expert > 1 && layer >= 0 ? layer : n_before,
        .i_counted = n_before,
    };
    return frit_mix_apply(c->options->mix, &t);
}

// True if the native type is not larger than the mix's type.
static bool is_better(frit_dtype native, frit_dtype type, int64_t width)
{
    if (native == FRIT_DTYPE_COUNT) return false;
    const frit_dtype_info *a = frit_dtype_get(native), *b = frit_dtype_get(frit_convert_fit(type, width, true));
    return b->block_elems > 1 && (int64_t)a->block_bytes * b->block_elems <= (int64_t)b->block_bytes * a->block_elems;
}

static frit_status choose_one(choice *c, const frit_tensor *tensor, frit_dtype native, frit_dtype *type)
{
    const frit_mix_options *o = c->options;
    const frit_kind kind = kind_of(tensor->name);
    bool is_kept;
    *type = tensor->dtype;
    if (!frit_convert_is_mixed(tensor)) return FRIT_OK;
    FRIT_TRY(keep_type(c, tensor->name, type, &is_kept));
    const frit_dtype set = kind == FRIT_KIND_TABLE ? o->table : kind == FRIT_KIND_OUTPUT ? o->output : FRIT_DTYPE_COUNT;
    if (set != FRIT_DTYPE_COUNT) *type = set;
    if (is_kept || set != FRIT_DTYPE_COUNT) return FRIT_OK;
    if (o->chosen) {
        int64_t chosen;
        *type = frit_map_get(o->chosen, frit_str_of(tensor->name), &chosen) ? (frit_dtype)chosen : FRIT_DTYPE_COUNT;
        return FRIT_OK;
    }
    const bool is_output = kind == FRIT_KIND_TABLE && c->is_tied && o->output != FRIT_DTYPE_COUNT;
    *type = o->is_pure ? o->mix->base : type_by_mix(c, tensor, kind);
    if (is_output && !o->is_pure) *type = o->output;
    if (!o->is_pure && !is_output && is_better(native, *type, tensor->shape[tensor->n_dims - 1])) *type = native;
    return FRIT_OK;
}

static frit_status choose_types(choice *c, const frit_checkpoint *ckpt, frit_dtype *types)
{
    c->is_tied = true;
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_kind kind = kind_of(ckpt->tensors[i].name);
        c->n_v += kind == FRIT_KIND_V;
        c->is_tied &= kind != FRIT_KIND_OUTPUT;
    }
    FRIT_TRY(read_model(&c->model, ckpt, c->options->has_importance));
    FRIT_TRY(read_rules(c));
    ordered *list = order_tensors(ckpt);
    if (!list) return frit_fail_memory(ckpt->n_tensors * sizeof *list, "the order of tensors");
    frit_status status = FRIT_OK;
    const frit_dtype *natives = c->options->natives;
    for (size_t i = 0; i < ckpt->n_tensors && status == FRIT_OK; i++) {
        const size_t at = list[i].i;
        status = choose_one(c, &ckpt->tensors[at], natives ? natives[at] : FRIT_DTYPE_COUNT, &types[at]);
    }
    free(list);
    return status == FRIT_OK ? check_rules(c) : status;
}

frit_status frit_mix_types(const frit_checkpoint *ckpt, const frit_mix_options *options, frit_dtype *types)
{
    choice c = {.options = options};
    const frit_status status = choose_types(&c, ckpt, types);
    for (size_t i = 0; i < c.n_rules; i++) frit_regex_free(c.rules[i].regex);
    free(c.rules);
    if (c.has_matcher) frit_matcher_deinit(&c.matcher);
    return status;
}

bool frit_mix_needs_importance(const frit_type_mix *mix, const char *name, frit_dtype type)
{
    static const frit_dtype needing[] = {FRIT_DTYPE_IQ1_S,  FRIT_DTYPE_IQ1_M, FRIT_DTYPE_IQ2_XXS,
                                         FRIT_DTYPE_IQ2_XS, FRIT_DTYPE_IQ2_S, FRIT_DTYPE_IQ3_XXS};
    const frit_kind kind = kind_of(name);
    if (kind == FRIT_KIND_TABLE || kind == FRIT_KIND_OUTPUT) return false;
    for (size_t i = 0; i < FRIT_COUNT(needing); i++)
        if (needing[i] == type) return true;
    return type == FRIT_DTYPE_Q2_K && mix->id == FRIT_MIX_Q2_K_S;
}
