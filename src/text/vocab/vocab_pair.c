// SPDX-License-Identifier: MIT
// Folders with the parts of a tokenizer and no tokenizer.json: vocab.json with merges.txt, or vocab.txt. The other
// properties follow from the tokenizer's class, as in transformers. The result is the text of a tokenizer.json.
#include "base/file/file.h"
#include "base/word_list.h"
#include "format/json.h"
#include "text/answer/values.h"
#include "text/vocab/vocab_file.h"

#include <stdlib.h>

static const uint64_t max_bytes = 64 << 20;
static const char json_name[] = "vocab.json", merges_name[] = "merges.txt", lines_name[] = "vocab.txt";

// Special tokens, in the order in which those missing in the vocabulary get ids.
enum { BOS, EOS, UNK, SEP, PAD, CLS, MASK, N_ROLES };
static const char *const role_names[N_ROLES] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                                "pad_token", "cls_token", "mask_token"};

typedef struct tokenizer_class {
    const char *names;   // class names without "Fast"; model_types are those that have this class without a
                         // tokenizer_class
    const char *model_types;
    const char *roles[N_ROLES];   // default special tokens
    bool has_lines;               // a vocab.txt for WordPiece; otherwise byte-level BPE
    bool is_qwen;                 // uses Qwen's normalizer and pattern
    bool is_wrapped;              // cls_token and sep_token are put around a text
} tokenizer_class;

