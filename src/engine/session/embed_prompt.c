// SPDX-License-Identifier: MIT
// Prompts by name, which sentence-transformers puts before texts: the metadata frit.embed.prompt_names and
// frit.embed.prompts, lists of equal length, and frit.embed.default_prompt, a name. And the number of tokens to which
// it cuts texts: frit.embed.max_length.
#include "engine/engine.h"

#include <string.h>

static frit_status fail_prompt(const frit_model *model, const frit_value *names, const char *name)
{
    frit_buf all = {0};
    for (uint64_t i = 0; names && i < names->array.n && i < 32; i++) {
        const frit_str one = frit_value_item_text(names, i);
        frit_buf_printf(&all, "%s'%.*s'", i > 0 ? ", " : "", (int)(one.len < 40 ? one.len : 40), one.ptr);
    }
    const frit_status status =
        names ? frit_fail(FRIT_E_INVALID, "prompt_name is '%.60s', the model's prompts are %s", name,
                          all.failed || !all.data ? "others" : all.data)
              : frit_fail(FRIT_E_INVALID, "prompt_name is '%.60s', but %s has no prompts", name, model->info.path);
    frit_buf_free(&all);
    return status;
}

static const frit_value *find_list(const frit_model *model, const char *key)
{
    const frit_value *list = frit_meta_find(&model->ckpt->meta, key);
    const bool is_list = list && list->type == FRIT_VALUE_ARRAY && list->array.type == FRIT_VALUE_TEXT;
    return is_list ? list : NULL;
}

frit_status frit_embed_prompt(const frit_model *model, const char *name, const char **text, size_t *n_bytes)
{
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(text);
    FRIT_REQUIRE(n_bytes);
    const frit_value *names = find_list(model, "frit.embed.prompt_names");
    const frit_value *texts = find_list(model, "frit.embed.prompts");
    frit_str wanted = frit_str_of(name ? name : "");
    bool found = name != NULL;
    *text = "";
    *n_bytes = 0;
    if (!name) FRIT_TRY(frit_meta_get_text(&model->ckpt->meta, "frit.embed.default_prompt", &wanted, &found));
    if (!found) return FRIT_OK;
    for (uint64_t i = 0; names && texts && i < names->array.n && i < texts->array.n; i++) {
        const frit_str one = frit_value_item_text(names, i);
        if (one.len != wanted.len || memcmp(one.ptr, wanted.ptr, one.len) != 0) continue;
        const frit_str prompt = frit_value_item_text(texts, i);
        *text = prompt.ptr;
        *n_bytes = prompt.len;
        return FRIT_OK;
    }
    return fail_prompt(model, names, name ? name : "the default");
}

// The special tokens at the end of every text are those of an empty text.
frit_status frit_embed_cut(const frit_model *model, size_t most, frit_token *tokens, size_t *n_tokens)
{
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(tokens);
    FRIT_REQUIRE(n_tokens);
    enum { MOST_SPECIAL = 16 };
    frit_token special[MOST_SPECIAL];
    const size_t of_files = (size_t)model->info.n_embed_tokens, n = *n_tokens;
    size_t n_special = 0, n_end = 0;
    if (most == 0 || (of_files > 0 && of_files < most)) most = of_files;
    if (most == 0 || n <= most) return FRIT_OK;
    FRIT_TRY(frit_tokenize(model, "", 0, FRIT_TEXT_SPECIAL, special, MOST_SPECIAL, &n_special));
    while (n_end < n_special && n_end < most && special[n_special - 1 - n_end] == tokens[n - 1 - n_end]) n_end++;
    memmove(tokens + most - n_end, tokens + n - n_end, n_end * sizeof *tokens);
    *n_tokens = most;
    return FRIT_OK;
}
