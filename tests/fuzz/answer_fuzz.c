// SPDX-License-Identifier: MIT
// Any bytes as an answer, in chunks of any size, in the formats of some published ways to write calls. The result must
// be the same for every division, arguments must be JSON objects, and plain text must be returned whole.
#include "text/answer/parts.h"
#include "text/chat/chat.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

#define S(text)                \
    {                          \
        text, sizeof(text) - 1 \
    }

// One format of each style; the marks are short, so that the fuzzer finds them.
static const answer_format formats[] = {
    {.think_open = S("<t>"),
     .think_close = S("</t>"),
     .style = CALL_JSON,
     .call_open = S("<c>"),
     .call_close = S("</c>"),
     .name_key = S("name"),
     .args_key = S("arguments"),
     .id_key = S("id")},
    {.style = CALL_JSON, .bare = true, .name_key = S("name"), .args_key = S("parameters")},
    {.style = CALL_JSON,
     .section_open = S("<s>"),
     .section_close = S("</s>"),
     .name_key = S("name"),
     .args_key = S("args")},
    {.style = CALL_NAMED,
     .section_open = S("<s>"),
     .call_open = S("<c>functions."),
     .id_open = S("[I]"),
     .args_open = S("[A]"),
     .call_close = S("</c>"),
     .section_close = S("</s>")},
    {.think_open = S("[T]"),
     .think_close = S("[/T]"),
     .style = CALL_TAGGED,
     .call_open = S("<c>\n<f="),
     .name_close = S(">"),
     .arg_open = S("<p="),
     .key_close_text = S(">"),
     .key_close_other = S(">"),
     .value_close = S("</p>"),
     .call_close = S("</f>\n</c>"),
     .value_on_lines = true},
    {.style = CALL_TAGGED,
     .section_open = S("<s>"),
     .call_open = S("<f=\""),
     .name_close = S("\">"),
     .arg_open = S("<p=\""),
     .key_close_text = S("\"s>"),
     .key_close_other = S("\"o>"),
     .value_close = S("</p>"),
     .call_close = S("</f>"),
     .section_close = S("</s>")},
    {.style = CALL_PYTHON, .bare = true, .call_open = S("<c>"), .call_close = S("</c>")},
    {.style = CALL_LOOSE, .call_open = S("<c>call:"), .call_close = S("<c|>"), .quote = S("<|\"|>")},
    {.style = CALL_CHANNELS,
     .message_open = S("<|start|>"),
     .header_close = S("<|message|>"),
     .body_ends = {"<|end|>", "<|call|>"}},
    {.style = CALL_CHANNELS,
     .message_open = S(">>>"),
     .header_close = S("\n"),
     .body_ends = {">>>"},
     .recipient_only = true},
    {.style = CALL_JSON,
     .call_open = S("{\"c\":"),
     .call_close = S("}"),
     .name_key = S("name"),
     .args_key = S("args"),
     .in_list = true,
     .reply_open = S("{\"r\":"),
     .reply_close = S("}"),
     .raw_open = S("{\"o\":")},
};

static json_t *tools;

static void require(bool good)
{
    if (!good) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    tools = json_pack("[{s:{s:s, s:{s:{s:{s:s}, s:{s:[s,s]}}}}}]", "function", "name", "f", "parameters", "properties",
                      "a", "type", "string", "b", "type", "integer", "null");
    require(tools != NULL);
    return 0;
}

static void take(frit_parts *split, frit_buf *out, size_t *n_text)
{
    frit_part part;
    while (frit_parts_next(split, &part)) {
        require(part.text[part.n_bytes] == 0);
        if (part.kind == FRIT_PART_CALL) {
            json_t *args = json_loadb(part.text, part.n_bytes, 0, NULL);
            require(json_is_object(args) && part.name[0] && part.id[0]);
            json_decref(args);
            frit_buf_printf(out, "\1%s(%s)", part.name, part.text);
        } else {
            *n_text += part.n_bytes;
            // Text in one piece or in several pieces counts as the same text.
            for (size_t i = 0; i < part.n_bytes; i++) frit_buf_printf(out, "%c%c", 2 + (int)part.kind, part.text[i]);
        }
    }
}

static void run(const frit_parts_options *options, frit_str bytes, size_t chunk, frit_buf *out, size_t *n_text)
{
    frit_parts *split;
    require(frit_parts_new(&split, options) == FRIT_OK);
    for (size_t at = 0; at < bytes.len; at += chunk) {
        size_t n = bytes.len - at < chunk ? bytes.len - at : chunk;
        frit_parts_push(split, (frit_str){bytes.ptr + at, n});
        take(split, out, n_text);
    }
    frit_parts_end(split);
    take(split, out, n_text);
    require(!frit_parts_failed(split));
    frit_parts_free(split);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < 2 || n_bytes > 1 << 16) return 0;
    const size_t n_old = sizeof formats / sizeof formats[0] - 1;   // number of formats in stored inputs
    const answer_format *format = &formats[bytes[0] >= 250 ? n_old : bytes[0] % n_old];
    frit_parts_options options = {.format = format, .tools = bytes[1] & 1 ? tools : NULL, .continues = bytes[1] & 2};
    frit_str text = {(const char *)bytes + 2, n_bytes - 2};
    frit_buf whole = {0}, cut = {0};
    size_t n_whole = 0, n_cut = 0;
    run(&options, text, n_bytes, &whole, &n_whole);
    run(&options, text, 1 + bytes[1] / 4 % 8, &cut, &n_cut);
    require(whole.len == cut.len && (whole.len == 0 || memcmp(whole.data, cut.data, whole.len) == 0));
    if (!options.tools && format->think_open.len == 0 && format->style != CALL_CHANNELS) require(n_whole == text.len);
    frit_buf_free(&whole);
    frit_buf_free(&cut);
    return 0;
}
