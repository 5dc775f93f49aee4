// SPDX-License-Identifier: MIT
// Opening chat templates for tests.
#include "support/golden_chat.h"

frit_chat *open_chat(const char *source)
{
    frit_chat *chat;
    assert_ok(frit_chat_new(&chat, frit_str_of(source), golden_tokens, NULL));
    return chat;
}

frit_chat *open_golden(const char *name)
{
    char *source = read_file(shared_path("goldens/template/%s.jinja", name), NULL);
    frit_chat *chat = open_chat(source);
    free(source);
    return chat;
}

json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json) fail_msg("%s: %s", text, error.text);
    return json;
}
