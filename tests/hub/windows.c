// SPDX-License-Identifier: MIT
// The disk of models by name on Windows: windows.sh builds this for Windows and runs it if wine is installed.
#include "hub/disk.h"
#include "hub/partial.h"

#include <process.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static int n_failed;

#define CHECK(condition)                                                                                \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            printf("windows.c:%d: %s; the last sentence is '%s'\n", __LINE__, #condition, hub_error()); \
            n_failed++;                                                                                 \
        }                                                                                               \
    } while (0)

enum { N_BYTES = 1500000, PATIENCE_MS = 120000 };

static bool is_text(const char *path, const char *expected)
{
    char *text = NULL;
    size_t n = 0;
    const bool good =
        hub_read_text(path, 1 << 20, &text, &n) == HUB_OK && n == strlen(expected) && memcmp(text, expected, n) == 0;
    free(text);
    return good;
}

static void wait_for(const char *path)
{
    for (int ms = 0; hub_file_bytes(path) == UINT64_MAX && ms < PATIENCE_MS; ms += 20) hub_sleep_ms(20);
}

// ---------------------------------------------------------------------------------------- files

static void names_are_long_and_any_letters(void)
{
    char path[1024] = "tree";
    for (int i = 0; i < 12; i++) strcat(path, "/f\xc3\xbcnfundzwanzig-zeichen-00");   // longer than 260
    CHECK(strlen(path) > 300);
    CHECK(hub_make_folder(path) == HUB_OK);
    strcat(path, "/\xe6\xa8\xa1\xe5\x9e\x8b.json");
    CHECK(hub_write_text(path, "one", 3) == HUB_OK && is_text(path, "one"));
    CHECK(hub_write_text(path, "three", 5) == HUB_OK && is_text(path, "three"));   // replaces the file
    uint64_t freed = 0;
    CHECK(hub_remove("tree", &freed) == HUB_OK && freed == 5 && !hub_is_folder("tree"));
}

static void a_file_is_no_folder(void)
{
    CHECK(hub_write_text("file", "x", 1) == HUB_OK);
    CHECK(hub_make_folder("file/below") == HUB_E_DISK);
    CHECK(hub_file_bytes("file") == 1 && hub_file_bytes("none") == UINT64_MAX && hub_file_bytes(".") == UINT64_MAX);
    CHECK(hub_file_changed("file") > 1600000000);
    CHECK(!is_text("none", ""));
}

static void links_lead_to_their_file(void)
{
    CHECK(hub_make_folder("cache/blobs") == HUB_OK && hub_write_text("cache/blobs/abc", "weights", 7) == HUB_OK);
    CHECK(hub_write_text("cache/blobs/def", "others", 6) == HUB_OK);
    CHECK(hub_link("cache/blobs/def", "cache/snapshots/c/sub/m.gguf") == HUB_OK);
    CHECK(hub_link("cache/blobs/abc", "cache/snapshots/c/sub/m.gguf") == HUB_OK);   // replaces the link
    CHECK(hub_link("cache/blobs/abc", "cache/snapshots/c/sub/m.gguf") == HUB_OK);
    CHECK(is_text("cache/snapshots/c/sub/m.gguf", "weights"));
    CHECK(hub_is_same_file("cache/blobs/abc", "cache/snapshots/c/sub/m.gguf"));
    CHECK(!hub_is_same_file("cache/blobs/def", "cache/snapshots/c/sub/m.gguf"));
    uint64_t freed = 0;
    CHECK(hub_remove("cache", &freed) == HUB_OK && freed == 13);   // no file is counted twice
}

static hub_status count_names(void *ctx, const char *path, const char *name, bool is_folder)
{
    strcat(ctx, name);
    strcat(ctx, is_folder ? "/ " : hub_file_bytes(path) == 1 ? " " : "? ");
    return HUB_OK;
}

static void entries_are_sorted(void)
{
    char names[256] = "";
    CHECK(hub_make_folder("list/b") == HUB_OK && hub_write_text("list/c", "1", 1) == HUB_OK);
    CHECK(hub_write_text("list/a", "1", 1) == HUB_OK);
    CHECK(hub_each_entry("list", count_names, names) == HUB_OK && strcmp(names, "a b/ c ") == 0);
    CHECK(hub_each_entry("nowhere", count_names, names) == HUB_OK);
}

