// SPDX-License-Identifier: MIT
// The prefix cache on disk: prompts are read back bit for bit, also after a restart. A damaged file causes a warning
// and a recomputation.
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/kv/kv_disk.h"
#include "frit.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_CTX = 256, N = 150, N_WHOLE = 128, TEXTS = 5 };

static _Atomic int n_warnings;
static char last_warning[1024];   // the last warning while only one thread warns

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    if (level != FRIT_LOG_WARNING) return;
    snprintf(last_warning, sizeof last_warning, "%s", sentence);
    atomic_fetch_add(&n_warnings, 1);
}

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
    int32_t n_vocab;
} fixture;

static fixture open_at(const char *path, const char *disk, frit_engine_options options)
{
    fixture f;
    frit_model_info info;
    if (options.n_ctx == 0) options.n_ctx = N_CTX;
    options.n_threads = 1;
    options.deterministic = true;
    options.prefix_disk = disk;
    options.no_prefix_cache = !disk;
    assert_ok(frit_model_open(&f.model, path, &(frit_model_options){.log = remember}));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    assert_ok(frit_model_get_info(f.model, &info));
    f.n_vocab = info.n_vocab;
    return f;
}

static const char *tiny(void)
{
    static char path[1024];
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("a.gguf", &(tiny_options){0}));
    return path;
}

static fixture open_tiny(const char *disk)
{
    return open_at(tiny(), disk, (frit_engine_options){.n_sessions = 2});
}

static void close_all(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

// Returns the logits after the tokens; *n_run: number of tokens that ran.
static float *logits_of(const fixture *f, const char *salt, const frit_token *tokens, size_t n, int32_t *n_run)
{
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_session_new(&session, f->engine));
    assert_ok(frit_session_set_salt(session, salt, strlen(salt)));
    assert_ok(frit_session_push(session, tokens, n, NULL));
    for (*n_run = 0; frit_session_pending(session) > 0; *n_run += n_rows) {
        assert_ok(frit_engine_step(f->engine, &n_rows));
        assert_true(n_rows > 0);
    }
    assert_int_equal(frit_session_cached(session), n - (size_t)*n_run);
    float *logits = malloc((size_t)f->n_vocab * sizeof *logits);
    assert_non_null(frit_session_logits(session));
    memcpy(logits, frit_session_logits(session), (size_t)f->n_vocab * sizeof *logits);
    frit_session_free(session);
    return logits;
}

static void expect(const fixture *f, const char *salt, uint64_t seed, size_t n, int32_t n_expected)
{
    frit_token tokens[N_CTX];
    int32_t n_run, n_all;
    frit_model_info info;
    assert_ok(frit_model_get_info(f->model, &info));
    fixture cold = open_at(info.path, NULL, (frit_engine_options){.n_sessions = 2});
    make_tokens(seed, tokens, n, f->n_vocab);
    float *expected = logits_of(&cold, "", tokens, n, &n_all), *found = logits_of(f, salt, tokens, n, &n_run);
    assert_int_equal(n_all, n);
    assert_int_equal(n_run, n_expected);
    assert_memory_equal(found, expected, (size_t)f->n_vocab * sizeof *found);
    free(expected);
    free(found);
    close_all(&cold);
}

// Lists a folder's pages: number, bytes, and the path of one of them.
typedef struct pages {
    int n, n_others;
    uint64_t n_bytes;
    char path[2048];
} pages;

static pages pages_in(const char *folder)
{
    pages p = {0};
    DIR *dir = opendir(folder);
    struct stat st;
    char path[2048];
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_int_equal(stat(path, &st), 0);
        const size_t n = strlen(entry->d_name);
        const bool is_page = n > 5 && strcmp(entry->d_name + n - 5, ".page") == 0;
        p.n += is_page;
        p.n_others += !is_page;
        p.n_bytes += (uint64_t)st.st_size;
        if (is_page && strstr(entry->d_name, ".1.page")) snprintf(p.path, sizeof p.path, "%s", path);
    }
    if (dir) closedir(dir);
    return p;
}

