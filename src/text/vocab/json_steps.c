// SPDX-License-Identifier: MIT
// The steps of a tokenizer.json: one row for each type that Hugging Face's tokenizers library writes.
#include "text/vocab/vocab_file.h"

#include "text/tokenizer/pretok.h"

#include <jansson.h>

#define RUST_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"   // \w of Rust, joiners included

enum { MAX_STEPS = 64, MAX_NESTING = 8 };

static const char escaped_space[] = "\xe2\x96\x81";   // U+2581

// ------------------------------------------------------------------------------------- fields

static frit_str text_of(const json_t *json)
{
    return json_is_string(json) ? (frit_str){json_string_value(json), json_string_length(json)} : (frit_str){"", 0};
}

static frit_status copy_text(const json_t *json, frit_arena *arena, frit_str *out)
{
    frit_str text = text_of(json);
    *out = (frit_str){frit_arena_text(arena, text.ptr, text.len), text.len};
    return out->ptr ? FRIT_OK : frit_fail_memory(text.len, "a step of the tokenizer");
}

static bool flag_of(const json_t *step, const char *name, bool if_absent)
{
    const json_t *value = json_object_get(step, name);
    return json_is_boolean(value) ? json_is_true(value) : if_absent;
}

// Reads {"String": "a"} or {"Regex": "a+"}.
static frit_status read_pattern(const json_t *step, frit_regex **regex)
{
    const json_t *pattern = json_object_get(step, "pattern"), *text = json_object_get(pattern, "String");
    const json_t *source = json_object_get(pattern, "Regex");
    if (json_is_string(source)) return frit_regex_new(regex, text_of(source), FRIT_DIALECT_ONIGURUMA);
    if (json_is_string(text) && json_string_length(text) > 0) return frit_regex_new_literal(regex, text_of(text));
    return frit_fail(FRIT_E_FORMAT, "a step of type %.40s has no pattern",
                     json_string_value(json_object_get(step, "type")));
}

// Calls `add` for every step, also inside sequences.
static frit_status walk(const json_t *json, const char *list, int depth, void *ctx,
                        frit_status (*add)(void *ctx, const json_t *step, const char *type))
{
    if (!json) return FRIT_OK;
    const char *type = json_string_value(json_object_get(json, "type"));
    if (!type) return frit_fail(FRIT_E_FORMAT, "a step has no type");
    if (strcmp(type, "Sequence") != 0) return add(ctx, json, type);
    if (depth == MAX_NESTING) return frit_fail(FRIT_E_LIMIT, "sequences are nested too deep");
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(json, list), i, step) FRIT_TRY(walk(step, list, depth + 1, ctx, add));
    return FRIT_OK;
}

static frit_status fail_unknown(const char *type)
{
    return frit_fail(FRIT_E_UNSUPPORTED, "a step of type '%.40s' is not known", type);
}

typedef struct building {
    frit_vocab *vocab;
    frit_arena *arena;
} building;

// ------------------------------------------------------------------------------------- normalizers

typedef frit_status (*normalizer_reader)(const json_t *step, frit_normalizer *out, frit_arena *arena);

static frit_status read_bert(const json_t *step, frit_normalizer *out, frit_arena *arena)
{
    (void)arena;
    bool lower = flag_of(step, "lowercase", true);
    out->flags = (flag_of(step, "clean_text", true) ? FRIT_BERT_CLEAN : 0u) |
                 (flag_of(step, "handle_chinese_chars", true) ? FRIT_BERT_IDEOGRAPHS : 0u) |
                 (flag_of(step, "strip_accents", lower) ? FRIT_BERT_STRIP : 0u) | (lower ? FRIT_BERT_LOWER : 0u);
    return FRIT_OK;
}

static frit_status read_strip(const json_t *step, frit_normalizer *out, frit_arena *arena)
{
    (void)arena;
    out->flags = (flag_of(step, "strip_left", true) ? FRIT_STRIP_LEFT : 0u) |
                 (flag_of(step, "strip_right", true) ? FRIT_STRIP_RIGHT : 0u);
    return FRIT_OK;
}

