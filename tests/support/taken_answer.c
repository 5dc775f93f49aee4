// SPDX-License-Identifier: MIT
// Answers taken apart, and the tools that they may call.
#include "support/taken_answer.h"
#include "support/golden_chat.h"

const char answer_tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": \"Weather\", \"parameters\": "
    "{\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\", \"description\": \"c\"}, \"days\": "
    "{\"type\": \"integer\", \"description\": \"d\"}, \"hourly\": {\"type\": \"boolean\", \"description\": \"h\"}, "
    "\"zones\": {\"type\": \"array\", \"description\": \"z\", \"items\": {\"type\": \"string\"}}, \"code\": {\"type\": "
    "\"string\", \"description\": \"s\"}}, \"required\": [\"city\"]}}}, {\"type\": \"function\", \"function\": "
    "{\"name\": \"sum-2_numbers\", \"description\": \"Adds\", \"parameters\": {\"type\": \"object\", \"properties\": "
    "{\"a\": {\"type\": \"number\", \"description\": \"a\"}}}}}]";

static void take_parts(frit_parts *split, taken *t)
{
    frit_part part;
    while (frit_parts_next(split, &part)) {
        assert_int_equal(strlen(part.text), part.n_bytes);
        if (part.kind == FRIT_PART_TEXT) frit_buf_append(&t->text, part.text, part.n_bytes);
        if (part.kind == FRIT_PART_REASONING) frit_buf_append(&t->reasoning, part.text, part.n_bytes);
        if (part.kind != FRIT_PART_CALL) continue;
        json_t *call = json_pack("{s:s, s:s, s:o}", "name", part.name, "id", part.id, "arguments", parse(part.text));
        assert_true(json_is_object(json_object_get(call, "arguments")));
        json_array_append_new(t->calls, call);
    }
}

taken take(const answer_format *format, const json_t *tools, frit_str prompt, frit_str answer, size_t chunk)
{
    taken t = {.calls = json_array()};
    frit_parts *split;
    const frit_parts_options options = {.format = format, .tools = tools, .prompt = prompt};
    assert_ok(frit_parts_new(&split, &options));
    for (size_t at = 0; at < answer.len; at += chunk) {
        size_t n = answer.len - at < chunk ? answer.len - at : chunk;
        frit_parts_push(split, (frit_str){answer.ptr + at, n});
        take_parts(split, &t);
    }
    frit_parts_end(split);
    take_parts(split, &t);
    assert_false(frit_parts_failed(split));
    frit_parts_free(split);
    return t;
}

void taken_free(taken *t)
{
    frit_buf_free(&t->text);
    frit_buf_free(&t->reasoning);
    json_decref(t->calls);
}

const char *text_of(const frit_buf *buf)
{
    return buf->data ? buf->data : "";
}

bool same_calls(const json_t *got, const json_t *want)
{
    bool same = json_array_size(got) == json_array_size(want);
    for (size_t i = 0; same && i < json_array_size(want); i++) {
        const json_t *g = json_array_get(got, i), *w = json_object_get(json_array_get(want, i), "function");
        same = json_equal(json_object_get(g, "name"), json_object_get(w, "name")) &&
               json_equal(json_object_get(g, "arguments"), json_object_get(w, "arguments"));
    }
    return same;
}
