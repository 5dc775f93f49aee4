// SPDX-License-Identifier: MIT
// Any bytes as a chat template, rendered with a conversation that has tools. Every syntax error must have an error
// text.
#include "text/template/template.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static json_t *variables;
static const struct tm now = {.tm_year = 126, .tm_mday = 2, .tm_hour = 3, .tm_wday = 5, .tm_yday = 1};

static void require(bool good)
{
    if (!good) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    variables = json_pack("{s:[{s:s, s:s}, {s:s, s:s, s:[{s:{s:s, s:{s:s, s:f}}}]}], s:[{s:s, s:i, s:n}], s:b, s:s}",
                          "messages", "role", "user", "content", " h\xc3\xa9llo\n", "role", "assistant", "content", "",
                          "tool_calls", "function", "name", "add", "arguments", "a", "1", "b", 2.5, "tools", "name",
                          "add", "n", 3, "none", "add_generation_prompt", 1, "bos_token", "<s>");
    require(variables != NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_template *template;
    if (frit_template_new(&template, (frit_str){(const char *)bytes, n_bytes}) != FRIT_OK) {
        require(frit_error()[0] != 0 && template == NULL);
        return 0;
    }
    frit_buf out = {0};
    frit_template_render(template, variables, &now, &out, NULL);   // raise_exception may have an empty message
    frit_buf_free(&out);
    frit_template_free(template);
    return 0;
}
