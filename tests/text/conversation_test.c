// SPDX-License-Identifier: MIT
// Conversations in the form of clients are converted to the form of each template; invalid ones get an error with the
// position.
#include "support/golden_chat.h"

#include "text/chat/conversation.h"

// Returns the rendered prompt, malloc'd.
static char *render_pictures(const frit_chat *chat, const char *text, size_t n_pictures)
{
    json_t *request = parse(text);
    frit_conversation conversation;
    assert_ok(frit_conversation_read(&conversation, chat, request, n_pictures));
    frit_buf out = {0};
    assert_ok(frit_chat_apply_json(chat, conversation.variables, &out, NULL));
    frit_conversation_free(&conversation);
    json_decref(request);
    return out.data;
}

static char *render(const frit_chat *chat, const char *text)
{
    return render_pictures(chat, text, 0);
}

static void check(const frit_chat *chat, const char *request, const char *part)
{
    char *text = render(chat, request);
    if (!strstr(text, part)) fail_msg("'%s' is not in '%s'", part, text);
    free(text);
}

#define TURN_WITH_CALL                                                                                               \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Weather?\"}, {\"role\": \"assistant\", \"content\": null, " \
    "\"tool_calls\": [{\"id\": \"call00007\", \"type\": \"function\", \"function\": {\"name\": \"get_weather\", "    \
    "\"arguments\": \"{\\\"city\\\": \\\"Paris\\\", \\\"n\\\": 1}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": "    \
    "\"call00007\", \"content\": \"21\"}], \"tools\": [{\"type\": \"function\", \"function\": {\"name\": "           \
    "\"get_weather\", \"description\": \"Weather\", \"parameters\": {\"type\": \"object\", \"properties\": "         \
    "{\"city\": "                                                                                                    \
    "{\"type\": \"string\", \"description\": \"c\"}}}}}]}"

static void calls_take_the_form_that_the_template_prints(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
    } rows[] = {
        {"Qwen-Qwen3-0.6B", "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"n\": 1}}"},
        {"meetkai-functionary-medium-v3.2", ">>>get_weather\n{\"city\": \"Paris\", \"n\": 1}"},
        {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "get_weather\n```json\n{\"city\": \"Paris\", \"n\": 1}\n```"},
        {"Qwen3-Coder", "<parameter=city>\nParis\n</parameter>"},
        {"google-gemma-4-31B-it", "response:get_weather{value:"},   // the result itself does not have the name
        {"fireworks-ai-llama-3-firefunction-v2", "functools[{\"name\": \"get_weather\""},
        {"Mistral-Small-3.2-24B-Instruct-2506", "[TOOL_CALLS]get_weather[CALL_ID]call00007[ARGS]"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_chat *chat = open_golden(rows[i].name);
        check(chat, TURN_WITH_CALL, rows[i].part);
        frit_chat_free(chat);
    }
}

static void a_system_prompt_without_a_place_goes_to_the_user(void **state)
{
    (void)state;
    frit_chat *chat = open_golden("google-gemma-2-2b-it");
    check(chat,
          "{\"messages\": [{\"role\": \"developer\", \"content\": \"Be brief.\"}, "
          "{\"role\": \"user\", \"content\": \"Hi\"}]}",
          "<start_of_turn>user\nBe brief.\n\nHi<end_of_turn>");
    frit_chat_free(chat);
}

