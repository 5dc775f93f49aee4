// SPDX-License-Identifier: MIT
// Reasoning and calls of tools in frit chat, on a terminal and in a pipe.
#include "support/chat_process.h"
#include "support/scripted_model.h"
#include "support/support.h"

// The last message is the name of a script; a script of its own follows a result. Marks are unlike others.
static const char chat_template[] =
    "{% if tools %}tools: {{ tools | tojson }}\n{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{% if m.reasoning_content %}<hmm>{{ m.reasoning_content }}</hmm>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}\n<do>{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}</do>{% endfor %}.\n{% endfor %}{% if add_generation_prompt "
    "%}[assistant]"
    "{{ '<|after|>' if messages[-1].role == 'tool' else {'weather': '<|weather|>'}"
    ".get(messages[-1].content, messages[-1].content) }}{% endif %}";

static const script scripts[] = {
    {"<|weather|>",
     {"<hmm>", "Rain?", "</hmm>", "Let me ", "look.", "\n<do>", "{\"name\": \"get_weather\", ",
      "\"arguments\": {\"city\": ", "\"Paris\"}}", "</do>"}},
    {"<|after|>", {"It is ", "21 degrees."}},
};

static void write_scripted(char model[512], char tools[512])
{
    static const char list[] = "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": "
                               "\"Looks out.\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": "
                               "{\"type\": \"string\"}}}}}]";
    snprintf(model, 512, "%s", temp_path("scripted.gguf"));
    snprintf(tools, 512, "%s", temp_path("tools.json"));
    scripted_model(model, chat_template, scripts, sizeof scripts / sizeof *scripts);
    write_file(tools, list, sizeof list - 1);
}

static void a_terminal_shows_reasoning_dimmed_and_calls_in_colour(void **state)
{
    (void)state;
    char model[512], tools[512], command[600];
    write_scripted(model, tools);
    const char *const arguments[] = {model, "-q", NULL};
    terminal t = terminal_open("xterm", arguments);
    terminal_await(&t, "> ");
    snprintf(command, sizeof command, "/tools %s\r", tools);
    terminal_type(&t, command);
    terminal_await(&t, "get_weather          Looks out.");
    terminal_type(&t, "weather\r");
    terminal_await(&t, "\033[0;2mRain?");
    terminal_await(&t, "\033[0m\r\n\r\nLet me look.");
    terminal_await(&t, "\033[0;36m\xe2\x86\x92 get_weather {\"city\": \"Paris\"}\033[0m");
    terminal_await(&t, "what get_weather gives is the next message");
    terminal_type(&t, "{\"degrees\": 21}\r");
    terminal_await(&t, "It is 21 degrees.");
    terminal_type(&t, "/show messages\r");
    terminal_await(&t, "  calls get_weather {\"city\": \"Paris\"}");
    terminal_await(&t, "tool: {\"degrees\": 21}");
    terminal_await(&t, "assistant: It is 21 degrees.");
    terminal_type(&t, "/undo\r");
    terminal_await(&t, "taken back: weather");
    terminal_type(&t, "\x15/exit\r");
    assert_int_equal(terminal_close(&t), 0);
}

static void a_pipe_gets_reasoning_in_tags_and_calls_as_json(void **state)
{
    (void)state;
    char model[512], tools[512], input[1200], saved[512];
    write_scripted(model, tools);
    snprintf(saved, sizeof saved, "%s", temp_path("saved.json"));
    snprintf(input, sizeof input, "/tools %s\nweather\n21\n/save %s\n", tools, saved);
    int code;
    char *err, *out = run_piped(model, input, &code, &err);
    assert_int_equal(code, 0);
    assert_string_equal(out, "<think>\nRain?\n</think>\n\nLet me look.\n"
                             "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\nIt is 21 degrees.\n");
    free(out);
    free(err);
    char *json = read_file(saved, NULL);
    assert_non_null(strstr(json, "\"reasoning_content\": \"Rain?\""));
    assert_non_null(strstr(json, "\"tool_call_id\""));
    free(json);
    snprintf(input, sizeof input, "--load %s -q %s", saved, model);   // continues from the file
    out = run_piped(input, "weather\n", &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(out, "get_weather"));
    free(out);
    free(err);
}

static void tools_work_without_a_place_in_the_template(void **state)
{
    (void)state;
    static const char plain[] = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                                "{{ '<|after|>' if 'tool_result' in messages[-1].content else '<|weather|>' }}";
    static const script plain_scripts[] = {
        {"<|weather|>",
         {"{\"tool_calls\": [{\"name\": ", "\"get_weather\", \"arguments\": ", "{\"city\": \"Paris\"}}]}"}},
        {"<|after|>", {"{\"response\": \"It", " is 21", " degrees.\"}"}},
    };
    char model[512], tools[512], input[1200];
    write_scripted(model, tools);
    scripted_model(model, plain, plain_scripts, sizeof plain_scripts / sizeof *plain_scripts);
    snprintf(input, sizeof input, "/tools %s\nweather\n21\n", tools);
    int code;
    char *err, *out = run_piped(model, input, &code, &err);
    assert_int_equal(code, 0);
    assert_string_equal(out, "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\nIt is 21 degrees.\n");
    free(out);
    free(err);
}

int main(void)
{
    chat_keep_state();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_shows_reasoning_dimmed_and_calls_in_colour),
        cmocka_unit_test(a_pipe_gets_reasoning_in_tags_and_calls_as_json),
        cmocka_unit_test(tools_work_without_a_place_in_the_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
