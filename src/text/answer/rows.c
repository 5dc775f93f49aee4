// SPDX-License-Identifier: MIT
// Formats that templates do not show: answers of messages with headers, templates that list tools but never render a
// call, and templates without tools.
#include "text/answer/format.h"

#define S(text)                \
    {                          \
        text, sizeof(text) - 1 \
    }

typedef struct format_row {
    const char *marks[2];   // texts in the template's source
    answer_row_when when;
    answer_format format;
} format_row;

// clang-format off
static const format_row rows[] = {
    {{"<|channel|>", "<|message|>"}, ROW_FIRST, {.style = CALL_CHANNELS, .message_open = S("<|start|>"),
      .header_close = S("<|message|>"), .body_ends = {"<|end|>", "<|return|>", "<|call|>", "<|start|>"}}},
    {{">>>all", NULL}, ROW_FIRST, {.style = CALL_CHANNELS, .message_open = S(">>>"), .header_close = S("\n"),
      .body_ends = {">>>"}, .recipient_only = true}},
    {{"<|tool_calls_section_begin|>", NULL}, ROW_AFTER, {.style = CALL_NAMED, .section_open = S("<|tool_calls_section_begin|>"),
      .call_open = S("<|tool_call_begin|>functions."), .args_open = S("<|tool_call_argument_begin|>"),
      .call_close = S("<|tool_call_end|>"), .section_close = S("<|tool_calls_section_end|>")}},
    {{"<\xef\xbd\x9ctool\xe2\x96\x81""calls\xe2\x96\x81""begin\xef\xbd\x9c>", "```json"}, ROW_AFTER, {.style = CALL_NAMED,
      .section_open = S("<\xef\xbd\x9ctool\xe2\x96\x81""calls\xe2\x96\x81""begin\xef\xbd\x9c>"),
      .call_open = S("<\xef\xbd\x9ctool\xe2\x96\x81""call\xe2\x96\x81""begin\xef\xbd\x9c>function<\xef\xbd\x9ctool\xe2\x96\x81sep\xef\xbd\x9c>"),
      .args_open = S("```json"), .call_close = S("```<\xef\xbd\x9ctool\xe2\x96\x81""call\xe2\x96\x81""end\xef\xbd\x9c>"),
      .section_close = S("<\xef\xbd\x9ctool\xe2\x96\x81""calls\xe2\x96\x81""end\xef\xbd\x9c>")}},
    {{"<|tool_list_start|>", NULL}, ROW_AFTER, {.style = CALL_PYTHON, .call_open = S("<|tool_call_start|>"),
      .call_close = S("<|tool_call_end|>")}},
    {{"keep_past_thinking", "List of tools: ["}, ROW_AFTER, {.style = CALL_PYTHON, .call_open = S("<|tool_call_start|>"),
      .call_close = S("<|tool_call_end|>")}},
    {{"respond only with <|tool_call|>", NULL}, ROW_AFTER, {.style = CALL_JSON, .call_open = S("<|tool_call|>"),
      .name_key = S("name"), .args_key = S("arguments"), .in_list = true}},
    {{"<|tool|>", "<|/tool|>"}, ROW_AFTER, {.style = CALL_JSON, .call_open = S("<|tool_call|>"), .call_close = S("<|/tool_call|>"),
      .name_key = S("name"), .args_key = S("arguments"), .in_list = true}},
    {{"Action:", "```json"}, ROW_AFTER, {.style = CALL_JSON, .call_open = S("Action:\n```json"), .call_close = S("```"),
      .name_key = S("tool_name"), .args_key = S("parameters"), .in_list = true}},
    {{"functools[", NULL}, ROW_AFTER, {.style = CALL_JSON, .call_open = S("functools"), .name_key = S("name"),
      .args_key = S("arguments"), .in_list = true}},
    {{"[TOOL_CALLS]", NULL}, ROW_AFTER, {.style = CALL_JSON, .call_open = S("[TOOL_CALLS]"), .name_key = S("name"),
      .args_key = S("arguments"), .id_key = S("id"), .in_list = true}},
    {{"<tool_call>", NULL}, ROW_AFTER, {.style = CALL_JSON, .call_open = S("<tool_call>"), .call_close = S("</tool_call>"),
      .name_key = S("name"), .args_key = S("arguments")}},
    {{NULL, NULL}, ROW_PLAIN, {.style = CALL_JSON, .call_open = S("{\"tool_calls\":"), .call_close = S("}"),
      .name_key = S("name"), .args_key = S("arguments"), .in_list = true, .plain = true, .reply_open = S("{\"response\":"),
      .reply_close = S("}"), .raw_open = S("{\"result\":")}},
};

static const struct { frit_str open, close; } thinks[] = {
    {S("<think>"), S("</think>")},
    {S("<seed:think>"), S("</seed:think>")},
    {S("[THINK]"), S("[/THINK]")},
    {S("<|START_THINKING|>"), S("<|END_THINKING|>")},
    {S("<|inner_prefix|>"), S("<|inner_suffix|>")},
    {S("<|channel>thought"), S("<channel|>")},
    {S("<reasoning>"), S("</reasoning>")},
};
// clang-format on

static bool contains(frit_str text, const char *part, size_t n)
{
    for (size_t i = 0; i + n <= text.len; i++)
        if (text.ptr[i] == part[0] && memcmp(text.ptr + i, part, n) == 0) return true;
    return false;
}

static bool fits(const format_row *row, frit_str source)
{
    for (int i = 0; i < 2; i++)
        if (row->marks[i] && !contains(source, row->marks[i], strlen(row->marks[i]))) return false;
    return true;
}

bool frit_answer_find_row(answer_format *format, frit_str source, answer_row_when when)
{
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (rows[i].when != when || !fits(&rows[i], source)) continue;
        frit_str open = format->think_open, close = format->think_close;
        *format = rows[i].format;
        format->think_open = open;
        format->think_close = close;
        return true;
    }
    return false;
}

bool frit_answer_find_think(answer_format *format, frit_str source)
{
    for (size_t i = 0; i < FRIT_COUNT(thinks); i++) {
        if (!contains(source, thinks[i].close.ptr, thinks[i].close.len)) continue;
        format->think_open = thinks[i].open;
        format->think_close = thinks[i].close;
        return true;
    }
    return false;
}

bool frit_answer_is_object(const answer_format *format, const struct json_t *tools, bool continues)
{
    return format->reply_open.len > 0 && tools && !continues;
}
