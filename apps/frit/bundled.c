// SPDX-License-Identifier: MIT
// Finds the bundled model. The command may have been built here, installed under a prefix, or unpacked from an archive
// anywhere, so places relative to the program are tried before the compiled-in paths.
#include "frit/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

// Paths relative to the folder of the program: an archive for Windows has both in one folder, a prefix has bin and
// share.
static const char *const beside_program[] = {"fable.gguf", "../share/frit/fable.gguf"};

static bool is_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

// Returns the path, or NULL if the model is not near the program. path lives as long as the program.
static const char *find_beside_program(void)
{
    static char path[PATH_BYTES];
    char *folder = cli_program_folder();
    const char *found = NULL;
    for (size_t i = 0; folder && !found && i < CLI_COUNT(beside_program); i++) {
        const int n = snprintf(path, sizeof path, "%s/%s", folder, beside_program[i]);
        if (n > 0 && n < PATH_BYTES && is_readable(path)) found = path;
    }
    free(folder);
    return found;
}

const char *cli_bundled_model(void)
{
    const char *path = find_beside_program();
    if (path) return path;
#ifdef FRIT_MODEL_SOURCE
    if (is_readable(FRIT_MODEL_SOURCE)) return FRIT_MODEL_SOURCE;
#endif
    return FRIT_MODEL_INSTALLED;
}
