// SPDX-License-Identifier: MIT
// Answers taken apart: formats by hand, names, and answers without tools. What is no call comes back as text.
#include "support/golden_chat.h"
#include "support/growth.h"
#include "support/taken_answer.h"

#include <jansson.h>

static const size_t chunks[] = {1, 2, 3, 7, 1000000};

// ---------------------------------------------------------------------------------------- formats by hand

static frit_chat *hermes(void)
{
    return open_golden("Qwen-Qwen3-0.6B");
}

static void check(const frit_chat *chat, const char *prompt, const char *answer, const char *reasoning,
                  const char *text, const char *calls)
{
    json_t *tools = parse(answer_tools), *want = parse(calls);
    for (size_t c = 0; c < FRIT_COUNT(chunks); c++) {
        taken got = take(frit_chat_get_format(chat), tools, frit_str_of(prompt), frit_str_of(answer), chunks[c]);
        if (strcmp(text_of(&got.text), text) != 0 || strcmp(text_of(&got.reasoning), reasoning) != 0 ||
            !same_calls(got.calls, want)) {
            char *found = json_dumps(got.calls, 0);
            fail_msg("'%s' in chunks of %zu: text '%s', reasoning '%s', calls %s", answer, chunks[c],
                     text_of(&got.text), text_of(&got.reasoning), found);
        }
        taken_free(&got);
    }
    json_decref(tools);
    json_decref(want);
}

#define ADD_1 "[{\"function\": {\"name\": \"sum-2_numbers\", \"arguments\": {\"a\": 1}}}]"
#define CALL  "{\"name\": \"sum-2_numbers\", \"arguments\": {\"a\": 1}}"

static void what_is_no_call_is_text(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "plain",
        " white  space \n\n and a < b, <tool, </tool_call>, <think> in the middle\n",
        "<tool_call>",
        "<tool_call>\n",
        "<tool_call>\n{\"name\": \"f\"",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": }}\n</tool_call>",
        "<tool_call>\n{\"name\": 5, \"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{\"arguments\": {}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": 5}\n</tool_call>",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": \"[1]\"}\n</tool_call>",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"line\nbreak\"}}\n</tool_call>",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1}}}\n</tool_call>",
        "<tool_call>\nnonsense\n</tool_call> and more",
        "<tool_call>[]</tool_call>",
        "<tool_call>[1, 2]</tool_call>",
        "<tool_call><tool_call><tool_call><tool_call>",
        "{\"name\": \"sum-2_numbers\", \"arguments\": {\"a\": 1}}",   // without its mark, if the format has one
        "\xe2\x82\xac <tool_cal\xe2\x82\xac",
    };
    frit_chat *chat = hermes();
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) check(chat, "", texts[i], "", texts[i], "[]");
    frit_chat_free(chat);
    static const char *const tagged[] = {
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n",
        "<tool_call>\n<function=get_weather>\n<parameter=ci\nnothing closes this",
        "<tool_call>\n<function=get_weather\n",
        "<tool_call>\n<func>",
    };
    chat = open_golden("Qwen3-Coder");
    for (size_t i = 0; i < FRIT_COUNT(tagged); i++) check(chat, "", tagged[i], "", tagged[i], "[]");
    frit_chat_free(chat);
    static const char *const python[] = {
        "<|tool_call_start|>[f(a=)]<|tool_call_end|>",  "<|tool_call_start|>[f(1)]<|tool_call_end|>",
        "<|tool_call_start|>[f(a='x]<|tool_call_end|>", "<|tool_call_start|>no list",
        "<|tool_call_start|>[]<|tool_call_end|>",
    };
    chat = open_golden("LFM2.5-8B-A1B");
    for (size_t i = 0; i < FRIT_COUNT(python); i++) check(chat, "", python[i], "", python[i], "[]");
    frit_chat_free(chat);
}

