// SPDX-License-Identifier: MIT
// A program compiled as C and as C++ against the installed library only.
#include <frit.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 2 || strcmp(frit_version(), argv[1]) != 0) {
        fprintf(stderr, "the library is version %s\n", frit_version());
        return 1;
    }
    frit_model *model = NULL;
    if (frit_model_open(&model, "no such model.gguf", NULL) != FRIT_E_NOT_FOUND || model) return 2;
    if (!strstr(frit_error(), "no such model.gguf")) return 3;
    frit_model_free(model);
    return 0;
}
