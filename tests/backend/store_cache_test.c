// SPDX-License-Identifier: MIT
// Files of packed weights: reading gives the written bytes or nothing, whatever happened to the file, the disk or the
// folder. engine/weights_cache_test.c checks the logits of engines.
#include "support/support.h"

#include "backend/store_cache.h"

#if !defined(_WIN32)
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

enum { N_BYTES = (9 << 20) + 12345, PANELS_AT = 4096 };

typedef struct world {
    frit_pool *pool;
    frit_store_cache cache;
    frit_store_key key;
    uint8_t *panels;
    char *path;   // path of the cache file
    int n_warnings;
    char last[1024];
} world;

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    world *w = ctx;
    if (level != FRIT_LOG_WARNING) return;
    w->n_warnings++;
    snprintf(w->last, sizeof w->last, "%s", sentence);
}

static void set_folder(world *w, const char *folder)
{
    free(w->cache.folder);
    free(w->path);
    w->cache.folder = strdup(folder);
    w->path = malloc(strlen(folder) + 64);
    sprintf(w->path, "%s/%016llx%016llx.packed", folder, (unsigned long long)w->key.words[0],
            (unsigned long long)w->key.words[1]);
}

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    static int n_worlds;
    char folder[16];
    frit_rng rng;
    frit_rng_init(&rng, 17);
    snprintf(folder, sizeof folder, "kept-%d", n_worlds++);
    assert_ok(frit_pool_new(&w->pool, 2));
    w->cache = (frit_store_cache){.source = 5, .log = {remember, w}};
    w->key = frit_store_key_of(&w->cache, (frit_str){"some matrices", 13});
    set_folder(w, temp_path(folder));
    w->panels = malloc(N_BYTES);
    for (size_t i = 0; i < N_BYTES; i++) w->panels[i] = (uint8_t)frit_rng_next(&rng);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    frit_pool_free(w->pool);
    free(w->cache.folder);
    free(w->path);
    free(w->panels);
    free(w);
    return 0;
}

static bool can_read(world *w)
{
    frit_file *file;
    const uint8_t *panels = frit_store_cache_read(&w->cache, w->pool, w->key, N_BYTES, &file);
    if (panels) {
        assert_memory_equal(panels, w->panels, N_BYTES);
        assert_int_equal((uintptr_t)panels % 64, 0);
        assert_true(frit_file_is_mapped(file));
    }
    frit_file_close(file);
    return panels != NULL;
}

static void write_weights(world *w)
{
    frit_store_cache_write(&w->cache, w->pool, w->key, w->panels, N_BYTES);
}

static void expect_warning(world *w, const char *part)
{
    if (w->n_warnings != 1 || !strstr(w->last, part)) fail_msg("%d warnings, the last: %s", w->n_warnings, w->last);
    w->n_warnings = 0;
}

static void written_weights_are_read_back_without_warnings(void **state)
{
    world *w = *state;
    assert_false(can_read(w));   // the folder does not exist yet
    write_weights(w);
    assert_true(can_read(w));
    write_weights(w);   // overwrites the first
    assert_true(can_read(w));
    assert_int_equal(w->n_warnings, 0);
}

static void keys_tell_descriptions_files_and_layouts_apart(void **state)
{
    const world *w = *state;
    frit_store_cache other = {.source = 6};
    frit_store_key same = frit_store_key_of(&w->cache, (frit_str){"some matrices", 13});
    frit_store_key longer = frit_store_key_of(&w->cache, (frit_str){"some matrices\0", 14});
    frit_store_key changed = frit_store_key_of(&other, (frit_str){"some matrices", 13});
    assert_memory_equal(&w->key, &same, sizeof same);
    assert_memory_not_equal(&w->key, &longer, sizeof longer);
    assert_memory_not_equal(&w->key, &changed, sizeof changed);
}

// Writes the file with a change. Returns true if it is still accepted.
static bool survives(world *w, const char *bytes, size_t n, size_t flip)
{
    char *changed = malloc(n + 1);
    memcpy(changed, bytes, n);
    if (flip < n) changed[flip] ^= 0x10;
    write_file(w->path, changed, n);
    free(changed);
    return can_read(w);
}

static void cut_files_are_packed_anew(void **state)
{
    world *w = *state;
    frit_rng rng;
    frit_rng_init(&rng, 3);
    size_t n;
    write_weights(w);
    char *bytes = read_file(w->path, &n);
    assert_int_equal(n, PANELS_AT + N_BYTES);
    static const size_t special[] = {0, 1, 7, 8, 47, 48, 55, 56, 71, 4095, 4096, 4097};
    for (size_t i = 0; i < FRIT_COUNT(special) + 12; i++) {
        const size_t left = i < FRIT_COUNT(special) ? special[i] : (size_t)random_between(&rng, 80, (int64_t)n - 1);
        if (survives(w, bytes, left, n)) fail_msg("%zu of %zu bytes were taken", left, n);
        expect_warning(w, "the weights are packed anew");
    }
    char *longer = malloc(n + 1);
    memcpy(longer, bytes, n);
    longer[n] = 0;
    assert_false(survives(w, longer, n + 1, n + 1));
    expect_warning(w, "has lost or gained bytes");
    assert_true(survives(w, bytes, n, n));
    free(longer);
    free(bytes);
}

