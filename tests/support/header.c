// SPDX-License-Identifier: MIT
// Reads public headers as text.
#include "support/header.h"
#include "support/support.h"

#include <ctype.h>

// Removes comments and repeated spaces.
static size_t squeeze(char *text, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '/' && text[i + 1] == '/')
            while (i < n && text[i] != '\n') i++;
        const char c = isspace((unsigned char)text[i]) ? ' ' : text[i];
        if (c != ' ' || to == 0 || text[to - 1] != ' ') text[to++] = c;
    }
    text[to] = 0;
    return to;
}

char *read_header(const char *folder, const char *name)
{
    static const char include[] = "#include \"frit/";
    size_t n;
    char *text = read_file(project_path("%s/%s", folder, name), &n);
    n = squeeze(text, n);
    for (size_t at = 0; strstr(text + at, include);) {
        at = (size_t)(strstr(text + at, include) - text) + strlen("#include \"");
        char part_name[64];
        snprintf(part_name, sizeof part_name, "%.*s", (int)strcspn(text + at, "\""), text + at);
        char *part = read_header(folder, part_name);
        const size_t n_part = strlen(part);
        text = realloc(text, n + n_part + 1);
        assert_non_null(text);
        memcpy(text + n, part, n_part + 1);
        n += n_part;
        free(part);
    }
    return text;
}