static void reasoning_has_the_name_that_the_template_knows(void **state)
{
    (void)state;
    const char *request = "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", "
                          "\"content\": \"Yes.\", \"reasoning_content\": \"Hm.\"}], \"add_generation_prompt\": false}";
    static const struct {
        const char *name, *part;
    } rows[] = {
        {"Qwen-Qwen3-0.6B", "<think>\nHm.\n</think>\n\nYes."},
        {"mistralai-Ministral-3-14B-Reasoning-2512", "[THINK]Hm.[/THINK]Yes."},
        {"openai-gpt-oss-120b", "<|channel|>analysis<|message|>Hm.<|end|>"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_chat *chat = open_golden(rows[i].name);
        check(chat, request, rows[i].part);
        frit_chat_free(chat);
    }
}

static void variables_parts_and_nulls_reach_the_template_as_it_wants_them(void **state)
{
    (void)state;
    frit_chat *chat = open_chat("{% for m in messages %}{{ m.role }}:{{ m.content }}{% if 'name' in m %}!{% endif %};"
                                "{% endfor %}{{ enable_thinking }}{{ tools is defined }}");
    check(chat,
          "{\"messages\": [{\"role\": \"user\", \"name\": null, \"content\": [{\"type\": \"text\", \"text\": \"a\"}, "
          "{\"type\": \"text\", \"text\": \"b\"}]}], \"chat_template_kwargs\": {\"enable_thinking\": false, "
          "\"messages\": 5, \"tools\": 6}}",
          "user:ab;FalseFalse");
    frit_chat_free(chat);
    chat = open_chat("{{ reasoning_effort }}");
    check(chat, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"reasoning_effort\": \"low\"}", "low");
    frit_chat_free(chat);
    chat = open_chat("{% for m in messages %}{% for part in m.content %}<{{ part['text'] }}>{% endfor %}{% endfor %}");
    check(chat, "{\"messages\": [{\"role\": \"user\", \"content\": \"whole\"}]}", "<whole>");
    frit_chat_free(chat);
}

static void a_message_that_goes_on_ends_with_the_mark(void **state)
{
    (void)state;
    frit_chat *chat = open_golden("Qwen-Qwen2.5-7B-Instruct");
    check(chat,
          "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": \"The sky "
          "is \"}], \"continue_final_message\": true}",
          "<|im_start|>assistant\nThe sky is " FRIT_CONVERSATION_MARK);
    frit_chat_free(chat);
}

static void wrong_conversations_are_refused_with_their_place(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{}", "messages: is missing"},
        {"{\"messages\": []}", "messages: the list is empty"},
        {"{\"messages\": {}}", "messages: expected a list"},
        {"{\"messages\": [5]}", "messages[0].role: expected an object with a role"},
        {"{\"messages\": [{\"role\": \"king\"}]}", "messages[0].role: 'king'"},
        {"{\"messages\": [{\"role\": \"user\"}]}", "messages[0].content: is missing"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]}",
         "only parts of type 'text'"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"tool_calls\": [{}]}]}", "only an assistant"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{}]}]}", "messages[0].tool_calls[0]: expected"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
         "[1]}}]}]}",
         "messages[0].tool_calls[0].function.arguments: expected the text of a JSON object"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": 5}", "tools: expected a list"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": [{\"type\": \"function\"}]}",
         "tools[0].function.name"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": [{\"type\": \"function\", "
         "\"function\": "
         "{\"name\": \"f\\u0007g\"}}]}",
         "tools[0].function.name: expected a name, without control characters"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tool_choice\": \"required\"}",
         "there are no tools"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tool_choice\": \"maybe\"}",
         "tool_choice: expected"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"chat_template_kwargs\": []}",
         "chat_template_kwargs: expected an object"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"continue_final_message\": true}",
         "not a text of the assistant"},
    };
    frit_chat *chat = open_golden("Qwen-Qwen2.5-7B-Instruct");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        json_t *request = parse(rows[i][0]);
        frit_conversation conversation;
        assert_fails(frit_conversation_read(&conversation, chat, request, 0), FRIT_E_INVALID, rows[i][1]);
        assert_null(conversation.variables);
        json_decref(request);
    }
    frit_chat_free(chat);
}

// A template that renders tools in its own words, but no calls.
static void calls_without_a_place_are_written_into_messages(void **state)
{
    (void)state;
    frit_chat *chat = open_chat("{% if tools %}<tools>{% for t in tools %}{{ t.function.name }}{% endfor %}</tools>"
                                "{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}");
    char *text = render(chat, TURN_WITH_CALL);
    assert_string_equal(text,
                        "<tools>get_weather</tools>[user]Weather?[assistant]{\"tool_calls\": [{\"name\": "
                        "\"get_weather\", \"arguments\": {\"city\": \"Paris\", \"n\": 1}}]}[user]{\"tool_result\": "
                        "{\"name\": \"get_weather\", \"content\": \"21\"}}");
    free(text);
    const answer_format *format = frit_chat_get_format(chat);
    json_t *tools = parse("[{}]");
    assert_true(format->style == CALL_JSON && !frit_answer_is_object(format, tools, false));
    json_decref(tools);
    frit_chat_free(chat);
}

// Templates that list tools, and expect calls of the history in the content, in the model's own format.
static void calls_of_the_history_are_written_as_the_model_writes_them(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"LFM2-8B-A1B", "<|tool_call_start|>[get_weather(city=\"Paris\", n=1)]<|tool_call_end|>"},
        {"LFM2.5-Instruct", "<|tool_call_start|>[get_weather(city=\"Paris\", n=1)]<|tool_call_end|>"},
        {"ibm-granite-granite-3.3-2B-Instruct",
         "<|tool_call|>[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"n\": 1}}]"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_chat *chat = open_golden(rows[i][0]);
        char *text = render(chat, TURN_WITH_CALL);
        const char *call = strstr(text, rows[i][1]);
        if (!call || !strstr(call, "21")) fail_msg("%s: '%s'", rows[i][0], text);
        free(text);
        frit_chat_free(chat);
    }
}

