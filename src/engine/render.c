// SPDX-License-Identifier: MIT
// Chat templates with whatever variables a caller has, and templates that are the caller's own.
#include "engine/model.h"

#include "base/time.h"
#include "text/template/template.h"

#include <string.h>

// A template of the caller's own. What the model would insert is there too, unless the variables say otherwise.
static frit_status render_source(const frit_model *model, const char *source, json_t *variables, frit_buf *out)
{
    frit_template *template;
    FRIT_TRY(frit_template_new(&template, frit_str_of(source)));
    frit_template_allow_changes(template);
    const struct {
        const char *name;
        frit_token id;
    } tokens[] = {{"bos_token", model ? model->vocab.bos : -1}, {"eos_token", model ? model->vocab.eos : -1}};
    for (size_t i = 0; i < FRIT_COUNT(tokens); i++) {
        bool known = model && tokens[i].id >= 0 && tokens[i].id < model->vocab.n;
        frit_str piece = known ? model->vocab.entries[tokens[i].id].piece : (frit_str){"", 0};
        if (!json_object_get(variables, tokens[i].name))
            json_object_set_new(variables, tokens[i].name, json_stringn_nocheck(piece.ptr, piece.len));
    }
    struct tm now = frit_time_local();
    frit_status status = frit_template_render(template, variables, &now, out, NULL);
    frit_template_free(template);
    return status;
}

static frit_status render_json(const frit_model *model, const char *source, json_t *variables, frit_buf *out)
{
    if (!json_is_object(variables)) return frit_fail(FRIT_E_INVALID, "the template's variables are no JSON object");
    if (!json_object_get(variables, "add_generation_prompt"))
        json_object_set_new(variables, "add_generation_prompt", json_true());
    if (source) return render_source(model, source, variables, out);
    if (!model) return frit_fail(FRIT_E_INVALID, "neither a model nor a template's source is given");
    const frit_chat *chat;
    FRIT_TRY(frit_model_get_chat(model, json_array_size(json_object_get(variables, "tools")) > 0, &chat));
    return frit_chat_apply_json(chat, variables, out, NULL);
}

frit_status frit_chat_render_json(const frit_model *model, const char *source, const char *variables,
                                  size_t n_variable_bytes, char *text, size_t capacity, size_t *n_bytes)
{
    FRIT_REQUIRE(n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE(variables);
    FRIT_REQUIRE_ITEMS(text, capacity);
    json_error_t error;
    json_t *json = json_loadb(variables, n_variable_bytes, JSON_ALLOW_NUL, &error);
    if (!json)
        return frit_fail(FRIT_E_INVALID, "the template's variables are not JSON: line %d: %s", error.line, error.text);
    frit_buf buf = {0};
    frit_status status = render_json(model, source, json, &buf);
    json_decref(json);
    return frit_give_text(status, &buf, text, capacity, n_bytes);
}
