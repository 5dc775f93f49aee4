// SPDX-License-Identifier: MIT
// Pictures of a prompt (--image).
#include "frit/cli/cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int open_image(frit_image **out, const char *path)
{
    if (strcmp(path, "-") != 0) {
        const frit_status status = frit_image_open(out, path, NULL);
        return status == FRIT_OK ? CLI_DONE : cli_report(status);
    }
    cli_text bytes = {0};
    int code = cli_read_bytes(path, &bytes);
    if (code == CLI_DONE && frit_image_open_memory(out, bytes.data, bytes.n, NULL) != FRIT_OK)
        code = cli_fail("stdin: %s", frit_error());
    free(bytes.data);
    return code;
}

int cli_encode_image(frit_media **out, frit_engine *engine, const cli_common *common, const char *path,
                     const frit_media_options *options)
{
    frit_image *image;
    uint32_t width, height;
    const int code = open_image(&image, path);
    if (code != CLI_DONE) return code;
    frit_image_get_size(image, &width, &height);
    const uint64_t start = cli_now_ns();
    const frit_status status = frit_media_new(out, engine, image, options);
    frit_image_free(image);
    if (status != FRIT_OK) return cli_report(status);
    size_t n;
    frit_media_tokens(*out, &n);
    cli_note(common, "%s: %u x %u pixels are %zu tokens, encoded in %.2f s", path, width, height, n,
             (double)(cli_now_ns() - start) / 1e9);
    return CLI_DONE;
}

static const char place[] = "{image}";

static size_t count_places(const char *text)
{
    size_t n = 0;
    for (; (text = strstr(text, place)); text += strlen(place)) n++;
    return n;
}

// Adds the text up to `end`, unless it is empty.
static void add_text(json_t *parts, const char *text, const char *end)
{
    if (text == end) return;
    json_t *string = json_stringn(text, (size_t)(end - text));
    json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text", string));
}

// The parts of the user's message.
static json_t *parts_of(const cli_image_prompt *prompt)
{
    json_t *parts = json_array();
    const char *text = prompt->text, *next = strstr(text, place);
    for (size_t i = 0; i < prompt->files->n; i++) {
        if (next) add_text(parts, text, next);
        json_array_append_new(parts, json_pack("{s:s}", "type", "image"));
        if (!next) continue;
        text = next + strlen(place);
        next = strstr(text, place);
    }
    add_text(parts, text, prompt->text + prompt->n_bytes);
    return parts;
}

static json_t *messages_of(const cli_image_prompt *prompt)
{
    json_t *messages = json_array(), *parts = parts_of(prompt);
    if (prompt->system)
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", prompt->system));
    json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content", parts));
    return json_pack("{s:o}", "messages", messages);
}

// Makes the tokens of the prompt; *tokens is malloc'd.
static int make_tokens(const frit_model *model, const cli_image_prompt *prompt, frit_media *const *media,
                       frit_token **tokens, size_t *n_tokens)
{
    json_t *request = messages_of(prompt);
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
    const size_t n_places = count_places(prompt->text);
    *tokens = NULL;
    if (n_places > 0 && n_places != prompt->files->n)
        return cli_usage("run: the prompt has {image} %zu times and --image is given %zu times; expected as many",
                         n_places, prompt->files->n);
    images->list = calloc(prompt->files->n + 1, sizeof *images->list);
    images->n = prompt->files->n;
    if (!images->list) return cli_no_memory();
    int code = CLI_DONE;
    for (size_t i = 0; code == CLI_DONE && i < images->n; i++)
        code = cli_encode_image(&images->list[i], engine, common, prompt->files->items[i], &prompt->options);
    return code == CLI_DONE ? make_tokens(model, prompt, images->list, tokens, n_tokens) : code;
}

void cli_images_free(cli_images *images)
{
    for (size_t i = 0; i < images->n; i++) frit_media_free(images->list[i]);
    free(images->list);
    *images = (cli_images){0};
}
