// SPDX-License-Identifier: MIT
// Instruction sets: kernel files are compiled with no more features than their row of isa.def requires.
#include "support/support.h"

#include "backend/cpu/kernels.h"
#include "base/machine/cpu.h"
#include "base/buf.h"

// The features that each compiler flag enables.
static const struct {
    const char *flag;
    unsigned features;
} flags[] = {
    {"-mavx2", FRIT_CPU_AVX2},
    {"-mfma", FRIT_CPU_AVX2},
    {"-mf16c", FRIT_CPU_AVX2},
    {"-mavxvnni", FRIT_CPU_AVX_VNNI},
    {"-mavx512f", FRIT_CPU_AVX512},
    {"-mavx512bw", FRIT_CPU_AVX512},
    {"-mavx512dq", FRIT_CPU_AVX512},
    {"-mavx512vl", FRIT_CPU_AVX512},
    {"-mavx512vnni", FRIT_CPU_AVX512_VNNI},
    {"-mavx512vbmi", FRIT_CPU_AVX512_VBMI},
    {"-mavx512bf16", FRIT_CPU_AVX512_BF16},
    {"-mamx-tile", FRIT_CPU_AMX_INT8 | FRIT_CPU_AMX_BF16},
    {"-mamx-int8", FRIT_CPU_AMX_INT8},
    {"-mamx-bf16", FRIT_CPU_AMX_BF16},
    {"-march=armv8.2-a+dotprod", FRIT_CPU_DOTPROD},
    {"-march=armv8.2-a+dotprod+i8mm", FRIT_CPU_DOTPROD | FRIT_CPU_I8MM},
    {"-mbranch-protection=standard", 0},   // older processors read its instructions as no-ops
};

// Finds the row of a kernel file by the last word of its name; NULL if it is not a kernel file of this build.
static const frit_isa *isa_of(const char *line, size_t n)
{
    for (size_t i = 0; frit_isa_get(i); i++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, "_%s.c", frit_isa_get(i)->name);
        for (size_t at = 0; at + strlen(suffix) < n; at++)
            if (strncmp(line + at, suffix, strlen(suffix)) == 0 && strchr("\" ", line[at + strlen(suffix)]))
                return frit_isa_get(i);
    }
    return NULL;
}

// Returns the number of flags of instruction sets.
static int check_flags(const frit_isa *isa, const char *line, size_t n)
{
    int found = 0;
    for (size_t at = 0; at + 2 < n; at++) {
        if (strncmp(line + at, " -m", 3) != 0) continue;
        const char *flag = line + at + 1;
        const int length = (int)strcspn(flag, " \"");
        const frit_str text = {flag, (size_t)length};
        size_t i = 0;
        while (i < FRIT_COUNT(flags) && !frit_str_is(text, flags[i].flag)) i++;
        if (i == FRIT_COUNT(flags)) fail_msg("%s: %.*s is not a flag that this test knows", isa->name, length, flag);
        if (flags[i].features & ~isa->features)
            fail_msg("%s is compiled with %.*s, which it does not ask the processor for", isa->name, length, flag);
        found++;
    }
    return found;
}

static void kernels_are_compiled_for_what_their_row_requires(void **state)
{
    (void)state;
    frit_buf text = {0};
    FILE *file = fopen(FRIT_BUILD_DIR "/compile_commands.json", "rb");
    if (!file) skip_because("compile_commands.json is not here: this generator of CMake does not write it");
    for (int c; (c = fgetc(file)) != EOF;) frit_buf_char(&text, (char)c);
    fclose(file);
    assert_false(text.failed);
    int n_files = 0;
    for (const char *at = text.data; at && *at; at += strcspn(at, "\n") + 1) {
        const size_t n = strcspn(at, "\n");
        const char *kernel = strstr(at, "src/backend/cpu/");
        if (!strstr(at, "\"command\"") || strstr(at, "\"command\"") > at + n || !kernel || kernel > at + n) continue;
        const frit_isa *isa = isa_of(at, n);
        if (isa) n_files += check_flags(isa, at, n) > 0;
    }
#if defined(__x86_64__)
    assert_true(n_files > 10);
#endif
    frit_buf_free(&text);
}

static void a_row_requires_what_its_slower_forms_require(void **state)
{
    (void)state;
    for (size_t i = 0; frit_isa_get(i); i++) {
        const unsigned f = frit_isa_get(i)->features;
        if (f & (FRIT_CPU_AVX_VNNI | FRIT_CPU_AVX512)) assert_true(f & FRIT_CPU_AVX2);
        if (f & (FRIT_CPU_AVX512_VNNI | FRIT_CPU_AVX512_VBMI | FRIT_CPU_AVX512_BF16)) assert_true(f & FRIT_CPU_AVX512);
        if (f & (FRIT_CPU_DOTPROD | FRIT_CPU_I8MM)) assert_true(f & FRIT_CPU_NEON);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_compiled_for_what_their_row_requires),
        cmocka_unit_test(a_row_requires_what_its_slower_forms_require),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
