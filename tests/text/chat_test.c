// SPDX-License-Identifier: MIT
// Chat templates: conversations of plain messages, as the published templates render them.
#include "support/support.h"

#include "text/chat/chat.h"
#include "text/load_json.h"

#include <jansson.h>

static const frit_chat_tokens tokens = {.bos = {"<BOS>", 5}, .eos = {"<EOS>", 5}};

static frit_status apply(const frit_chat *chat, const frit_message *messages, size_t n, bool prompt, frit_buf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s}", "role", messages[i].role, "content", messages[i].content));
    json_t *variables = json_pack("{s:o, s:b}", "messages", list, "add_generation_prompt", prompt);
    frit_status status = frit_chat_apply_json(chat, variables, out, NULL);
    json_decref(variables);
    return status;
}

// Reads the scenario's messages if they are plain ones; returns 0 otherwise.
static size_t plain_messages(const json_t *scenario, frit_message messages[16])
{
    size_t n = 0, i;
    json_t *item;
    if (json_object_get(scenario, "tools")) return 0;
    json_array_foreach(json_object_get(scenario, "messages"), i, item)
    {
        if (json_object_size(item) != 2 || !json_is_string(json_object_get(item, "content"))) return 0;
        messages[n++] = (frit_message){.role = json_string_value(json_object_get(item, "role")),
                                       .content = json_string_value(json_object_get(item, "content"))};
    }
    return n;
}

static void check_template(const char *file, const char *name)
{
    json_t *scenarios = load_json(shared_path("goldens/template/scenarios.json"));
    json_t *golden = load_json(shared_path("goldens/template/%s.json", file));
    size_t n_source = 0, i;
    char *source = read_file(shared_path("goldens/template/%s.jinja", file), &n_source);
    frit_chat *chat;
    assert_ok(frit_chat_new(&chat, (frit_str){source, n_source}, tokens, NULL));
    assert_string_equal(frit_chat_name(chat), name);
    json_t *item;
    int n_checked = 0;
    json_array_foreach(golden, i, item)
    {
        frit_message messages[16];
        size_t n =
            plain_messages(json_object_get(scenarios, json_string_value(json_object_get(item, "scenario"))), messages);
        const char *want = json_string_value(json_object_get(item, "output"));
        const char *raises = json_string_value(json_object_get(item, "raises"));
        if (n == 0 || (!want && !raises)) continue;
        n_checked++;
        frit_buf out = {0};
        frit_status status =
            apply(chat, messages, n, json_is_true(json_object_get(item, "add_generation_prompt")), &out);
        if (want) {
            assert_ok(status);
            assert_string_equal(out.data, want);
        } else {
            assert_fails(status, FRIT_E_INVALID, raises);
        }
        frit_buf_free(&out);
    }
    assert_true(n_checked >= 6);
    frit_chat_free(chat);
    free(source);
    json_decref(golden);
    json_decref(scenarios);
}

static void qwen_2_5_renders_as_published(void **state)
{
    (void)state;
    check_template("Qwen-Qwen2.5-7B-Instruct", "chatml");
}

static void gemma_2_renders_as_published(void **state)
{
    (void)state;
    check_template("google-gemma-2-2b-it", "gemma");
}

static void phi_3_renders_as_published(void **state)
{
    (void)state;
    check_template("microsoft-Phi-3.5-mini-instruct", "phi3");
}

static void mistral_nemo_renders_as_published(void **state)
{
    (void)state;
    check_template("mistralai-Mistral-Nemo-Instruct-2407", "mistral-v3");
}

static void llama_3_renders_with_headers(void **state)
{
    (void)state;
    const char *source =
        "{{ bos_token }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + "
        "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}";
    frit_chat *chat;
    assert_ok(frit_chat_new(&chat, frit_str_of(source), tokens, NULL));
    frit_message message = {.role = "user", .content = " Tell me the tale of Rapunzel. "};
    frit_buf out = {0};
    assert_ok(apply(chat, &message, 1, true, &out));
    assert_string_equal(out.data,
                        "<BOS><|start_header_id|>user<|end_header_id|>\n\nTell me the tale of Rapunzel.<|eot_id|>"
                        "<|start_header_id|>assistant<|end_header_id|>\n\n");
    frit_buf_free(&out);
    frit_chat_free(chat);
}

static void an_empty_template_opens_nothing(void **state)
{
    (void)state;
    frit_chat *chat;
    assert_ok(frit_chat_new(&chat, (frit_str){"", 0}, tokens, NULL));
    assert_null(chat);
}

static void count_warning(void *ctx, frit_log_level level, const char *sentence)
{
    (void)sentence;
    if (level == FRIT_LOG_WARNING) ++*(int *)ctx;
}

static void a_template_that_cannot_be_parsed_becomes_chatml_with_a_warning(void **state)
{
    (void)state;
    int n_warnings = 0;
    frit_log log = {count_warning, &n_warnings};
    frit_chat *chat;
    assert_ok(frit_chat_new(&chat, frit_str_of("{% for x in messages %}"), tokens, &log));
    assert_int_equal(n_warnings, 1);
    assert_string_equal(frit_chat_name(chat), "chatml");
    frit_message message = {.role = "user", .content = "Hi"};
    frit_buf out = {0};
    assert_ok(apply(chat, &message, 1, true, &out));
    assert_string_equal(out.data, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    frit_buf_free(&out);
    frit_chat_free(chat);
}

static void tools_and_other_variables_reach_the_template(void **state)
{
    (void)state;
    frit_chat *chat;
    assert_ok(frit_chat_new(&chat, frit_str_of("{{ bos_token }}{{ tools[0].name }}{{ thinking }}{{ eos_token }}"),
                            tokens, NULL));
    json_t *variables = json_pack("{s:[{s:s}], s:b}", "tools", "name", "add", "thinking", 1);
    frit_buf out = {0};
    assert_ok(frit_chat_apply_json(chat, variables, &out, NULL));
    assert_string_equal(out.data, "<BOS>addTrue<EOS>");
    assert_int_equal(json_object_size(variables), 2);
    json_decref(variables);
    frit_buf_free(&out);
    frit_chat_free(chat);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(qwen_2_5_renders_as_published),
        cmocka_unit_test(gemma_2_renders_as_published),
        cmocka_unit_test(phi_3_renders_as_published),
        cmocka_unit_test(mistral_nemo_renders_as_published),
        cmocka_unit_test(llama_3_renders_with_headers),
        cmocka_unit_test(an_empty_template_opens_nothing),
        cmocka_unit_test(a_template_that_cannot_be_parsed_becomes_chatml_with_a_warning),
        cmocka_unit_test(tools_and_other_variables_reach_the_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