// ------------------------------------------------------------------------------- coming back

static void a_restart_finds_its_prompts(void **state)
{
    (void)state;
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", temp_path("restart"));
    n_warnings = 0;
    for (int start = 0; start < 3; start++) {
        fixture f = open_tiny(folder);
        for (uint64_t seed = 0; seed < 2; seed++) {
            expect(&f, "", seed, N, start == 0 ? N : N - N_WHOLE);
            expect(&f, "", seed, N, 1);
        }
        close_all(&f);
        struct stat info;
        assert_int_equal(stat(folder, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0700);
        assert_int_equal(stat(pages_in(folder).path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0600);
        assert_int_equal(pages_in(folder).n, 2 * N_WHOLE / 32);
        assert_int_equal(pages_in(folder).n_others, 0);
    }
    assert_int_equal(n_warnings, 0);
}

// Fills the cache with a session of 128 tokens: earlier pages go to the disk, through host memory or directly.
static void pages_that_give_way_come_back(void **state)
{
    (void)state;
    for (int host_mib = 0; host_mib < 2; host_mib++) {
        const frit_engine_options options = {.n_ctx = 128, .prefix_host_mib = host_mib};
        char folder[1024];
        snprintf(folder, sizeof folder, "%s", temp_path(host_mib ? "host" : "gives-way"));
        fixture f = open_at(tiny(), folder, options);
        for (uint64_t seed = 0; seed < TEXTS; seed++) expect(&f, "", seed, 128, 128);
        for (uint64_t i = 0; i < 2 * TEXTS;
             i++)   // whole pages of 127 tokens; all are in the memory of the host, if it has any
            expect(&f, "", i % TEXTS, 128, host_mib ? 1 : 128 - 96);
        close_all(&f);
        assert_int_equal(n_warnings, 0);
    }
}

static void windows_come_back(void **state)
{
    (void)state;
    const char *path = shared_path("goldens/hf/gemma3_text");
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", temp_path("windows"));
    for (int start = 0; start < 2; start++) {
        fixture f = open_at(path, folder, (frit_engine_options){.n_sessions = 2});
        expect(&f, "", 1, N, start == 0 ? N : N - N_WHOLE);
        close_all(&f);
    }
}

static void several_sessions_wait_for_the_disk(void **state)
{
    (void)state;
    enum { SESSIONS = 3 };
    frit_token tokens[SESSIONS][N];
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", temp_path("several"));
    for (int start = 0; start < 2; start++) {
        frit_session *sessions[SESSIONS + 1];
        fixture f = open_at(tiny(), folder, (frit_engine_options){.n_sessions = SESSIONS + 1});
        for (int i = 0; i <= SESSIONS; i++) {
            assert_ok(frit_session_new(&sessions[i], f.engine));
            if (i == SESSIONS) break;
            make_tokens((uint64_t)i, tokens[i], N, f.n_vocab);
            assert_ok(frit_session_push(sessions[i], tokens[i], N, NULL));
        }
        assert_ok(frit_session_push(sessions[SESSIONS], tokens[0], 20, NULL));   // less than a page
        size_t n_pending = 1;
        while (n_pending > 0) {
            assert_ok(frit_engine_step(f.engine, NULL));
            n_pending = 0;
            for (int i = 0; i <= SESSIONS; i++) n_pending += frit_session_pending(sessions[i]);
        }
        for (int i = 0; i < SESSIONS && start > 0; i++) assert_int_equal(frit_session_cached(sessions[i]), N_WHOLE);
        for (int i = 0; i <= SESSIONS; i++) frit_session_free(sessions[i]);
        close_all(&f);
    }
}

static void a_session_may_go_while_pages_are_read(void **state)
{
    (void)state;
    frit_token tokens[N];
    char folder[1024];
    uint64_t step;
    snprintf(folder, sizeof folder, "%s", temp_path("goes"));
    for (int start = 0; start < 3; start++) {
        frit_session *session;
        fixture f = open_tiny(folder);
        if (start == 0) expect(&f, "", 1, N, N);
        make_tokens(1, tokens, N, f.n_vocab);
        assert_ok(frit_session_new(&session, f.engine));
        assert_ok(frit_session_push(session, tokens, N, NULL));
        if (start == 2) assert_ok(frit_engine_submit(f.engine, &step, NULL));
        frit_session_free(session);
        close_all(&f);
        assert_int_equal(pages_in(folder).n, N_WHOLE / 32);
    }
}

// ------------------------------------------------------------------------------- what is not shared

static void other_texts_models_and_salts_find_nothing(void **state)
{
    (void)state;
    char folder[1024], other[1024];
    snprintf(folder, sizeof folder, "%s", temp_path("others"));
    snprintf(other, sizeof other, "%s", tiny_model("b.gguf", &(tiny_options){.seed = 9}));
    fixture f = open_tiny(folder);
    expect(&f, "a", 1, N, N);
    close_all(&f);
    f = open_tiny(folder);
    expect(&f, "", 1, N, N);
    expect(&f, "b", 1, N, N);
    expect(&f, "a", 2, N, N);
    expect(&f, "a", 1, N, N - N_WHOLE);
    close_all(&f);
    fixture g = open_at(other, folder, (frit_engine_options){0});
    frit_token tokens[N];
    int32_t n_run;
    make_tokens(1, tokens, N, g.n_vocab);
    free(logits_of(&g, "a", tokens, N, &n_run));
    assert_int_equal(n_run, N);
    close_all(&g);
    g = open_at(tiny(), folder, (frit_engine_options){.cache_type_k = "f32"});
    free(logits_of(&g, "a", tokens, N, &n_run));
    assert_int_equal(n_run, N);
    close_all(&g);
}

static void options_are_checked(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    assert_ok(frit_model_open(&model, tiny(), NULL));
    assert_fails(frit_engine_new(&engine, model, &(frit_engine_options){.prefix_disk = ":3M"}), FRIT_E_INVALID,
                 "expected a folder, and a size after a colon");
    assert_fails(frit_engine_new(&engine, model, &(frit_engine_options){.prefix_disk = ""}), FRIT_E_INVALID,
                 "expected a folder");
    assert_fails(frit_engine_new(&engine, model, &(frit_engine_options){.prefix_disk = "pages:lots"}), FRIT_E_INVALID,
                 "'lots' is not a size, expected one like 4G");
    frit_model_free(model);
    n_warnings = 0;   // a file has the name of the folder
    const char *path = temp_path("pages");
    write_file(path, "x", 1);
    fixture f = open_tiny(path);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(last_warning, "the prefix cache keeps no prompts there"));
    close_all(&f);
    n_warnings = 0;   // a model with recurrent states
    f = open_at(shared_path("goldens/arch/mamba-dense.gguf"), temp_path("states"), (frit_engine_options){0});
    assert_true(n_warnings >= 1);
    assert_non_null(strstr(last_warning, "keeps nothing in"));
    close_all(&f);
}

// ------------------------------------------------------------------------------- faults

static void damage(const char *path, int kind)
{
    size_t n;
    char *bytes = read_file(path, &n);
    if (kind == 0) bytes[n - 1] ^= 1;
    if (kind == 1) bytes[200] ^= 4;
    if (kind == 2) n -= 1;
    if (kind == 3) n = 20;
    if (kind == 4) n = 0;
    write_file(path, bytes, n);
    free(bytes);
}

// Pages before the damaged one are used; later ones are computed and written again.
static void damaged_files_cost_a_warning(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        char folder[1024], name[32];
        snprintf(name, sizeof name, "damage-%d", kind);
        snprintf(folder, sizeof folder, "%s", temp_path(name));
        fixture f = open_tiny(folder);
        expect(&f, "", 1, N, N);
        close_all(&f);
        damage(pages_in(folder).path, kind);
        n_warnings = 0;
        f = open_tiny(folder);
        expect(&f, "", 1, N, N - 32);   // of the second page
        assert_int_equal(n_warnings, 1);
        assert_non_null(strstr(last_warning, "its tokens run again"));
        close_all(&f);
        f = open_tiny(folder);
        expect(&f, "", 1, N, N - N_WHOLE);
        close_all(&f);
        assert_int_equal(n_warnings, 1);
    }
}

