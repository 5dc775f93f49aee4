// SPDX-License-Identifier: MIT
// Every published template's own rendering of calls and reasoning comes back from an answer, in chunks of any size.
#include "support/golden_chat.h"
#include "support/taken_answer.h"

#include <dirent.h>
#include <jansson.h>

// Calls with arguments of every kind; those of the first call are hard for templates.
static const char *const call_sets[] = {
    "[{\"id\": \"call00001\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": "
    "\"Paris\", \"days\": 3}}}]",
    "[{\"id\": \"call00001\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": "
    "\"S\\u00e3o \\\"Paulo\\\" <b> {x} \\\\ 12\", \"code\": \"42\", \"days\": -3, \"hourly\": true, \"zones\": [\"a\", "
    "\"b c\"]}}}]",
    "[{\"id\": \"call00001\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": "
    "\"line 1\\n  line 2\", \"code\": \"if (a < b) { return [1]; }\\n</x>\\n\"}}}]",
    "[{\"id\": \"call00001\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"arguments\": "
    "{\"city\": "
    "\"Rome\"}}}, {\"id\": \"call00002\", \"type\": \"function\", \"function\": {\"name\": \"sum-2_numbers\", "
    "\"arguments\": {\"a\": 2.5}}}]",
    "[{\"id\": \"call00001\", \"type\": \"function\", \"function\": {\"name\": \"sum-2_numbers\", \"arguments\": {}}}]",
};

typedef struct trial {
    frit_buf prompt, answer;   // the template's text before the call, and the call
} trial;

static json_t *conversation(const chat_shape *shape, json_t *tools, json_t *answer)
{
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "Zq?");
    if (answer) json_array_append_new(messages, answer);
    json_t *chat = json_pack("{s:o, s:b}", "messages", messages, "add_generation_prompt", 0);
    if (!shape->calls_without_tools) json_object_set(chat, "tools", tools);
    if (shape->functions_text) {
        json_object_set_new(chat, "functions", json_string("[]"));
        json_object_set_new(chat, "datetime", json_string("today"));
    }
    return chat;
}

static json_t *with_calls(const chat_shape *shape, const json_t *calls, const char *content)
{
    json_t *copies = json_array();
    size_t i;
    json_t *call;
    json_array_foreach(calls, i, call)
    {
        json_t *copy = json_deep_copy(call), *function = json_object_get(copy, "function");
        if (shape->text_arguments) {
            char *text = json_dumps(json_object_get(function, "arguments"), 0);
            json_object_set_new(function, "arguments", json_string(text));
            free(text);
        }
        json_array_append_new(copies, copy);
    }
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "tool_calls", copies);
    if (content || shape->call_content == CHAT_CONTENT_EMPTY)
        json_object_set_new(message, "content", json_string(content ? content : ""));
    else if (shape->call_content == CHAT_CONTENT_NULL)
        json_object_set_new(message, "content", json_null());
    return message;
}

// The start of the mark around the position.
static size_t mark_start(const char *text, size_t at)
{
    for (size_t i = at; i-- > 0 && text[i] != '>' && text[i] != '\n' && at - i < 40;)
        if (text[i] == '<') return i;
    return at;
}

// Cuts the assistant's answer out of a rendered conversation, without the text that ends the turn. Both ends are found
// by comparison with an answer of plain text.
static bool cut_answer(const frit_chat *chat, const chat_shape *shape, json_t *tools, const frit_buf *whole, trial *t)
{
    frit_buf plain = {0};
    json_t *said = json_pack("{s:s, s:s}", "role", "assistant", "content", "~~");
    bool good = frit_probe_render(chat, conversation(shape, tools, said), &plain);
    if (good) {
        size_t head = 0, tail = 0, n = whole->len;
        while (head < n && head < plain.len && plain.data[head] == whole->data[head]) head++;
        while (tail < n - head && tail < plain.len && plain.data[plain.len - 1 - tail] == whole->data[n - 1 - tail])
            tail++;
        head = mark_start(whole->data, head);
        tail = n - mark_start(whole->data, n - tail);
        frit_buf_append(&t->prompt, whole->data, head);
        frit_buf_append(&t->answer, whole->data + head, n - tail - head);
    }
    frit_buf_free(&plain);
    return good;
}

static const size_t chunks[] = {1, 2, 3, 7, 1000000};

typedef struct tally {
    int n_templates, n_trials, n_refused, n_failed;
} tally;

static void try_calls(const frit_chat *chat, const char *name, json_t *tools, size_t set, tally *sum)
{
    const chat_shape *shape = frit_chat_get_shape(chat);
    const answer_format *format = frit_chat_get_format(chat);
    json_t *calls = parse(call_sets[set]);
    frit_buf whole = {0};
    trial t = {{0}, {0}};
    if (!frit_probe_render(chat, conversation(shape, tools, with_calls(shape, calls, NULL)), &whole) ||
        !cut_answer(chat, shape, tools, &whole, &t)) {
        sum->n_refused++;
        printf("  %-55s calls %zu: the template refuses: %s\n", name, set, frit_error());
    } else if (json_array_size(calls) > 1 && !strstr(text_of(&t.answer), "2.5")) {
        sum->n_refused++;
        printf("  %-55s calls %zu: the template drops all calls but the first\n", name, set);
    } else {
        bool good = true;
        for (size_t c = 0; c < FRIT_COUNT(chunks) && good; c++) {
            taken got = take(format, tools, (frit_str){text_of(&t.prompt), t.prompt.len},
                             (frit_str){text_of(&t.answer), t.answer.len}, chunks[c]);
            good = same_calls(got.calls, calls);
            if (!good) {
                char *text = json_dumps(got.calls, 0);
                printf("  %-55s calls %zu, chunks of %zu FAILED (style %d): '%s'\n     text '%s'\n     calls %s\n",
                       name, set, chunks[c], (int)format->style, text_of(&t.answer), text_of(&got.text), text);
                free(text);
            }
            taken_free(&got);
        }
        sum->n_trials++;
        sum->n_failed += !good;
    }
    frit_buf_free(&whole);
    frit_buf_free(&t.prompt);
    frit_buf_free(&t.answer);
    json_decref(calls);
}

