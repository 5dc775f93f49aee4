// SPDX-License-Identifier: MIT
// Pictures of a prompt (--image).
#include "frit/cli/cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// Encodes the pictures of files. `media` has room for all of them.
static int encode_images(frit_engine *engine, const cli_common *common, const frit_option_list *files,
                         const frit_media_options *options, frit_media **media)
{
    for (size_t i = 0; i < files->n; i++) {
        frit_image *image;
        uint32_t width, height;
        if (frit_image_open(&image, files->items[i], NULL) != FRIT_OK) return cli_usage("--image: %s", frit_error());
        frit_image_get_size(image, &width, &height);
        const uint64_t start = cli_now_ns();
        const frit_status status = frit_media_new(&media[i], engine, image, options);
        frit_image_free(image);
        if (status != FRIT_OK) return cli_report(status);
        size_t n;
        frit_media_tokens(media[i], &n);
        cli_note(common, "%s: %u x %u pixels are %zu tokens, encoded in %.2f s", files->items[i], width, height, n,
                 (double)(cli_now_ns() - start) / 1e9);
    }
    return CLI_DONE;
}

static json_t *messages_of(const char *system, const char *prompt, size_t n_prompt, size_t n_images)
{
    json_t *parts = json_array(), *messages = json_array();
    for (size_t i = 0; i < n_images; i++) json_array_append_new(parts, json_pack("{s:s}", "type", "image"));
    json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text", json_stringn(prompt, n_prompt)));
    if (system) json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", system));
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content", parts));
    return json_pack("{s:o}", "messages", messages);
}

// Makes the tokens of the prompt; *tokens is malloc'd.
static int make_tokens(const frit_model *model, const cli_image_prompt *prompt, frit_media *const *media,
                       frit_token **tokens, size_t *n_tokens)
{
    json_t *request = messages_of(prompt->system, prompt->text, prompt->n_bytes, prompt->files->n);
    char *text = json_dumps(request, 0);
    frit_turn *turn = NULL;
    json_decref(request);
    if (!text) return cli_usage("run: the prompt is not UTF-8");
    const frit_status status = frit_turn_new_with_media(&turn, model, text, strlen(text), media, prompt->files->n);
    free(text);
    if (status != FRIT_OK) return cli_report(status);
    *tokens = cli_turn_tokens(turn, n_tokens);
    frit_turn_free(turn);
    return *tokens ? CLI_DONE : CLI_FAILED;
}

int cli_image_tokens(frit_engine *engine, const frit_model *model, const cli_common *common,
                     const cli_image_prompt *prompt, cli_images *images, frit_token **tokens, size_t *n_tokens)
{
    *tokens = NULL;
    images->list = calloc(prompt->files->n + 1, sizeof *images->list);
    images->n = prompt->files->n;
    if (!images->list) return cli_no_memory();
    const int code = encode_images(engine, common, prompt->files, &prompt->options, images->list);
    return code == CLI_DONE ? make_tokens(model, prompt, images->list, tokens, n_tokens) : code;
}

void cli_images_free(cli_images *images)
{
    for (size_t i = 0; i < images->n; i++) frit_media_free(images->list[i]);
    free(images->list);
    *images = (cli_images){0};
}
