// SPDX-License-Identifier: MIT
// 'frit help models': the architectures that run, by family.
#include "frit/cli/cli.h"
#include "frit_tools.h"

#include <string.h>

enum { T = 1, L = 2 };   // compared with transformers, with llama.cpp

typedef enum family {
#define FAMILY(family, title) OF_##family,
#define MODEL(family, name, references)
#include "frit/cli/models.def"
#undef FAMILY
#undef MODEL
} family;

static const char *const titles[] = {
#define FAMILY(family, title) title,
#define MODEL(family, name, references)
#include "frit/cli/models.def"
#undef FAMILY
#undef MODEL
};

static const struct {
    family family;
    const char *name;
    int references;
} models[] = {
#define FAMILY(family, title)
#define MODEL(family, name, references) {OF_##family, name, references},
#include "frit/cli/models.def"
#undef FAMILY
#undef MODEL
};

static const char *title_of(const char *name)
{
    frit_architecture_info arch;
    for (size_t i = 0; frit_architecture_get_info(i, &arch); i++)
        if (strcmp(arch.name, name) == 0) return arch.title;
    return "";
}

void cli_print_models(void)
{
    static const char *const references[] = {"", "transformers", "llama.cpp", "both"};
    cli_print(
        "Models run if their architecture is one of these: general.architecture of a GGUF file, or what a folder's\n"
        "model_type becomes (docs/models.md). The last column says whose numbers the results are compared with.\n");
    for (size_t f = 0; f < CLI_COUNT(titles); f++) {
        cli_print("\n%s\n", titles[f]);
        for (size_t i = 0; i < CLI_COUNT(models); i++)
            if (models[i].family == (family)f)
                cli_print("  %-20s %-64s %s\n", models[i].name, title_of(models[i].name),
                          references[models[i].references]);
    }
}