static void calls_are_found_between_and_after_text(void **state)
{
    (void)state;
    frit_chat *chat = hermes();
    check(chat, "", "Let me see.\n\n<tool_call>\n" CALL "\n</tool_call>", "", "Let me see.", ADD_1);
    check(chat, "", "<think>\nHm.\n\n</think>\n\nYes.\n<tool_call>" CALL "</tool_call>", "Hm.", "Yes.", ADD_1);
    check(chat, "", "<tool_call>\n" CALL, "", "", ADD_1);   // no mark closes it, but the call is complete
    check(chat, "", "<tool_call>\n" CALL "\n</tool_c", "", "", ADD_1);
    check(chat, "", "<tool_call>\n" CALL "\n</tool_call>\nDone.", "", "Done.", ADD_1);
    check(chat, "", "<tool_call>{bad}</tool_call>\n<tool_call>\n" CALL "\n</tool_call>", "",
          "<tool_call>{bad}</tool_call>", ADD_1);
    check(chat, "", "<tool_call>\n{\"name\": \"sum-2_numbers\", \"arguments\": \"{\\\"a\\\": 1}\"}\n</tool_call>", "",
          "", ADD_1);
    check(chat, "", "<tool_call>\n{\"type\": \"function\", \"function\": " CALL "}\n</tool_call>", "", "", ADD_1);
    check(chat, "...assistant\n<think>\n", "Hm.</think>Yes.", "Hm.", "Yes.", "[]");
    check(chat, "...assistant\n<think>\n\n</think>\n\n", "Yes.", "", "Yes.", "[]");
    frit_chat_free(chat);
    chat = open_golden("meta-llama-Llama-3.1-8B-Instruct");
    check(chat, "", "{\"name\": \"sum-2_numbers\", \"parameters\": {\"a\": 1}}", "", "", ADD_1);
    check(chat, "", "{\"name\": \"unknown\", \"parameters\": {\"a\": 1}}", "",
          "{\"name\": \"unknown\", \"parameters\": {\"a\": 1}}", "[]");
    check(chat, "", "{\"answer\": 42} is all", "", "{\"answer\": 42} is all", "[]");
    frit_chat_free(chat);
    chat = open_golden("openai-gpt-oss-120b");
    check(chat, "<|start|>assistant",
          "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.sum-2_numbers "
          "<|constrain|>json<|message|>{\"a\": 1}",
          "Hm.", "", ADD_1);
    check(chat, "<|start|>assistant",
          "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes, 1 < 2.", "Hm.",
          "Yes, 1 < 2.", "[]");
    check(chat, "<|start|>assistant<|channel|>final<|message|>The sky", " is blue.", "", " is blue.", "[]");
    check(chat, "<|start|>assistant", "no header at all", "", "no header at all", "[]");
    frit_chat_free(chat);
    chat = open_golden("meetkai-functionary-medium-v3.2");
    check(chat, "...\n>>>", "all\nYes.>>>sum-2_numbers\n{\"a\": 1}", "", "Yes.", ADD_1);
    check(chat, "...\n>>>", "sum-2_numbers\n{\"a\": 1}", "", "", ADD_1);
    frit_chat_free(chat);
    chat = open_golden("ibm-granite-granite-3.3-2B-Instruct");
    check(chat, "", "<|tool_call|>[" CALL "]", "", "", ADD_1);
    frit_chat_free(chat);
    chat = open_golden("Kimi-K2-Instruct");
    check(chat, "",
          "<|tool_calls_section_begin|><|tool_call_begin|>functions.sum-2_numbers:0<|tool_call_argument_begin|>{\"a\": "
          "1}<|tool_call_end|><|tool_calls_section_end|>",
          "", "", ADD_1);
    frit_chat_free(chat);
}

static void without_tools_nothing_is_a_call(void **state)
{
    (void)state;
    frit_chat *chat = hermes();
    const char *text = "<tool_call>\n" CALL "\n</tool_call>";
    taken got = take(frit_chat_get_format(chat), NULL, (frit_str){"", 0}, frit_str_of(text), 3);
    assert_string_equal(got.text.data, text);
    assert_int_equal(json_array_size(got.calls), 0);
    taken_free(&got);
    frit_chat_free(chat);
}

static void ids_are_the_models_or_nine_letters_and_digits(void **state)
{
    (void)state;
    shared_path("goldens/template");   // skips before anything is allocated
    json_t *tools = parse(answer_tools);
    frit_chat *chat = hermes();
    const char *text = "<tool_call>\n" CALL "\n</tool_call>\n<tool_call>\n" CALL "\n</tool_call>";
    taken got = take(frit_chat_get_format(chat), tools, (frit_str){"", 0}, frit_str_of(text), 3);
    taken other = take(frit_chat_get_format(chat), tools, frit_str_of("another prompt"), frit_str_of(text), 3);
    const char *first = json_string_value(json_object_get(json_array_get(got.calls, 0), "id"));
    const char *second = json_string_value(json_object_get(json_array_get(got.calls, 1), "id"));
    assert_int_equal(strlen(first), 9);
    assert_int_equal(strspn(first, "abcdefghijklmnopqrstuvwxyz0123456789"), 9);
    assert_string_not_equal(first, second);
    assert_string_not_equal(first, json_string_value(json_object_get(json_array_get(other.calls, 0), "id")));
    taken_free(&got);
    taken_free(&other);
    frit_chat_free(chat);
    chat = open_golden("Mistral-Small-3.2-24B-Instruct-2506");
    got = take(frit_chat_get_format(chat), tools, (frit_str){"", 0},
               frit_str_of("[TOOL_CALLS]sum-2_numbers[CALL_ID]abc123def[ARGS]{\"a\": 1}"), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(got.calls, 0), "id")), "abc123def");
    taken_free(&got);
    frit_chat_free(chat);
    json_decref(tools);
}