// Gemma 2 supports neither a system prompt nor tools, and requires alternating roles.
static void tools_without_a_place_are_written_into_messages(void **state)
{
    (void)state;
    frit_chat *chat = open_golden("google-gemma-2-2b-it");
    char *text = render(chat, TURN_WITH_CALL);
    const char *tool = strstr(text, "{\"name\": \"get_weather\", \"description\": \"Weather\""),
               *call =
                   strstr(text, "<start_of_turn>model\n{\"tool_calls\": [{\"name\": \"get_weather\", \"arguments\": "
                                "{\"city\": \"Paris\", \"n\": 1}}]}<end_of_turn>\n<start_of_turn>user\n"
                                "{\"tool_result\": {\"name\": \"get_weather\", \"content\": \"21\"}}<end_of_turn>");
    if (!tool || !call || tool > call) fail_msg("'%s'", text);
    free(text);
    frit_chat_free(chat);
    // Contents that are lists of parts, and texts beside a call or a result.
    static const char parts[] =
        "{% for m in messages %}[{{ m.role }}]{% for p in m.content %}{{ p['text'] }}{% endfor %};"
        "{% endfor %}";
    static const char request[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}, "
        "{\"role\": \"assistant\", \"content\": \"c\", \"tool_calls\": [{\"function\": {\"name\": \"f\", "
        "\"arguments\": {}}}]}, {\"role\": \"tool\", \"content\": [{\"type\": \"text\", \"text\": \"d\"}]}, {\"role\": "
        "\"user\", \"content\": \"e\"}]}";
    chat = open_chat(parts);
    check(chat, request,
          "[user]a;[assistant]b\n\nc\n\n{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}]};[user]"
          "{\"tool_result\": {\"name\": \"f\", \"content\": \"d\"}}\n\ne;");
    frit_chat_free(chat);
}

static bool has_word(const void *ctx, const char *mark)
{
    return strcmp(ctx, mark) == 0;
}

static void a_model_without_a_template_gets_one_that_fits_its_tokens(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"<|im_start|>", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
        {"<|start_header_id|>", "<BOS><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
                                "<|start_header_id|>assistant<|end_header_id|>\n\n"},
        {"<start_of_turn>", "<BOS><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"},
        {"[INST]", "<BOS>[INST] Hi [/INST]"},
        {"<|end|>", "<BOS><|user|>\nHi<|end|>\n<|assistant|>\n"},
        {"", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_chat *chat;
        assert_ok(frit_chat_guess(&chat, has_word, rows[i][0], golden_tokens, NULL));
        assert_string_equal(frit_chat_name(chat), "");
        char *text = render(chat, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}");
        assert_string_equal(text, rows[i][1]);
        free(text);
        frit_chat_free(chat);
    }
}

// A template without tools gets results as texts of a user's message, which is joined with the user's next message.
static void pictures_of_results_follow_their_texts(void **state)
{
    (void)state;
    frit_chat *chat =
        open_chat("{% for m in messages %}<|{{ m.role }}|>{% if m.content is string %}{{ m.content }}{% else %}"
                  "{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p.text }}{% endif %}"
                  "{% endfor %}{% endif %}{% endfor %}");
    char *text = render_pictures(
        chat,
        "{\"messages\": [{\"role\": \"user\", \"content\": \"Look\"}, {\"role\": \"assistant\", \"tool_calls\": "
        "[{\"id\": \"a\", \"type\": \"function\", \"function\": {\"name\": \"camera\", \"arguments\": \"{}\"}}]}, "
        "{\"role\": \"tool\", \"tool_call_id\": \"a\", \"content\": [{\"type\": \"text\", \"text\": \"one\"}, "
        "{\"type\": \"image\"}]}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"and\"}, "
        "{\"type\": \"image\"}, {\"type\": \"text\", \"text\": \"?\"}]}]}",
        2);
    const char *end = strstr(text, "{\"tool_result\": {\"name\": \"camera\", \"content\": \"one\"}}<image>and<image>?");
    if (!end) fail_msg("%s", text);
    free(text);
    frit_chat_free(chat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_take_the_form_that_the_template_prints),
        cmocka_unit_test(a_system_prompt_without_a_place_goes_to_the_user),
        cmocka_unit_test(reasoning_has_the_name_that_the_template_knows),
        cmocka_unit_test(variables_parts_and_nulls_reach_the_template_as_it_wants_them),
        cmocka_unit_test(a_message_that_goes_on_ends_with_the_mark),
        cmocka_unit_test(wrong_conversations_are_refused_with_their_place),
        cmocka_unit_test(calls_without_a_place_are_written_into_messages),
        cmocka_unit_test(calls_of_the_history_are_written_as_the_model_writes_them),
        cmocka_unit_test(tools_without_a_place_are_written_into_messages),
        cmocka_unit_test(a_model_without_a_template_gets_one_that_fits_its_tokens),
        cmocka_unit_test(pictures_of_results_follow_their_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
