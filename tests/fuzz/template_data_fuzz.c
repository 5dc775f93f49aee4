// SPDX-License-Identifier: MIT
// Any JSON as variables of a chat template: messages, tools and other values, in test templates that read all of them.
#include "text/template/template.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

static const char *const names[] = {"tools", "loops", "namespaces", "slices", "refuse"};
static frit_template *templates[FRIT_COUNT(names) + 1];
static const struct tm now = {.tm_year = 126, .tm_mday = 2, .tm_hour = 3, .tm_wday = 5, .tm_yday = 1};

// Applies every filter that accepts any value to every value.
static const char every_value[] = "{% for k, v in data.items() %}{{ k }}{{ v }}{{ v | tojson }}{{ v | tojson(indent=2, "
                                  "sort_keys=true) }}{{ v | string | "
                                  "wordwrap(7) | title }}{% if v is mapping %}{{ v | xmlattr }}{{ v | dictsort }}{% "
                                  "elif v is string %}{{ v[::-2] }}{{ v "
                                  "| truncate(5) | urlencode }}{{ '%s%r' % (v, v) }}{% elif v is sequence %}{{ "
                                  "v[-3::-1] | list }}{{ v | batch(2) | list "
                                  "}}{{ v | groupby(0, default='') }}{% elif v is number %}{{ v | round(2) }}{{ v | "
                                  "filesizeformat }}{% endif %}{% endfor "
                                  "%}";

static void require(bool good)
{
    if (!good) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        char path[1024];
        static char source[1 << 16];
        snprintf(path, sizeof path, "%s/tests/text/nasty/%s.jinja", FRIT_SOURCE_DIR, names[i]);
        FILE *file = fopen(path, "rb");
        require(file != NULL);
        size_t n = fread(source, 1, sizeof source, file);
        fclose(file);
        require(frit_template_new(&templates[i], (frit_str){source, n}) == FRIT_OK);
    }
    return frit_template_new(&templates[FRIT_COUNT(names)], frit_str_of(every_value)) == FRIT_OK ? 0 : 1;
}

// An empty corpus is enough.
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    static const char start[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\"}]},{\"role\":"
        "\"assistant\","
        "\"content\":null,\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":[1,2.5,\"s\"]"
        "}}}]},"
        "{\"role\":\"tool\",\"content\":{}}],\"tools\":[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":"
        "\"object\","
        "\"properties\":{\"x\":{\"type\":[\"string\",\"null\"],\"enum\":[1]}}}}}],\"data\":{\"k\":{\"a\":[[0]]}}}";
    (void)seed;
    if (n_bytes < 8 && sizeof start <= max_bytes) memcpy(bytes, start, n_bytes = sizeof start - 1);
    return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    json_t *variables = json_loadb((const char *)bytes, n_bytes, JSON_ALLOW_NUL, NULL);
    for (size_t i = 0; json_is_object(variables) && i < FRIT_COUNT(templates); i++) {
        frit_buf out = {0};
        frit_template_render(templates[i], variables, &now, &out, NULL);   // raise_exception may have an empty message
        frit_buf_free(&out);
    }
    json_decref(variables);
    return 0;
}