static void a_full_disk_costs_a_warning(void **state)
{
    (void)state;
    struct rlimit before, small;
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", temp_path("full"));
    n_warnings = 0;
    fixture f = open_tiny(folder);
    expect(&f, "", 1, N, N);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 512;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    frit_engine_free(f.engine);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    frit_model_free(f.model);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(last_warning, "cannot be written: File too large; the prefix cache keeps no prompts there"));
    assert_int_equal(pages_in(folder).n + pages_in(folder).n_others, 0);
}

static void a_folder_that_cannot_be_used_costs_a_warning(void **state)
{
    (void)state;
    const char *file = temp_path("a-file");
    write_file(file, "x", 1);
    n_warnings = 0;
    fixture f = open_tiny(file);
    expect(&f, "", 1, N, N);
    close_all(&f);
    assert_true(n_warnings >= 1);
    assert_non_null(strstr(last_warning, "a-file"));
}

static void files_stay_within_the_size(void **state)
{
    (void)state;
    char folder[1024], disk[1100];
    snprintf(folder, sizeof folder, "%s", temp_path("small"));
    fixture f = open_tiny(folder);
    expect(&f, "", 1, N, N);
    close_all(&f);
    const uint64_t page = pages_in(folder).n_bytes / (uint64_t)pages_in(folder).n;
    write_file(temp_path("small/notes.txt"), "mine", 4);   // files that are not pages stay
    snprintf(disk, sizeof disk, "%s:%llu", folder, (unsigned long long)(6 * page));
    f = open_tiny(disk);
    for (uint64_t seed = 2; seed < 6; seed++) expect(&f, "", seed, N, N);
    close_all(&f);
    assert_in_range(pages_in(folder).n, 4, 6);
    assert_int_equal(pages_in(folder).n_others, 1);
}