#define END_OF_TEXT "<|endoftext|>"
static const tokenizer_class classes[] = {
    {.names = "GPT2Tokenizer|CodeGenTokenizer",
     .model_types = "gpt2|gptj|phi|starcoder2",
     .roles = {END_OF_TEXT, END_OF_TEXT, END_OF_TEXT}},
    {.names = "GPTNeoXTokenizer",
     .model_types = "gpt_neox|mamba|mamba2|mpt|olmo|olmoe",
     .roles = {END_OF_TEXT, END_OF_TEXT, END_OF_TEXT, NULL, "<|padding|>"}},
    {.names = "Qwen2Tokenizer",
     .model_types = "qwen2|qwen2_moe|qwen3|qwen3_moe|qwen3_next",
     .roles = {NULL, END_OF_TEXT, END_OF_TEXT, NULL, END_OF_TEXT},
     .is_qwen = true},
    {.names = "RobertaTokenizer|BartTokenizer|LongformerTokenizer",
     .model_types = "roberta",
     .roles = {"<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"},
     .is_wrapped = true},
    {.names = "BertTokenizer|DistilBertTokenizer|ElectraTokenizer",
     .model_types = "bert",
     .roles = {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"},
     .has_lines = true,
     .is_wrapped = true},
};

typedef struct parts {
    const char *folder;
    json_t *config;   // tokenizer_config.json
    json_t *model;    // config.json
    json_t *vocab;    // pieces with their ids
    char *pieces, *merges;
    size_t n_pieces, n_merges;   // sizes in bytes
    const tokenizer_class *is;
    json_int_t n_ids;
    frit_buf out;
} parts;

static bool read_file(const char *folder, const char *name, char **text, size_t *n)
{
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/%s", folder, name);
    const bool is_there = !path.failed && frit_path_get_kind(path.data) == FRIT_PATH_FILE &&
                          (!text || frit_file_read(path.data, max_bytes, text, n) == FRIT_OK);
    frit_buf_free(&path);
    return is_there;
}

bool frit_vocab_pair_is_in(const char *folder)
{
    return (read_file(folder, json_name, NULL, NULL) && read_file(folder, merges_name, NULL, NULL)) ||
           read_file(folder, lines_name, NULL, NULL);
}

static json_t *read_json(const char *folder, const char *name)
{
    char *text = NULL;
    size_t n = 0;
    json_t *json = read_file(folder, name, &text, &n) ? frit_json_read(text, n, JSON_ALLOW_NUL, NULL) : NULL;
    free(text);
    return json;
}

// ------------------------------------------------------------------------------------- the class

static frit_status find_class(parts *p)
{
    const char *name = json_string_value(json_object_get(p->config, "tokenizer_class"));
    const char *type = json_string_value(json_object_get(p->model, "model_type"));
    if (!name) name = json_string_value(json_object_get(p->model, "tokenizer_class"));
    size_t n = name ? strlen(name) : 0;
    if (n > 4 && strcmp(name + n - 4, "Fast") == 0) n -= 4;
    for (size_t i = 0; i < FRIT_COUNT(classes) && !p->is; i++)
        if (name ? frit_word_list_has(classes[i].names, "|", (frit_str){name, n})
                 : type && frit_word_list_has(classes[i].model_types, "|", frit_str_of(type)))
            p->is = &classes[i];
    if (p->is) return FRIT_OK;
    return frit_fail_file(
        FRIT_E_UNSUPPORTED,
        "%s: has no tokenizer.json, and %s%s of %s is not supported, expected a tokenizer_class GPT2Tokenizer, "
        "GPTNeoXTokenizer, Qwen2Tokenizer or RobertaTokenizer with vocab.json and merges.txt, or BertTokenizer "
        "with vocab.txt",
        p->folder, name ? "the tokenizer_class " : "no tokenizer_class for a model ", name ? name : "",
        name   ? "tokenizer_config.json"
        : type ? type
               : "without a model_type");
}

// ------------------------------------------------------------------------------------- pieces

// Reads the next line without its end; false at the end of the text.
static bool next_line(const char **at, const char *end, frit_str *line)
{
    if (*at >= end) return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    const char *stop = newline ? newline : end;
    *line = (frit_str){*at, (size_t)(stop - *at)};
    if (line->len > 0 && line->ptr[line->len - 1] == '\r') line->len--;
    *at = newline ? newline + 1 : end;
    return true;
}

// Reads vocab.txt. A line is a piece, its number the id; the last of equal lines is used.
static frit_status number_lines(parts *p)
{
    const char *at = p->pieces, *end = p->pieces + p->n_pieces;
    frit_str line;
    p->vocab = json_object();
    while (p->vocab && next_line(&at, end, &line)) {
        if (json_object_setn_new(p->vocab, line.ptr, line.len, json_integer(p->n_ids++)) != 0)
            return frit_fail_file(FRIT_E_FORMAT, "%s/%s: line %lld is not UTF-8", p->folder, lines_name,
                                  (long long)p->n_ids);
    }
    return p->vocab ? FRIT_OK : frit_fail_memory(p->n_pieces, lines_name);
}

static frit_status read_pieces(parts *p)
{
    const char *name = p->is->has_lines ? lines_name : json_name;
    if (!read_file(p->folder, name, &p->pieces, &p->n_pieces))
        return frit_fail_file(FRIT_E_NOT_FOUND, "%s: %.*s needs a %s", p->folder, (int)strcspn(p->is->names, "|"),
                              p->is->names, name);
    if (p->is->has_lines) return number_lines(p);
    json_error_t error;
    p->vocab = frit_json_read(p->pieces, p->n_pieces, JSON_ALLOW_NUL, &error);
    if (!json_is_object(p->vocab))
        return frit_fail_file(FRIT_E_FORMAT, "%s/%s: not a JSON object, expected pieces with their ids", p->folder,
                              name);
    const char *piece;
    json_t *id;
    json_object_foreach(p->vocab, piece, id) if (json_is_integer(id) && json_integer_value(id) >= p->n_ids) p->n_ids =
        json_integer_value(id) + 1;
    if (read_file(p->folder, merges_name, &p->merges, &p->n_merges)) return FRIT_OK;
    return frit_fail_file(FRIT_E_NOT_FOUND, "%s: has a %s and no %s, expected both", p->folder, json_name, merges_name);
}

// ------------------------------------------------------------------------------------- the text

static bool flag(const parts *p, const char *name, bool otherwise)
{
    const json_t *value = json_object_get(p->config, name);
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static const json_t *role_token(const parts *p, int role)
{
    return json_object_get(p->config, role_names[role]);
}

static const char *role_text(const parts *p, int role)
{
    const json_t *own = role_token(p, role);
    if (json_is_object(own)) own = json_object_get(own, "content");
    return own ? json_string_value(own) : p->is->roles[role];
}

static long long id_of(const parts *p, const char *piece)
{
    return (long long)json_integer_value(json_object_get(p->vocab, piece));
}

// Adds a special token, or a token of added_tokens.json. A token that the vocabulary lacks gets the next id.
static void add_token(parts *p, const char *piece, const json_t *own, bool is_special)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized"};
    if (!json_object_get(p->vocab, piece)) json_object_set_new(p->vocab, piece, json_integer(p->n_ids++));
    if (p->out.data[p->out.len - 1] != '[') frit_buf_char(&p->out, ',');
    frit_buf_printf(&p->out, "{\"id\":%lld,\"special\":%s", id_of(p, piece), is_special ? "true" : "false");
    for (size_t i = 0; i < FRIT_COUNT(flags); i++)
        frit_buf_printf(&p->out, ",\"%s\":%s", flags[i],
                        json_is_true(json_object_get(own, flags[i])) ? "true" : "false");
    frit_buf_text(&p->out, ",\"content\":");
    frit_json_quote(frit_str_of(piece), &p->out);
    frit_buf_char(&p->out, '}');
}

static void add_tokens(parts *p)
{
    json_t *added = read_json(p->folder, "added_tokens.json"), *id;
    const char *piece;
    frit_buf_text(&p->out, "{\"added_tokens\":[");
    json_object_foreach(added, piece, id) add_token(p, piece, NULL, false);
    for (int role = 0; role < N_ROLES; role++) {
        const char *text = role_text(p, role);
        bool is_known = !text || !*text;
        for (int before = 0; before < role && !is_known; before++)
            is_known = role_text(p, before) && strcmp(role_text(p, before), text) == 0;
        if (!is_known) add_token(p, text, role_token(p, role), true);
    }
    json_decref(added);
    frit_buf_text(&p->out, "]");
}

static void add_pair(parts *p, const char *key, const char *piece)
{
    frit_buf_printf(&p->out, ",\"%s\":[", key);
    frit_json_quote(frit_str_of(piece ? piece : ""), &p->out);
    frit_buf_printf(&p->out, ",%lld]", piece ? id_of(p, piece) : 0);
}

static void add_template(parts *p)
{
    if (!p->is->is_wrapped) return;
    frit_buf_text(&p->out, ",\"post_processor\":{\"type\":\"BertProcessing\"");
    add_pair(p, "sep", role_text(p, SEP));
    add_pair(p, "cls", role_text(p, CLS));
    frit_buf_text(&p->out, "}");
}

static void add_bert_steps(parts *p)
{
    const json_t *strip = json_object_get(p->config, "strip_accents");
    frit_buf_printf(&p->out,
                    ",\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":%s,"
                    "\"strip_accents\":%s,\"lowercase\":%s},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
                    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
                    flag(p, "tokenize_chinese_chars", true) ? "true" : "false",
                    !json_is_boolean(strip) ? "null"
                    : json_is_true(strip)   ? "true"
                                            : "false",
                    flag(p, "do_lower_case", true) ? "true" : "false");
}

static void add_byte_level_steps(parts *p)
{
    static const char pattern[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "
                                  "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+";
    const char *prefix = flag(p, "add_prefix_space", false) ? "true" : "false";
    if (p->is->is_qwen)
        frit_buf_printf(
            &p->out,
            ",\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
            "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"Isolated\",\"invert\":false},"
            "{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,\"use_regex\":false}]}",
            pattern, prefix);
    else
        frit_buf_printf(&p->out,
                        ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,"
                        "\"use_regex\":true}",
                        prefix);
    frit_buf_text(&p->out, ",\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}");
}

static void add_merges(parts *p)
{
    const char *at = p->merges, *end = p->merges + p->n_merges;
    frit_str line;
    bool is_first = true;
    frit_buf_text(&p->out, ",\"merges\":[");
    while (next_line(&at, end, &line)) {
        if (line.len == 0 || frit_str_starts(line, "#version")) continue;
        if (!is_first) frit_buf_char(&p->out, ',');
        is_first = false;
        frit_json_quote(line, &p->out);
    }
    frit_buf_text(&p->out, "]");
}

// Adds the model. `pieces` is the contents of the vocabulary's file, without added tokens.
static void add_model(parts *p, const char *pieces)
{
    const char *unknown = role_text(p, UNK);
    frit_buf_printf(&p->out, ",\"model\":{\"type\":\"%s\",\"continuing_subword_prefix\":\"%s\"",
                    p->is->has_lines ? "WordPiece" : "BPE", p->is->has_lines ? "##" : "");
    if (p->is->has_lines && unknown) {
        frit_buf_text(&p->out, ",\"max_input_chars_per_word\":100,\"unk_token\":");
        frit_json_quote(frit_str_of(unknown), &p->out);
    }
    frit_buf_text(&p->out, ",\"vocab\":");
    frit_buf_text(&p->out, pieces);
    if (!p->is->has_lines) add_merges(p);
    frit_buf_text(&p->out, "}}");
}

static frit_status compose(parts *p)
{
    FRIT_TRY(find_class(p));
    FRIT_TRY(read_pieces(p));
    char *pieces = json_dumps(p->vocab, JSON_COMPACT);
    if (!pieces) return frit_fail_memory(p->n_pieces, json_name);
    add_tokens(p);
    if (p->is->has_lines)
        add_bert_steps(p);
    else
        add_byte_level_steps(p);
    add_template(p);
    add_model(p, pieces);
    free(pieces);
    return p->out.failed ? frit_fail_memory(p->out.len, "a tokenizer") : FRIT_OK;
}

// Sets the roles that tokenizer_config.json leaves to the class. The file itself is read later.
static void set_roles(const parts *p, frit_vocab *vocab)
{
    frit_token *const ids[N_ROLES] = {
        [BOS] = &vocab->bos, [EOS] = &vocab->eos, [SEP] = &vocab->sep,
        [PAD] = &vocab->pad, [CLS] = &vocab->bos, [MASK] = &vocab->mask,
    };
    for (int role = 0; role < N_ROLES; role++) {
        const char *text = role_text(p, role);
        const frit_token id = text && ids[role] ? frit_vocab_find(vocab, frit_str_of(text)) : -1;
        if (id >= 0) *ids[role] = id;
    }
}

frit_status frit_vocab_pair_read(frit_vocab *vocab, const char *folder, frit_arena *arena, const frit_log *log)
{
    parts p = {.folder = folder};
    p.config = read_json(folder, "tokenizer_config.json");
    if (!p.config) p.config = read_json(folder, "special_tokens_map.json");
    p.model = read_json(folder, "config.json");
    frit_status status = compose(&p);
    if (status == FRIT_OK) {
        vocab->text = p.out.data;
        status = frit_vocab_json.read(vocab, (frit_str){p.out.data, p.out.len}, folder, arena, log);
    } else {
        frit_buf_free(&p.out);
    }
    if (status == FRIT_OK) set_roles(&p, vocab);
    json_decref(p.config);
    json_decref(p.model);
    json_decref(p.vocab);
    free(p.pieces);
    free(p.merges);
    return status;
}