static void names_of_devices_and_streams_are_refused(void)
{
    static const char *const good[] = {"m.gguf", "console.json", "com.json", "a b", "LPT", "com10", "nul1"};
    static const char *const bad[] = {"nul", "NUL.gguf", "con", "aux.json", "COM1",   "lpt9.x", "a:b",    "m.gguf.",
                                      "m ",  "a?b",      "a*",  "a\\b",     "nul .x", "<",      "CONIN$", ""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) CHECK(hub_is_file_name(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) CHECK(!hub_is_file_name(bad[i], strlen(bad[i])));
}

static void room_is_looked_at(void)
{
    double free_bytes = 0;
    CHECK(hub_free_bytes(".", &free_bytes) && free_bytes > 0);
    CHECK(hub_check_room("C:/not/yet/there", 1, "m") == HUB_OK);
    CHECK(hub_check_room("C:/not/yet/there", (uint64_t)1 << 60, "m") == HUB_E_DISK && strstr(hub_error(), "GiB more"));
}

static void folders_are_the_users(void)
{
    hub_settings *settings = calloc(1, sizeof *settings);
    _putenv("USERPROFILE=C:\\Users\\Anna B");
    _putenv("HF_HOME=");
    _putenv("XDG_CACHE_HOME=");
    CHECK(settings && hub_settings_read(settings) == HUB_OK);
    CHECK(settings && strcmp(settings->hub_cache.text, "C:/Users/Anna B/.cache/huggingface/hub") == 0);
    CHECK(settings && strcmp(settings->ollama[0].text, "C:/Users/Anna B/.ollama/models") == 0);
    free(settings);
}

// ---------------------------------------------------------------------------------------- parts and locks

static char letters[N_BYTES];

static void fill(void)
{
    for (int i = 0; i < N_BYTES; i++) letters[i] = (char)('a' + i * 7 % 26);
}

// The other process: writes a part under a lock, reports it, and ends without closing anything.
static int other(void)
{
    hub_partial part;
    hub_handle lock;
    if (hub_open("l.lock", true, &lock) != HUB_OK || hub_try_lock(lock) != HUB_LOCKED) return 1;
    if (hub_partial_open(&part, "m.part", "etag", N_BYTES) != HUB_OK ||
        hub_partial_write(&part, 0, letters, 700000) != HUB_OK)
        return 1;
    if (hub_write_text("held", "x", 1) != HUB_OK) return 1;
    wait_for("go");
    TerminateProcess(GetCurrentProcess(), 3);
    return 1;
}

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void say(void *ctx, const char *sentence)
{
    (void)sentence;
    ++*(int *)ctx;
    hub_write_text("go", "x", 1);
}

static void a_process_that_ends_leaves_its_part_and_its_lock(const char *program)
{
    int n_said = 0;
    const hub_watch watch = {.stops = never, .say = say, .ctx = &n_said};
    hub_handle lock;
    hub_partial part;
    const intptr_t child = _spawnl(_P_NOWAIT, program, "windows", "other", NULL);
    CHECK(child != -1);
    wait_for("held");
    CHECK(hub_lock("l.lock", "m", &watch, &lock) == HUB_OK && n_said == 1);   // it waited
    int code = 0;
    CHECK(_cwait(&code, child, 0) == child && code == 3);
    CHECK(hub_partial_open(&part, "m.part", "etag", N_BYTES) == HUB_OK && part.n_done == 700000);
    const uint64_t half = hub_partial_prefix(&part);
    CHECK(half == 700000);
    CHECK(hub_partial_write(&part, half, letters + half, (size_t)(N_BYTES - half)) == HUB_OK);
    CHECK(hub_write_text("m.gguf", "old", 3) == HUB_OK);
    CHECK(hub_partial_finish(&part, "m.gguf") == HUB_OK && hub_file_bytes("m.part") == UINT64_MAX);
    hub_unlock(lock);
    char *text = NULL;
    size_t n = 0;
    CHECK(hub_read_text("m.gguf", N_BYTES, &text, &n) == HUB_OK && n == N_BYTES && memcmp(text, letters, n) == 0);
    free(text);
    CHECK(hub_partial_open(&part, "m.part", "etag", N_BYTES) == HUB_OK);
    hub_partial_remove(&part);
    CHECK(hub_file_bytes("m.part") == UINT64_MAX);
}

int main(int argc, char **argv)
{
    fill();
    if (argc > 1) return other();
    names_are_long_and_any_letters();
    a_file_is_no_folder();
    links_lead_to_their_file();
    entries_are_sorted();
    names_of_devices_and_streams_are_refused();
    room_is_looked_at();
    folders_are_the_users();
    a_process_that_ends_leaves_its_part_and_its_lock(argv[0]);
    printf(n_failed ? "%d checks failed\n" : "all checks passed\n", n_failed);
    return n_failed > 0;
}