// The names of the golden templates, sorted; NULL at the end. Freed by the caller.
static char **golden_names(void)
{
    struct dirent **entries;
    int n = scandir(shared_path("goldens/template"), &entries, NULL, alphasort), n_names = 0;
    assert_true(n > 0);
    char **names = calloc((size_t)n + 1, sizeof *names);
    for (int i = 0; i < n; i++) {
        char *dot = strstr(entries[i]->d_name, ".jinja");
        if (dot) *dot = 0;
        if (dot) names[n_names++] = strdup(entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return names;
}

static void every_templates_own_calls_come_back(void **state)
{
    (void)state;
    shared_path("goldens/template");   // skips before anything is allocated
    static const char *const styles[] = {"none", "json", "named", "tagged", "python", "loose", "channels"};
    json_t *tools = parse(answer_tools);
    char **names = golden_names();
    tally sum = {0};
    for (char **name = names; *name; name++) {
        frit_chat *chat = open_golden(*name);
        const chat_shape *shape = frit_chat_get_shape(chat);
        const answer_format *f = frit_chat_get_format(chat);
        printf("%-55s %-8s %s%s  [%.*s|%.*s|%.*s|%.*s] think [%.*s|%.*s]\n", *name, styles[f->style],
               shape->shows_tools ? "tools " : "", shape->shows_calls ? "calls" : "", (int)f->section_open.len,
               f->section_open.ptr, (int)f->call_open.len, f->call_open.ptr, (int)f->call_close.len, f->call_close.ptr,
               (int)f->section_close.len, f->section_close.ptr, (int)f->think_open.len, f->think_open.ptr,
               (int)f->think_close.len, f->think_close.ptr);
        if (shape->shows_calls) {
            sum.n_templates++;
            if (f->style == CALL_NONE) sum.n_failed++;
            for (size_t set = 0; set < FRIT_COUNT(call_sets); set++) try_calls(chat, *name, tools, set, &sum);
        }
        frit_chat_free(chat);
        free(*name);
    }
    free(names);
    json_decref(tools);
    printf("%d templates show calls; %d sets of calls, %d refused by their templates, %d failed\n", sum.n_templates,
           sum.n_trials, sum.n_refused, sum.n_failed);
    assert_true((size_t)sum.n_templates >= shared_least(40));
    assert_int_equal(sum.n_failed, 0);
}

static bool try_reasoning(const frit_chat *chat, const char *name)
{
    const chat_shape *shape = frit_chat_get_shape(chat);
    const answer_format *format = frit_chat_get_format(chat);
    frit_buf whole = {0}, head = {0};
    assert_true(frit_probe_render(chat, frit_probe_chat(shape, frit_probe_thought(shape->reasoning_key), false, false),
                                  &whole));
    // The answer begins after the question's turn; the template's text before it is found in the text itself.
    const char *question = strstr(whole.data, PROBE_QUESTION), *thought = strstr(question, PROBE_REASONING);
    const char *said = strstr(thought, PROBE_TEXT);
    const char *open = format->style == CALL_CHANNELS ? "<|channel|>" : format->think_open.ptr;
    const char *from = strstr(question, open);
    bool good = from && from < thought && said != NULL;
    for (size_t c = 0; c < FRIT_COUNT(chunks) && good; c++) {
        frit_str prompt = {whole.data, (size_t)(from - whole.data)};
        frit_str answer = {from, (size_t)(said - from) + strlen(PROBE_TEXT)};
        taken got = take(format, NULL, prompt, answer, chunks[c]);
        good = strcmp(text_of(&got.reasoning), PROBE_REASONING) == 0 && strcmp(text_of(&got.text), PROBE_TEXT) == 0;
        if (!good) printf("  %s: reasoning '%s', text '%s'\n", name, text_of(&got.reasoning), text_of(&got.text));
        taken_free(&got);
        // Also if the prompt has the opening mark already.
        size_t n_open = format->style == CALL_CHANNELS ? 0 : format->think_open.len;
        got = take(format, NULL, (frit_str){prompt.ptr, prompt.len + n_open},
                   (frit_str){answer.ptr + n_open, answer.len - n_open}, chunks[c]);
        good = good && strcmp(text_of(&got.reasoning), PROBE_REASONING) == 0;
        taken_free(&got);
    }
    frit_buf_free(&whole);
    frit_buf_free(&head);
    return good;
}

static void every_templates_own_reasoning_comes_back(void **state)
{
    (void)state;
    char **names = golden_names();
    int n = 0, n_failed = 0;
    for (char **name = names; *name; name++) {
        frit_chat *chat = open_golden(*name);
        if (frit_chat_get_shape(chat)->reasoning_key) {
            bool good = try_reasoning(chat, *name);
            n++;
            n_failed += !good;
            if (!good) printf("  %s FAILED\n", *name);
        }
        frit_chat_free(chat);
        free(*name);
    }
    free(names);
    printf("%d templates show reasoning, %d failed\n", n, n_failed);
    assert_true((size_t)n >= shared_least(14));
    assert_int_equal(n_failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_templates_own_calls_come_back),
        cmocka_unit_test(every_templates_own_reasoning_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