static void damaged_files_are_packed_anew(void **state)
{
    world *w = *state;
    frit_rng rng;
    frit_rng_init(&rng, 4);
    size_t n;
    write_weights(w);
    char *bytes = read_file(w->path, &n);
    for (size_t i = 0; i < 56 + 3 * 8; i++) {   // the head and the hashes, each byte
        if (survives(w, bytes, n, i)) fail_msg("byte %zu was changed and the file was taken", i);
        expect_warning(w, "the weights are packed anew");
    }
    static const size_t last = PANELS_AT + N_BYTES - 1;
    for (size_t i = 0; i < 20; i++) {
        const size_t at = i == 0 ? PANELS_AT : i == 1 ? last : (size_t)random_between(&rng, PANELS_AT, (int64_t)last);
        if (survives(w, bytes, n, at)) fail_msg("byte %zu was changed and the file was taken", at);
        expect_warning(w, "is damaged");
    }
    free(bytes);
    write_weights(w);   // replaces the damaged file
    assert_true(can_read(w));
    assert_int_equal(w->n_warnings, 0);
}

static void the_sentence_says_what_is_wrong(void **state)
{
    world *w = *state;
    size_t n;
    write_weights(w);
    char *bytes = read_file(w->path, &n);
    survives(w, bytes, n, 0);
    expect_warning(w, "is no file of packed weights");
    survives(w, bytes, n, 8);
    expect_warning(w, "was written by a version with another layout");
    survives(w, bytes, n, 16);
    expect_warning(w, "holds other weights than its name says");
    survives(w, bytes, n, 32);
    expect_warning(w, "holds another number of weights");
    survives(w, "GGUF and so on, which is long enough to be looked at as a head", 56, 56);
    expect_warning(w, "is no file of packed weights");
    free(bytes);
}

#if !defined(_WIN32)

static void two_writers_leave_one_complete_file(void **state)
{
    world *w = *state;
    pid_t children[3];
    for (int i = 0; i < 3; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0) continue;
        frit_pool *pool;   // threads do not survive a fork
        if (frit_pool_new(&pool, 1) != FRIT_OK) _exit(2);
        for (int k = 0; k < 5; k++) frit_store_cache_write(&w->cache, pool, w->key, w->panels, N_BYTES);
        frit_file *file;
        const uint8_t *panels = frit_store_cache_read(&w->cache, pool, w->key, N_BYTES, &file);
        _exit(panels && memcmp(panels, w->panels, N_BYTES) == 0 && w->n_warnings == 0 ? 0 : 1);
    }
    for (int i = 0; i < 200; i++) can_read(w);   // the file is complete at any time
    for (int i = 0; i < 3; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_true(can_read(w));
    assert_int_equal(w->n_warnings, 0);
}

static void a_full_disk_costs_a_warning_and_leaves_nothing(void **state)
{
    world *w = *state;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 5 << 20;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    write_weights(w);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    expect_warning(w, "cannot be written: File too large; packed weights are not kept");
    assert_false(can_read(w));
    assert_int_equal(w->n_warnings, 0);
    assert_int_equal(rmdir(w->cache.folder), 0);   // it is empty
}

static void folders_that_cannot_be_used_cost_a_warning(void **state)
{
    world *w = *state;
    const char *file = temp_path("a-file");
    write_file(file, "x", 1);
    set_folder(w, file);
    assert_false(can_read(w));
    w->n_warnings = 0;   // some systems report a missing file
    write_weights(w);
    expect_warning(w, "a-file: the folder cannot be created: File exists; packed weights are not kept");
    set_folder(w, "/no such folder/below");
    assert_false(can_read(w));
    write_weights(w);
    expect_warning(w, "/no such folder/below: the folder cannot be created: No such file or directory");
    if (geteuid() == 0) return;   // root ignores permissions
    set_folder(w, temp_path("closed"));
    assert_int_equal(mkdir(w->cache.folder, 0), 0);
    assert_false(can_read(w));
    expect_warning(w, "cannot be opened: Permission denied; the weights are packed anew");
    write_weights(w);
    expect_warning(w, "cannot be written: Permission denied; packed weights are not kept");
    rmdir(w->cache.folder);
}

#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(written_weights_are_read_back_without_warnings),
        TEST(keys_tell_descriptions_files_and_layouts_apart),
        TEST(cut_files_are_packed_anew),
        TEST(damaged_files_are_packed_anew),
        TEST(the_sentence_says_what_is_wrong),
#if !defined(_WIN32)
        TEST(two_writers_leave_one_complete_file),
        TEST(a_full_disk_costs_a_warning_and_leaves_nothing),
        TEST(folders_that_cannot_be_used_cost_a_warning),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