// ---------------------------------------------------------------------------------------- names

#define MARK(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }

static const answer_format named = {.style = CALL_NAMED, .call_open = MARK("<c>"), .args_open = MARK("[A]")},
                           python = {.style = CALL_PYTHON, .call_open = MARK("<c>"), .call_close = MARK("</c>")},
                           loose = {.style = CALL_LOOSE, .call_open = MARK("<c>"), .quote = MARK("<q>")},
                           json_calls = {.style = CALL_JSON,
                                         .call_open = MARK("<c>"),
                                         .call_close = MARK("</c>"),
                                         .name_key = MARK("name"),
                                         .args_key = MARK("args")},
                           tagged = {.style = CALL_TAGGED,
                                     .call_open = MARK("<c>"),
                                     .name_close = MARK(">"),
                                     .arg_open = MARK("<p="),
                                     .key_close_text = MARK(">"),
                                     .key_close_other = MARK(">"),
                                     .value_close = MARK("</p>"),
                                     .call_close = MARK("</c>")},
                           channels = {.style = CALL_CHANNELS,
                                       .message_open = MARK("<|start|>"),
                                       .header_close = MARK("<|message|>"),
                                       .body_ends = {"<|end|>", "<|call|>"}},
                           recipient = {.style = CALL_CHANNELS,
                                        .message_open = MARK(">>>"),
                                        .header_close = MARK("\n"),
                                        .body_ends = {">>>"},
                                        .recipient_only = true};

static const struct {
    const answer_format *format;
    const char *before, *after;   // text around a name in a call
} forms[] = {
    {&json_calls, "<c>{\"name\": \"", "\", \"args\": {}}</c>"},
    {&named, "<c>", "[A]{}"},
    {&tagged, "<c>", "></c>"},
    {&python, "<c>[", "()]</c>"},
    {&loose, "<c>", "{}"},
    {&channels, " to=functions.", "<|message|>{}<|call|>"},
    {&recipient, "", "\n{}"},
};

static size_t count_calls(const answer_format *format, frit_str answer, size_t chunk)
{
    frit_parts *split;
    frit_part part;
    size_t n_calls = 0;
    json_t *tools = parse(answer_tools);
    assert_ok(frit_parts_new(&split, &(frit_parts_options){.format = format, .tools = tools}));
    for (size_t at = 0; at < answer.len; at += chunk) {
        const size_t n = answer.len - at < chunk ? answer.len - at : chunk;
        frit_parts_push(split, (frit_str){answer.ptr + at, n});
        while (frit_parts_next(split, &part)) n_calls += part.kind == FRIT_PART_CALL;
    }
    frit_parts_end(split);
    while (frit_parts_next(split, &part)) n_calls += part.kind == FRIT_PART_CALL;
    frit_parts_free(split);
    json_decref(tools);
    return n_calls;
}

// Names and ids of parts are C strings.
static void a_name_with_control_characters_is_no_name(void **state)
{
    (void)state;
    static const frit_str names[] = {
        MARK("f_1"),
        MARK("f\0evil"),
        MARK("\0f"),
        MARK("f\0"),
        MARK(""),

        MARK("f\x1b[2J"),
        MARK("f\x7f"),
        MARK("f\x01g"),
        MARK("f\xc2\x9b"
             "1m"),
    };
    for (size_t i = 0; i < FRIT_COUNT(forms); i++) {
        for (size_t k = 0; k < FRIT_COUNT(names); k++) {
            frit_buf answer = {0};
            frit_buf_text(&answer, forms[i].before);
            frit_buf_append(&answer, names[k].ptr, names[k].len);
            frit_buf_text(&answer, forms[i].after);
            for (size_t c = 0; c < FRIT_COUNT(chunks); c++) {
                const size_t n = count_calls(forms[i].format, (frit_str){answer.data, answer.len}, chunks[c]);
                if (n != (k == 0)) fail_msg("form %zu, name %zu: %zu calls", i, k, n);   // the first is valid
            }
            frit_buf_free(&answer);
        }
    }
    // As JSON writes it.
    frit_chat *chat = hermes();
    static const char escaped[] = "<tool_call>\n{\"name\": \"f\\u001b[2J\", \"arguments\": {}}\n</tool_call>";
    check(chat, "", escaped, "", escaped, "[]");
    frit_chat_free(chat);
}