// ------------------------------------------------------------------------------- files by themselves

enum { PAGE_BYTES = 3000 };

static frit_kv_disk_files files_in(char *folder, uint64_t max_bytes)
{
    return (frit_kv_disk_files){.folder = folder,
                                .log = {remember, NULL},
                                .max_bytes = max_bytes,
                                .page_bytes = PAGE_BYTES,
                                .group_bytes = {1000, 2000},
                                .group_at = {0, 1000}};
}

static void make_page(frit_kv_disk_page *page, uint8_t *bytes, int number, int depth)
{
    const frit_kv_key root = {{0}};
    *page = (frit_kv_disk_page){.parent = root, .depth = depth, .groups = number % 2 ? 3 : 1, .bytes = bytes};
    for (int i = 0; i < FRIT_PAGE_TOKENS; i++) page->tokens[i] = number;
    page->key = frit_kv_key_after(&root, page->tokens);
    memset(bytes, number, PAGE_BYTES);
}

static bool can_read(frit_kv_disk_files *files, int number, int depth)
{
    uint8_t expected[PAGE_BYTES], bytes[PAGE_BYTES] = {0};
    frit_kv_disk_page page;
    make_page(&page, expected, number, depth);
    page.bytes = bytes;
    page.groups = 0;
    if (!frit_kv_disk_read(files, &page)) return false;
    assert_int_equal(page.groups, number % 2 ? 3 : 1);
    assert_memory_equal(bytes, expected, number % 2 ? PAGE_BYTES : 1000);
    return true;
}