static frit_status read_prepend(const json_t *step, frit_normalizer *out, frit_arena *arena)
{
    return copy_text(json_object_get(step, "prepend"), arena, &out->content);
}

static frit_status read_replace(const json_t *step, frit_normalizer *out, frit_arena *arena)
{
    FRIT_TRY(copy_text(json_object_get(step, "content"), arena, &out->content));
    const json_t *literal = json_object_get(json_object_get(step, "pattern"), "String");
    if (frit_str_is(text_of(literal), " ") && frit_str_is(out->content, escaped_space)) {
        out->apply = frit_normalizer_escape;
        return FRIT_OK;
    }
    return read_pattern(step, &out->regex);
}

static frit_status read_precompiled(const json_t *step, frit_normalizer *out, frit_arena *arena)
{
    frit_str bytes;
    FRIT_TRY(frit_base64_read(text_of(json_object_get(step, "precompiled_charsmap")), arena, &bytes));
    return frit_charsmap_init(&out->charsmap, bytes);
}

static const struct {
    const char *type;
    frit_status (*apply)(const frit_normalizer *normalizer, frit_str text, frit_buf *out);
    normalizer_reader read;
    unsigned flags;
} normalizers[] = {
    {"NFC", frit_normalizer_form, NULL, FRIT_FORM_NFC},
    {"NFD", frit_normalizer_form, NULL, FRIT_FORM_NFD},
    {"NFKC", frit_normalizer_form, NULL, FRIT_FORM_NFKC},
    {"NFKD", frit_normalizer_form, NULL, FRIT_FORM_NFKD},
    {"Lowercase", frit_normalizer_lowercase, NULL, 0},
    {"Strip", frit_normalizer_strip, read_strip, 0},
    {"StripAccents", frit_normalizer_strip_accents, NULL, 0},
    {"Replace", frit_normalizer_replace, read_replace, 0},
    {"Prepend", frit_normalizer_prepend, read_prepend, 0},
    {"BertNormalizer", frit_normalizer_bert, read_bert, 0},
    {"Precompiled", frit_normalizer_precompiled, read_precompiled, 0},
    {"Nmt", frit_normalizer_nmt, NULL, 0},
    {"ByteLevel", frit_normalizer_byte_level, NULL, 0},
};

static frit_status add_normalizer(void *ctx, const json_t *step, const char *type)
{
    const building *b = ctx;
    frit_pipeline *pipeline = &b->vocab->pipeline;
    for (size_t i = 0; i < FRIT_COUNT(normalizers); i++) {
        if (strcmp(normalizers[i].type, type) != 0) continue;
        if (pipeline->n_norms == MAX_STEPS) return frit_fail(FRIT_E_LIMIT, "there are more than %d steps", MAX_STEPS);
        frit_normalizer *out = &pipeline->norms[pipeline->n_norms++];
        *out = (frit_normalizer){.apply = normalizers[i].apply, .flags = normalizers[i].flags};
        return normalizers[i].read ? normalizers[i].read(step, out, b->arena) : FRIT_OK;
    }
    return fail_unknown(type);
}

frit_status frit_json_read_normalizer(frit_vocab *vocab, const json_t *json, frit_arena *arena)
{
    vocab->pipeline.norms = frit_arena_new(arena, frit_normalizer, MAX_STEPS);
    if (!vocab->pipeline.norms) return frit_fail_memory(MAX_STEPS * sizeof(frit_normalizer), "the normalizers");
    return walk(json, "normalizers", 0, &(building){vocab, arena}, add_normalizer);
}

// ------------------------------------------------------------------------------------- cuts

typedef frit_status (*cut_reader)(const json_t *step, frit_cut *out, frit_arena *arena);

