// SPDX-License-Identifier: MIT
// Paths, files and numbers for tests.
#include "support/support.h"

#include "support/test_device.h"
#include "support/test_ranks.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(_WIN32)
#include <direct.h>
#include <process.h>
#endif

enum { PATH_BYTES = 4096, MAX_CASES = 256 };

// Stores paths until the program ends, because tests hold several, and remove files by them. Equal paths are stored
// once.
static const char *keep_path(const char *path)
{
    typedef struct kept_path {
        struct kept_path *next;
        char text[];
    } kept_path;
    static kept_path *first;
    for (const kept_path *k = first; k; k = k->next)
        if (strcmp(k->text, path) == 0) return k->text;
    const size_t n = strlen(path) + 1;
    kept_path *k = malloc(sizeof *k + n);
    if (!k) fail_msg("out of memory");
    memcpy(k->text, path, n);
    k->next = first;
    first = k;
    return k->text;
}

static int n_skipped, n_absent;   // skipped tests, and absent cases of tests

void skip_because(const char *format, ...)
{
    char reason[PATH_BYTES + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    fprintf(stderr, "skipped: %s\n", reason);   // cmocka prints the line with the test's name to stderr too
    n_skipped++;
    _skip(__FILE__, __LINE__);
}

// If the environment names a kind of test device, this device comes before the CPU in all engines of the program. A
// program in which the device runs nothing fails, because it would test nothing new.
static bool use_test_device(void)
{
    const char *kind = getenv("FRIT_TEST_DEVICE");
#if !defined(_WIN32)
    if (!kind || test_device_use_named(kind) || test_ranks_use_named(kind)) return true;
#else
    if (!kind) return true;
#endif
    fprintf(stderr, "FRIT_TEST_DEVICE: there is no test device of the kind '%s'\n", kind);
    return false;
}

static bool has_used_test_device(void)
{
#if !defined(_WIN32)
    const char *kind = getenv("FRIT_TEST_DEVICE");
    if (!kind || strncmp(kind, "cpus", 4) == 0) return true;
    fprintf(stderr, "the test device was opened %zu times and ran %zu executables\n", test_device_n_opened(),
            test_device_n_runs());
    return test_device_n_runs() > 0;
#else
    return true;
#endif
}

// True if the name matches the pattern of n bytes, in which * stands for any text.
static bool matches(const char *pattern, size_t n, const char *name)
{
    for (; n > 0 && *pattern != '*'; pattern++, n--, name++)
        if (*pattern != *name) return false;
    if (n == 0) return *name == 0;
    for (;; name++) {
        if (matches(pattern + 1, n - 1, name)) return true;
        if (*name == 0) return false;
    }
}

// Copies the tests that a pattern of the list matches; all, if the list is NULL or empty. Returns their number.
static size_t choose_tests(const struct CMUnitTest *tests, size_t n, const char *patterns, struct CMUnitTest *chosen)
{
    size_t n_chosen = 0;
    for (size_t i = 0; i < n; i++) {
        bool wanted = !patterns || !*patterns;
        for (const char *at = patterns; !wanted && *at; at += strspn(at, " ")) {
            const size_t n_pattern = strcspn(at, " ");
            wanted = matches(at, n_pattern, tests[i].name);
            at += n_pattern;
        }
        if (wanted) chosen[n_chosen++] = tests[i];
    }
    return n_chosen;
}

int run_group(const char *name, const struct CMUnitTest *tests, size_t n, CMFixtureFunction set_up,
              CMFixtureFunction tear_down)
{
    if (!use_test_device()) return 1;
    const char *without = getenv("FRIT_TEST_WITHOUT");   // a pattern with *
    if (without && *without) cmocka_set_skip_filter(without);
    struct CMUnitTest chosen[MAX_CASES];
    if (n > MAX_CASES) fail_msg("%s has %zu test cases, at most %d are expected", name, n, MAX_CASES);
    const size_t n_chosen = choose_tests(tests, n, getenv("FRIT_TEST_ONLY"), chosen);
    const int n_failed = _cmocka_run_group_tests(name, chosen, n_chosen, set_up, tear_down);
    if (n_chosen == n && n_skipped == 0 && !has_used_test_device()) return 1;
    if (n_absent > 0) fprintf(stderr, "partly: the reference data of %d cases is not here\n", n_absent);
    return n_failed != 0 ? 1 : n_skipped > 0 ? FRIT_SKIPPED : 0;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool shared_is_here(void)
{
    return exists(FRIT_SOURCE_DIR "/../shared/goldens");
}

// Tells tools/run_tests that the running test would test more with ../shared.
static void lack_shared(void)
{
    fprintf(stderr, "../shared is not here\n");
}

static void require_shared(const char *path)
{
    const char *required = getenv("FRIT_REQUIRE_DATA");
    if (required && *required && strcmp(required, "0") != 0)
        fail_msg("FRIT_REQUIRE_DATA is set, but the reference data %s is not here", path);
}

// Finds the path in ../shared; if ../shared is absent, the path of its copy. False if neither exists.
static bool find_shared(char *path, const char *format, va_list args)
{
    char part[PATH_BYTES / 2];
    vsnprintf(part, sizeof part, format, args);
    if (!shared_is_here()) {
        snprintf(path, PATH_BYTES, "%s/tests/%s", FRIT_SOURCE_DIR, part);
        const bool is_copied = strncmp(part, "goldens/", 8) == 0 && exists(path);
        if (!is_copied || is_folder(path)) lack_shared();   // a copied folder may have fewer files
        if (is_copied) return true;
    }
    snprintf(path, PATH_BYTES, "%s/../shared/%s", FRIT_SOURCE_DIR, part);
    return exists(path);
}

const char *shared_path(const char *format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, format);
    const bool found = find_shared(path, format, args);
    va_end(args);
    if (!found) {
        require_shared(path);
        skip_because("the reference data %s is not here", strstr(path, "../shared/"));
    }
    return keep_path(path);
}

bool shared_has(const char *format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, format);
    const bool found = find_shared(path, format, args);
    va_end(args);
    if (found || shared_is_here()) return true;
    require_shared(path);
    n_absent++;
    return false;
}