static void write_page(frit_kv_disk_files *files, int number, int depth)
{
    uint8_t bytes[PAGE_BYTES];
    frit_kv_disk_page page;
    make_page(&page, bytes, number, depth);
    frit_kv_disk_write(files, &page);
}

static void set_time(const char *folder, int depth, time_t seconds)
{
    char suffix[32], path[2048];
    snprintf(suffix, sizeof suffix, ".%d.page", depth);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const size_t n = strlen(entry->d_name);
        if (n < strlen(suffix) || strcmp(entry->d_name + n - strlen(suffix), suffix) != 0) continue;
        const struct timespec at = {.tv_sec = seconds}, times[2] = {at, at};
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
    closedir(dir);
}

static void those_used_least_lately_go(void **state)
{
    (void)state;
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", temp_path("least"));
    frit_kv_disk_files files = files_in(folder, 1 << 20);
    n_warnings = 0;
    for (int i = 0; i < 8; i++) write_page(&files, i, i);
    const time_t now = time(NULL);
    for (int i = 0; i < 8; i++) set_time(folder, i, now - (i < 4 ? 600 : 300));   // the first four are older
    files.max_bytes = pages_in(folder).n_bytes - 1;
    frit_kv_disk_trim(&files);
    assert_false(can_read(&files, 3, 3));   // the page furthest from the beginning, among the oldest
    assert_true(can_read(&files, 0, 0));    // and is used now
    files.max_bytes = 10000;
    frit_kv_disk_trim(&files);
    assert_true(pages_in(folder).n_bytes <= files.max_bytes);
    static const bool stays[8] = {true, false, false, false, true, true, true, false};
    for (int i = 0; i < 8; i++) assert_int_equal(can_read(&files, i, i), stays[i]);
    assert_int_equal(n_warnings, 0);
}

static void processes_share_a_folder(void **state)
{
    (void)state;
    enum { CHILDREN = 3, PAGES = 12 };
    char folder[1024];
    pid_t children[CHILDREN];
    snprintf(folder, sizeof folder, "%s", temp_path("shared"));
    frit_kv_disk_files files = files_in(folder, 1 << 20);
    n_warnings = 0;
    for (int c = 0; c < CHILDREN; c++) {
        children[c] = fork();
        assert_true(children[c] >= 0);
        if (children[c] > 0) continue;
        for (int round = 0; round < 4; round++)
            for (int i = 0; i < PAGES; i++) write_page(&files, i, i);
        _exit(n_warnings == 0 ? 0 : 1);
    }
    for (int i = 0; i < 300; i++) can_read(&files, i % PAGES, i % PAGES);   // existing files are complete at any time
    for (int c = 0; c < CHILDREN; c++) {
        int status;
        assert_int_equal(waitpid(children[c], &status, 0), children[c]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < PAGES; i++) assert_true(can_read(&files, i, i));
    assert_int_equal(n_warnings, 0);
    assert_int_equal(pages_in(folder).n, PAGES);
    assert_int_equal(pages_in(folder).n_others, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_finds_its_prompts),
        cmocka_unit_test(pages_that_give_way_come_back),
        cmocka_unit_test(windows_come_back),
        cmocka_unit_test(several_sessions_wait_for_the_disk),
        cmocka_unit_test(a_session_may_go_while_pages_are_read),
        cmocka_unit_test(other_texts_models_and_salts_find_nothing),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(damaged_files_cost_a_warning),
        cmocka_unit_test(a_full_disk_costs_a_warning),
        cmocka_unit_test(a_folder_that_cannot_be_used_costs_a_warning),
        cmocka_unit_test(files_stay_within_the_size),
        cmocka_unit_test(those_used_least_lately_go),
        cmocka_unit_test(processes_share_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