static frit_status read_behavior(const json_t *step, frit_cut *out)
{
    static const struct {
        const char *name;
        frit_split split;
    } rows[] = {
        {"Isolated", FRIT_SPLIT_ISOLATED},
        {"Removed", FRIT_SPLIT_REMOVED},
        {"MergedWithPrevious", FRIT_SPLIT_WITH_PREVIOUS},
        {"MergedWithNext", FRIT_SPLIT_WITH_NEXT},
        {"Contiguous", FRIT_SPLIT_CONTIGUOUS},
    };
    const char *name = json_string_value(json_object_get(step, "behavior"));
    if (!name) return FRIT_OK;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        out->split = rows[i].split;
        return FRIT_OK;
    }
    return frit_fail(FRIT_E_UNSUPPORTED, "the behavior '%.40s' of a split is not known", name);
}

static frit_status cut_split(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)arena;
    out->invert = flag_of(step, "invert", false);
    FRIT_TRY(read_behavior(step, out));
    return read_pattern(step, &out->regex);
}

static frit_status cut_byte_level(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)arena;
    out->spell = true;
    out->space = frit_str_of(" ");
    if (flag_of(step, "add_prefix_space", true)) out->prefix = FRIT_PREFIX_ALWAYS;
    if (!flag_of(step, "use_regex", true)) return FRIT_OK;
    return frit_regex_new(&out->regex, frit_str_of(frit_pretok_gpt2()), FRIT_DIALECT_PLAIN);
}

static frit_prefix prefix_of(const json_t *step)
{
    const char *scheme = json_string_value(json_object_get(step, "prepend_scheme"));
    if (!scheme) return flag_of(step, "add_prefix_space", true) ? FRIT_PREFIX_ALWAYS : FRIT_PREFIX_NEVER;
    return strcmp(scheme, "first") == 0   ? FRIT_PREFIX_FIRST
           : strcmp(scheme, "never") == 0 ? FRIT_PREFIX_NEVER
                                          : FRIT_PREFIX_ALWAYS;
}

static frit_status cut_metaspace(const json_t *step, frit_cut *out, frit_arena *arena)
{
    FRIT_TRY(copy_text(json_object_get(step, "replacement"), arena, &out->space));
    if (out->space.len == 0) out->space = frit_str_of(escaped_space);
    out->replace = true;
    out->prefix = prefix_of(step);
    out->split = FRIT_SPLIT_WITH_NEXT;
    return flag_of(step, "split", true) ? frit_regex_new_literal(&out->regex, out->space) : FRIT_OK;
}

static frit_status cut_whitespace(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)step, (void)arena;
    out->split = FRIT_SPLIT_REMOVED;
    out->invert = true;
    return frit_regex_new(&out->regex, frit_str_of("[" RUST_WORD "]+|[^" RUST_WORD "\\s]+"), FRIT_DIALECT_PLAIN);
}

static frit_status cut_whitespace_split(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)step, (void)arena;
    out->split = FRIT_SPLIT_REMOVED;
    return frit_regex_new(&out->regex, frit_str_of("\\s"), FRIT_DIALECT_PLAIN);
}

static frit_status cut_punctuation(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)arena;
    FRIT_TRY(read_behavior(step, out));
    return frit_regex_new(&out->regex, frit_str_of(FRIT_PUNCTUATION), FRIT_DIALECT_PLAIN);
}

static frit_status cut_digits(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)arena;
    out->split = flag_of(step, "individual_digits", false) ? FRIT_SPLIT_ISOLATED : FRIT_SPLIT_CONTIGUOUS;
    return frit_regex_new(&out->regex, frit_str_of("\\p{N}"), FRIT_DIALECT_PLAIN);
}

static frit_status cut_delimiter(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)arena;
    frit_str delimiter = text_of(json_object_get(step, "delimiter"));
    if (delimiter.len == 0) return frit_fail(FRIT_E_FORMAT, "a CharDelimiterSplit has no delimiter");
    out->split = FRIT_SPLIT_REMOVED;
    return frit_regex_new_literal(&out->regex, delimiter);
}