size_t shared_least(size_t n)
{
    if (shared_is_here()) return n;
    lack_shared();
    return 1;
}

const char *project_path(const char *format, ...)
{
    char path[PATH_BYTES];
    int n = snprintf(path, PATH_BYTES, "%s/", FRIT_SOURCE_DIR);
    va_list args;
    va_start(args, format);
    vsnprintf(path + n, PATH_BYTES - (size_t)n, format, args);
    va_end(args);
    return keep_path(path);
}

static char temp_folder[PATH_BYTES / 2];

static void remove_temp_folder(void)
{
    char command[PATH_BYTES];
#if defined(_WIN32)
    snprintf(command, sizeof command, "rmdir /s /q \"%s\"", temp_folder);
#else
    snprintf(command, sizeof command, "rm -rf '%s'", temp_folder);
#endif
    if (system(command) != 0) fprintf(stderr, "could not remove %s\n", temp_folder);
}

static void make_temp_folder(void)
{
#if defined(_WIN32)
    const char *root = getenv("TEMP");
    snprintf(temp_folder, sizeof temp_folder, "%s/frit-test-%d", root ? root : ".", _getpid());
    if (_mkdir(temp_folder) != 0) fail_msg("_mkdir failed");
#else
    strcpy(temp_folder, "/tmp/frit-test-XXXXXX");
    if (!mkdtemp(temp_folder)) fail_msg("mkdtemp failed");
#endif
    atexit(remove_temp_folder);
}

const char *temp_path(const char *name)
{
    if (!temp_folder[0]) make_temp_folder();
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", temp_folder, name);
    return keep_path(path);
}

char *read_file(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *bytes = malloc((size_t)size + 1);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) fail_msg("cannot read %s", path);
    fclose(file);
    bytes[size] = 0;
    if (n_bytes) *n_bytes = (size_t)size;
    return bytes;
}

void expect_equal_files(const char *a, const char *b)
{
    size_t n_a, n_b;
    char *x = read_file(a, &n_a), *y = read_file(b, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(x, y, n_a);
    free(x);
    free(y);
}

void write_file(const char *path, const void *bytes, size_t n_bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, n_bytes, file) != n_bytes || fclose(file) != 0) fail_msg("cannot write %s", path);
}

double nmse(const float *a, const float *b, size_t n)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(a[i])) return INFINITY;
        double d = (double)a[i] - b[i];
        error += d * d;
        power += (double)b[i] * b[i];
    }
    return power > 0 ? error / power : error;
}

void random_normal(frit_rng *rng, float *values, size_t n, float deviation)
{
    for (size_t i = 0; i < n; i++) {
        double radius = sqrt(-2 * log(1 - frit_rng_double(rng)));
        values[i] = deviation * (float)(radius * cos(6.283185307179586 * frit_rng_double(rng)));
    }
}

int64_t random_between(frit_rng *rng, int64_t low, int64_t high)
{
    return low + (int64_t)(frit_rng_next(rng) % (uint64_t)(high - low + 1));
}
