// SPDX-License-Identifier: MIT
// Recognises kinds of files by their first bytes.
#include "hub/kind.h"

#include "common/text_file.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

typedef struct head {
    const char *bytes;
    size_t n;
} head;

static bool begins(head h, const char *with)
{
    const size_t n = strlen(with);
    return h.n >= n && memcmp(h.bytes, with, n) == 0;
}

// The text after a byte order mark and blanks.
static head text_of(head h)
{
    size_t at = app_mark_bytes(h.bytes, h.n);
    while (at < h.n && isspace((unsigned char)h.bytes[at])) at++;
    return (head){h.bytes + at, h.n - at};
}

static bool is_page(head h)
{
    static const char *const tags[] = {"<!doctype", "<html", "<head", "<body", "<?xml", "<meta", "<script"};
    const head text = text_of(h);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++)
        if (text.n >= strlen(tags[i]) && strncasecmp(text.bytes, tags[i], strlen(tags[i])) == 0) return true;
    return false;
}

static bool is_pointer(head h)
{
    return begins(h, "version https://git-lfs.");
}

static bool is_json(head h)
{
    const head text = text_of(h);
    return text.n > 0 && (text.bytes[0] == '{' || text.bytes[0] == '[');
}

static bool is_gguf(head h)
{
    return begins(h, "GGUF");
}

static uint64_t number(const char *bytes, int n)
{
    uint64_t value = 0;
    for (int i = n - 1; i >= 0; i--) value = value << 8 | (unsigned char)bytes[i];
    return value;
}

// True for the size of a JSON object, followed by the object.
static bool is_safetensors(head h)
{
    return h.n > 8 && h.bytes[8] == '{' && number(h.bytes, 8) < (uint64_t)1 << 32;
}

// True for a SentencePiece model, whose first field is a piece.
static bool is_pieces(head h)
{
    return h.n > 2 && h.bytes[0] == 0x0a && h.bytes[2] == 0x0a;
}

// True for "IQ== 0": a token in base64 and its rank.
static bool is_ranks(head h)
{
    size_t at = 0;
    while (at < h.n && (isalnum((unsigned char)h.bytes[at]) || strchr("+/=", h.bytes[at])) && h.bytes[at]) at++;
    return at > 0 && at + 1 < h.n && h.bytes[at] == ' ' && isdigit((unsigned char)h.bytes[at + 1]);
}

// True for an importance file older than GGUF: the number of tensors, the length of a name, the name.
static bool is_importance(head h)
{
    if (h.n < 16 || number(h.bytes, 4) - 1 >= 1 << 20) return false;
    const uint64_t n_name = number(h.bytes + 4, 4);
    for (size_t i = 0; i < n_name && 8 + i < h.n; i++)
        if (!isgraph((unsigned char)h.bytes[8 + i])) return false;
    return n_name > 0 && n_name < 256;
}

static bool is_text(head h)
{
    for (size_t i = 0; i < h.n; i++)
        if ((unsigned char)h.bytes[i] < 32 && !isspace((unsigned char)h.bytes[i])) return false;
    return true;
}

// Other kinds, for the error; the first that fits is named.
static bool is_empty(head h)
{
    return h.n == 0;
}

static bool is_zip(head h)
{
    return begins(h, "PK\x03\x04");
}

static bool is_gzip(head h)
{
    return begins(h, "\x1f\x8b");
}

static bool is_old(head h)
{
    return begins(h, "lmgg") || begins(h, "fmgg") || begins(h, "tjgg") || begins(h, "algg");
}

static const struct {
    bool (*is)(head h);
    const char *name;
} kinds[] = {
    {is_empty, "is empty"},
    {is_page, "is a web page (HTML)"},
    {is_pointer, "is a pointer of Git LFS"},
    {is_gguf, "is a GGUF file"},
    {is_safetensors, "is a safetensors file"},
    {is_json, "is JSON"},
    {is_zip, "is a zip archive, as PyTorch's weights are"},
    {is_gzip, "is a gzip archive"},
    {is_old, "is a GGML file of before GGUF"},
    {is_text, "is plain text"},
};

static const char *kind_of(head h)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].is(h)) return kinds[i].name;
    return "does not begin as one";
}

static bool ends_in(const char *file, const char *ending)
{
    const size_t n = strlen(file), n_ending = strlen(ending);
    return n >= n_ending && strcasecmp(file + n - n_ending, ending) == 0;
}

hub_status hub_check_kind(const char *file, bool is_address, const void *bytes, size_t n, const char *what)
{
    const head h = {bytes, n};
    const char *expected = "a model's file";
    bool good = !is_page(h) && !is_pointer(h);
    if (ends_in(file, ".gguf"))
        good = is_gguf(h), expected = "a GGUF file";
    else if (ends_in(file, ".safetensors"))
        good = is_safetensors(h), expected = "a safetensors file";
    else if (good && is_address && ends_in(file, ".json"))
        good = is_json(h), expected = "JSON";
    else if (good && is_address) {
        good = is_gguf(h) || is_safetensors(h) || is_pieces(h) || is_ranks(h) || is_importance(h);
        expected = "a GGUF or safetensors file, a tokenizer or an importance file";
    }
    if (good) return HUB_OK;
    return hub_fail(HUB_E_DATA, "%s: what the server sends %s; expected %s, and nothing of it is kept", what,
                    kind_of(h), expected);
}