static frit_status cut_fixed(const json_t *step, frit_cut *out, frit_arena *arena)
{
    (void)arena;
    json_int_t n = json_integer_value(json_object_get(step, "length"));
    if (n < 1 || n > 65535) return frit_fail(FRIT_E_UNSUPPORTED, "a FixedLength of %lld is not possible", (long long)n);
    frit_buf regex = {0};
    frit_buf_printf(&regex, "(?s:.){1,%d}", (int)n);
    frit_status status = regex.failed ? frit_fail_memory(32, "a regex")
                                      : frit_regex_new(&out->regex, frit_str_of(regex.data), FRIT_DIALECT_PLAIN);
    frit_buf_free(&regex);
    return status;
}

static const struct {
    const char *type;
    cut_reader read;
} cuts[] = {
    {"ByteLevel", cut_byte_level},    {"Split", cut_split},
    {"Metaspace", cut_metaspace},     {"Whitespace", cut_whitespace},
    {"Punctuation", cut_punctuation}, {"WhitespaceSplit", cut_whitespace_split},
    {"Digits", cut_digits},           {"CharDelimiterSplit", cut_delimiter},
    {"FixedLength", cut_fixed},
};

static frit_status add_cut(void *ctx, const json_t *step, const char *type)
{
    const building *b = ctx;
    frit_pipeline *pipeline = &b->vocab->pipeline;
    if (pipeline->n_cuts + 2 > MAX_STEPS) return frit_fail(FRIT_E_LIMIT, "there are more than %d steps", MAX_STEPS);
    if (strcmp(type, "BertPreTokenizer") == 0) return frit_cut_add_bert(pipeline);
    for (size_t i = 0; i < FRIT_COUNT(cuts); i++) {
        if (strcmp(cuts[i].type, type) != 0) continue;
        frit_cut *out = &pipeline->cuts[pipeline->n_cuts++];
        *out = (frit_cut){0};
        return cuts[i].read(step, out, b->arena);
    }
    return fail_unknown(type);
}