// ---------------------------------------------------------------------------------------- templates without tools

static void replies_come_out_of_their_object(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *text, *calls;
    } rows[] = {
        {"{\"response\": \"It is 21.\"}", "It is 21.", "[]"},
        {" \n{\"response\":\"\\\"a\\\"\\n\\u00e9\\ud83d\\ude00\\\\ {\\\"b\\\"}\" }\n",
         "\"a\"\n\xc3\xa9\xf0\x9f\x98\x80\\ {\"b\"}", "[]"},
        {"{\"response\": \"\\u0000\\ud83d\\u0041\\ude00\"}",
         "\xef\xbf\xbd\xef\xbf\xbd"
         "A\xef\xbf\xbd",
         "[]"},
        {"{\"response\": \"cut \\ud83d\\u", "cut ", "[]"},
        {"{\"response\": ", "", "[]"},
        {"{\"resp", "", "[]"},
        {"{\"response\": \"\"}", "", "[]"},
        {"{\"result\":{\"response\": \"a\"}", "{\"response\": \"a\"}", "[]"},
        {"{\"result\": {\"tool_calls\": [1]} ", " {\"tool_calls\": [1]} ", "[]"},
        {"{\"tool_calls\": [" CALL "]}", "", ADD_1},
        {"{\"tool_calls\": [{\"name\": \"f\"}]", "", "[{\"function\": {\"name\": \"f\", \"arguments\": {}}}]"},
        {"{\"tool_calls\": [5]}", "{\"tool_calls\": [5]}", "[]"},
        {"no object", "no object", "[]"},
        {"{\"response\":5}", "{\"response\":5}", "[]"},
        {"{\"other\": 1}", "{\"other\": 1}", "[]"},
    };
    frit_chat *chat = open_chat("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) check(chat, "", rows[i].answer, "", rows[i].text, rows[i].calls);
    frit_chat_free(chat);
}

// ---------------------------------------------------------------------------------------- long answers

typedef struct long_answer {
    const frit_chat *chat;
    const json_t *tools;
    const char *part;
} long_answer;

static void take_long(void *ctx, size_t n_bytes)
{
    const long_answer *l = ctx;
    frit_buf text = {0};
    while (text.len < n_bytes) frit_buf_text(&text, l->part);
    taken got = take(frit_chat_get_format(l->chat), l->tools, (frit_str){"", 0}, (frit_str){text.data, text.len}, 3);
    assert_true(got.text.len + got.reasoning.len + 32 >= text.len || strcmp(l->part, "<think>") == 0 ||
                strcmp(l->part, " ") == 0);
    taken_free(&got);
    frit_buf_free(&text);
}

static void long_answers_take_time_in_proportion(void **state)
{
    (void)state;
    shared_path("goldens/template");   // skips before anything is allocated
    static const char *const parts[] = {"<tool_call>\n",
                                        "<tool_call>\n{\"name\": \"",
                                        "<",
                                        " ",
                                        "<think>",
                                        "{",
                                        "[TOOL",
                                        "<tool_call><function=a><parameter=b>",
                                        "<|tool_call_start|>[f(a='",
                                        "'"};
    static const char *const names[] = {"Qwen-Qwen3-0.6B",     "Qwen3-Coder",
                                        "LFM2.5-8B-A1B",       "google-gemma-4-31B-it",
                                        "openai-gpt-oss-120b", "meta-llama-Llama-3.1-8B-Instruct"};
    json_t *tools = parse(answer_tools);
    double worst = 0;
    for (size_t m = 0; m < FRIT_COUNT(names); m++) {
        frit_chat *chat = open_golden(names[m]);
        for (size_t p = 0; p < FRIT_COUNT(parts); p++) {
            const double times = growth_of(take_long, &(long_answer){chat, tools, parts[p]}, 1 << 15);
            if (times > GROWTH_LIMIT) fail_msg("%s: 8 times '%s' takes %.0f times as long", names[m], parts[p], times);
            if (times > worst) worst = times;
        }
        frit_chat_free(chat);
    }
    printf("256 KiB in chunks of 3 bytes: %.1f times as long as 32 KiB at most\n", worst);
    json_decref(tools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_call_is_text),
        cmocka_unit_test(calls_are_found_between_and_after_text),
        cmocka_unit_test(without_tools_nothing_is_a_call),
        cmocka_unit_test(ids_are_the_models_or_nine_letters_and_digits),
        cmocka_unit_test(a_name_with_control_characters_is_no_name),
        cmocka_unit_test(replies_come_out_of_their_object),
        cmocka_unit_test(long_answers_take_time_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