frit_status frit_json_read_cuts(frit_vocab *vocab, const json_t *json, frit_arena *arena)
{
    frit_pipeline *pipeline = &vocab->pipeline;
    pipeline->cuts = frit_arena_new(arena, frit_cut, MAX_STEPS);
    if (!pipeline->cuts) return frit_fail_memory(MAX_STEPS * sizeof(frit_cut), "the pre-tokenizers");
    FRIT_TRY(walk(json, "pretokenizers", 0, &(building){vocab, arena}, add_cut));
    // If letters for bytes would be the last step, BPE works on the bytes themselves.
    frit_cut *last = pipeline->n_cuts > 0 ? &pipeline->cuts[pipeline->n_cuts - 1] : NULL;
    pipeline->bytes = last && last->spell && strcmp(vocab->model, "bpe") == 0 && vocab->inner_prefix.len == 0 &&
                      vocab->word_suffix.len == 0;
    pipeline->letters = pipeline->bytes;
    if (pipeline->bytes) last->spell = false;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- decoders

static frit_status add_replacement(frit_decoding *rules, frit_str from, frit_str to)
{
    if (rules->n_replacements == (int)FRIT_COUNT(rules->replacements))
        return frit_fail(FRIT_E_LIMIT, "there are more than %d replacements", rules->n_replacements);
    rules->replacements[rules->n_replacements++] = (struct frit_replacement){from, to};
    return FRIT_OK;
}

static frit_status decode_replace(const json_t *step, frit_decoding *rules, frit_arena *arena)
{
    frit_str from, to;
    FRIT_TRY(copy_text(json_object_get(json_object_get(step, "pattern"), "String"), arena, &from));
    FRIT_TRY(copy_text(json_object_get(step, "content"), arena, &to));
    if (from.len == 0) return frit_fail(FRIT_E_UNSUPPORTED, "a Replace without a String as its pattern");
    if (frit_str_is(from, escaped_space) && frit_str_is(to, " ")) {
        rules->escaped = true;
        return FRIT_OK;
    }
    return add_replacement(rules, from, to);
}

static frit_status decode_byte_level(const json_t *step, frit_decoding *rules, frit_arena *arena)
{
    (void)step, (void)arena;
    rules->letters = true;
    return FRIT_OK;
}

static frit_status decode_metaspace(const json_t *step, frit_decoding *rules, frit_arena *arena)
{
    frit_str from;
    FRIT_TRY(copy_text(json_object_get(step, "replacement"), arena, &from));
    rules->strip_first = prefix_of(step) != FRIT_PREFIX_NEVER;
    rules->escaped = from.len == 0 || frit_str_is(from, escaped_space);
    return rules->escaped ? FRIT_OK : add_replacement(rules, from, frit_str_of(" "));
}

static frit_status decode_strip(const json_t *step, frit_decoding *rules, frit_arena *arena)
{
    (void)arena;
    json_int_t start = json_integer_value(json_object_get(step, "start")),
               stop = json_integer_value(json_object_get(step, "stop"));
    if (!frit_str_is(text_of(json_object_get(step, "content")), " ") || stop != 0 || start < 0 || start > INT32_MAX)
        return frit_fail(FRIT_E_UNSUPPORTED, "a Strip of anything but spaces at the start");
    rules->strip_start = (int)start;
    return FRIT_OK;
}

static frit_status decode_wordpiece(const json_t *step, frit_decoding *rules, frit_arena *arena)
{
    rules->spaced = true;
    rules->cleanup = flag_of(step, "cleanup", true);
    return copy_text(json_object_get(step, "prefix"), arena, &rules->continuing);
}

static frit_status decode_bpe(const json_t *step, frit_decoding *rules, frit_arena *arena)
{
    rules->spaced = true;
    return copy_text(json_object_get(step, "suffix"), arena, &rules->word_end);
}

// A decoder that needs no rule: bytes are recognised by their kind, and pieces are always joined.
static frit_status decode_nothing(const json_t *step, frit_decoding *rules, frit_arena *arena)
{
    (void)step, (void)rules, (void)arena;
    return FRIT_OK;
}

static const struct {
    const char *type;
    frit_status (*read)(const json_t *step, frit_decoding *rules, frit_arena *arena);
} decoders[] = {
    {"ByteLevel", decode_byte_level}, {"Replace", decode_replace},      {"Metaspace", decode_metaspace},
    {"Strip", decode_strip},          {"WordPiece", decode_wordpiece},  {"BPEDecoder", decode_bpe},
    {"Fuse", decode_nothing},         {"ByteFallback", decode_nothing},
};

static frit_status add_decoder(void *ctx, const json_t *step, const char *type)
{
    const building *b = ctx;
    if (strcmp(type, "ByteFallback") == 0) frit_vocab_mark_bytes(b->vocab);
    for (size_t i = 0; i < FRIT_COUNT(decoders); i++)
        if (strcmp(decoders[i].type, type) == 0) return decoders[i].read(step, &b->vocab->pipeline.decoding, b->arena);
    return fail_unknown(type);
}

frit_status frit_json_read_decoder(frit_vocab *vocab, const json_t *json, frit_arena *arena)
{
    if (!json) vocab->pipeline.decoding.spaced = true;   // pieces are words, with spaces between them
    return walk(json, "decoders", 0, &(building){vocab, arena}, add_decoder);
}

// ------------------------------------------------------------------------------------- what is put around a text

typedef struct around {
    frit_token before[MAX_STEPS], after[MAX_STEPS];
    int32_t n_before, n_after;
} around;

static frit_status put(frit_token *list, int32_t *n, const frit_vocab *vocab, const json_t *id)
{
    json_int_t value = json_is_integer(id) ? json_integer_value(id) : -1;
    if (value < 0 || value >= vocab->n)
        return frit_fail(FRIT_E_FORMAT, "it puts token %lld around a text, but there are %d tokens", (long long)value,
                         (int)vocab->n);
    if (*n == MAX_STEPS) return frit_fail(FRIT_E_LIMIT, "it puts more than %d tokens around a text", MAX_STEPS);
    list[(*n)++] = (frit_token)value;
    return FRIT_OK;
}

static frit_status read_special(const json_t *step, const json_t *part, const frit_vocab *vocab, bool after,
                                around *out)
{
    const char *name = json_string_value(json_object_get(part, "id"));
    const json_t *ids =
        json_object_get(json_object_get(json_object_get(step, "special_tokens"), name ? name : ""), "ids");
    size_t i;
    json_t *id;
    json_array_foreach(ids, i, id)
        FRIT_TRY(put(after ? out->after : out->before, after ? &out->n_after : &out->n_before, vocab, id));
    return FRIT_OK;
}

static frit_status read_template(const json_t *step, const frit_vocab *vocab, around *out)
{
    size_t i;
    json_t *part;
    bool after = false;
    json_array_foreach(json_object_get(step, "single"), i, part)
    {
        const json_t *special = json_object_get(part, "SpecialToken");
        after |= json_object_get(part, "Sequence") != NULL;
        if (special) FRIT_TRY(read_special(step, special, vocab, after, out));
    }
    return FRIT_OK;
}

// Reads the token between two texts, after the tokens that end the first text.
static frit_status read_pair(const json_t *step, frit_vocab *vocab, int32_t n_suffix)
{
    around between = {0};
    size_t i;
    json_t *part;
    int n_texts = 0;
    json_array_foreach(json_object_get(step, "pair"), i, part)
    {
        const json_t *special = json_object_get(part, "SpecialToken");
        n_texts += json_object_get(part, "Sequence") != NULL;
        if (special && n_texts == 1) FRIT_TRY(read_special(step, special, vocab, true, &between));
    }
    if (between.n_after == n_suffix + 1) vocab->pair_sep = between.after[n_suffix];
    return FRIT_OK;
}

static frit_status add_around(void *ctx, const json_t *step, const char *type)
{
    const building *b = ctx;
    frit_vocab *vocab = b->vocab;
    around inner = {0}, outer = {0};
    if (strcmp(type, "TemplateProcessing") == 0) {
        FRIT_TRY(read_template(step, vocab, &outer));
        FRIT_TRY(read_pair(step, vocab, outer.n_after));
    } else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        FRIT_TRY(put(outer.before, &outer.n_before, vocab, json_array_get(json_object_get(step, "cls"), 1)));
        FRIT_TRY(put(outer.after, &outer.n_after, vocab, json_array_get(json_object_get(step, "sep"), 1)));
        if (type[0] == 'R') vocab->pair_sep = outer.after[0];   // RoBERTa writes its separator twice
    } else if (strcmp(type, "ByteLevel") != 0) {
        return fail_unknown(type);
    }
    if (vocab->n_prefix + outer.n_before > MAX_STEPS || vocab->n_suffix + outer.n_after > MAX_STEPS)
        return frit_fail(FRIT_E_LIMIT, "it puts more than %d tokens around a text", MAX_STEPS);
    if (vocab->n_prefix > 0) memcpy(inner.before, vocab->prefix, (size_t)vocab->n_prefix * sizeof *vocab->prefix);
    for (int32_t i = 0; i < outer.n_before; i++) vocab->prefix[i] = outer.before[i];
    for (int32_t i = 0; i < vocab->n_prefix; i++) vocab->prefix[outer.n_before + i] = inner.before[i];
    vocab->n_prefix += outer.n_before;
    for (int32_t i = 0; i < outer.n_after; i++) vocab->suffix[vocab->n_suffix++] = outer.after[i];
    return FRIT_OK;
}

frit_status frit_json_read_template(frit_vocab *vocab, const json_t *json, frit_arena *arena)
{
    vocab->prefix = frit_arena_new(arena, frit_token, MAX_STEPS);
    vocab->suffix = frit_arena_new(arena, frit_token, MAX_STEPS);
    if (!vocab->prefix || !vocab->suffix) return frit_fail_memory(MAX_STEPS * sizeof(frit_token), "a list of tokens");
    return walk(json, "processors", 0, &(building){vocab, arena}, add_around);
}
