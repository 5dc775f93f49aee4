// SPDX-License-Identifier: MIT
// Files: opening, refusing, and cleaning up.
#include "support/support.h"

#include "base/file/file.h"
#include "base/file/partial_file.h"

#include <dirent.h>
#include <sys/resource.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void a_file_is_the_same_mapped_and_read(void **state)
{
    (void)state;
    const char *path = temp_path("numbers");
    enum { N = 300001 };
    unsigned char *bytes = malloc(N);
    for (size_t i = 0; i < N; i++) bytes[i] = (unsigned char)(i * i >> 3);
    write_file(path, bytes, N);
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        frit_file *file;
        assert_ok(frit_file_open(&file, path, no_mmap));
        assert_int_equal(frit_file_is_mapped(file), !no_mmap);
        assert_int_equal(frit_file_size(file), N);
        assert_memory_equal(frit_file_data(file), bytes, N);
        assert_int_equal((uintptr_t)frit_file_data(file) % 64, 0);
        assert_string_equal(frit_file_path(file), path);
        assert_true(frit_file_is_intact(file));
        frit_file_drop_pages(file);   // the pages are read again when they are touched
        assert_memory_equal(frit_file_data(file), bytes, N);
        frit_file_close(file);
    }
    free(bytes);
    frit_file_close(NULL);
}

static int count_entries(const char *path)
{
    DIR *folder = opendir(path);
    int n = 0;
    assert_non_null(folder);
    while (readdir(folder)) n++;
    closedir(folder);
    return n;
}

static void a_copy_changes_alone_and_has_no_name(void **state)
{
    (void)state;
    enum { N = (1 << 20) + 4097 };
    char path[1024], folder[1024];
    snprintf(path, sizeof path, "%s", temp_path("original"));
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    unsigned char *bytes = malloc(N);
    for (size_t i = 0; i < N; i++) bytes[i] = (unsigned char)(i * i >> 3);
    write_file(path, bytes, N);
    const int n_entries = count_entries(folder);
    frit_file *copy, *file;
    assert_ok(frit_file_open_copy(&copy, path));
    assert_true(frit_file_is_mapped(copy));
    assert_int_equal(frit_file_size(copy), N);
    assert_memory_equal(frit_file_bytes(copy), bytes, N);
    memset(frit_file_bytes(copy), 7, N);
    assert_int_equal(count_entries(folder), n_entries);
    assert_ok(frit_file_open(&file, path, false));
    assert_memory_equal(frit_file_data(file), bytes, N);
    frit_file_close(file);
    frit_file_close(copy);
    write_file(path, "", 0);
    assert_ok(frit_file_open_copy(&copy, path));
    assert_int_equal(frit_file_size(copy), 0);
    frit_file_close(copy);
    free(bytes);
}

static void scratch_lies_in_a_file_or_in_memory(void **state)
{
    (void)state;
    enum { N = (2 << 20) + 17 };
    char path[1024];
    snprintf(path, sizeof path, "%s", temp_path("any"));
    const char *const paths[] = {path, "/no/such/folder/any"};
    for (int i = 0; i < 2; i++) {
        bool is_mapped;
        unsigned char *bytes = frit_scratch_new(paths[i], N, &is_mapped);
        assert_non_null(bytes);
        assert_int_equal(is_mapped, i == 0);
        for (size_t k = 0; k < N; k++) assert_int_equal(bytes[k], 0);
        memset(bytes, 5, N);
        frit_scratch_free(bytes, N, is_mapped);
    }
}

static void an_empty_file_has_no_bytes(void **state)
{
    (void)state;
    const char *path = temp_path("empty");
    write_file(path, "", 0);
    for (int no_mmap = 0; no_mmap < 2; no_mmap++) {
        frit_file *file;
        assert_ok(frit_file_open(&file, path, no_mmap));
        assert_int_equal(frit_file_size(file), 0);
        assert_null(frit_file_data(file));
        assert_true(frit_file_is_intact(file));
        frit_file_drop_pages(file);
        frit_file_close(file);
    }
}

static void refused(const char *path, frit_status status, const char *what)
{
    frit_file *file;
    char *text;
    size_t n;
    char sentence[4096];
    snprintf(sentence, sizeof sentence, "%s: %s", path, what);
    assert_fails(frit_file_open(&file, path, false), status, sentence);
    assert_null(file);
    assert_fails(frit_file_open(&file, path, true), status, sentence);
    assert_fails(frit_file_read(path, 100, &text, &n), status, sentence);
    assert_null(text);
}

static void what_is_not_a_regular_file_is_refused_at_once(void **state)
{
    (void)state;
    const char *fifo = temp_path("fifo"), *sock = temp_path("socket");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", sock);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    refused(fifo, FRIT_E_IO, "is a pipe, expected a file");
    refused(sock, FRIT_E_IO, "is a socket, expected a file");
    refused("/dev/null", FRIT_E_IO, "is a device, expected a file");
    refused("/", FRIT_E_IO, "is a folder, expected a file");
    refused(temp_path("absent"), FRIT_E_NOT_FOUND, "cannot be opened: No such file or directory");
    assert_int_equal(frit_path_get_kind(fifo), FRIT_PATH_OTHER);
    assert_int_equal(frit_path_get_kind("/"), FRIT_PATH_FOLDER);
    assert_int_equal(frit_path_get_kind(temp_path("absent")), FRIT_PATH_NONE);
    close(fd);
}

static void a_file_that_shrinks_is_no_longer_intact(void **state)
{
    (void)state;
    const char *path = temp_path("shrinks");
    write_file(path, "0123456789", 10);
    frit_file *mapped, *copied;
    assert_ok(frit_file_open(&mapped, path, false));
    assert_ok(frit_file_open(&copied, path, true));
    assert_int_equal(frit_path_get_kind(path), FRIT_PATH_FILE);
    assert_int_equal(truncate(path, 20), 0);
    assert_true(frit_file_is_intact(mapped));
    assert_int_equal(truncate(path, 9), 0);
    assert_false(frit_file_is_intact(mapped));
    assert_int_equal(frit_file_size(mapped), 10);
    assert_int_equal(frit_file_size_now(mapped), 9);
    assert_true(frit_file_is_intact(copied));
    assert_memory_equal(frit_file_data(copied), "0123456789", 10);
    frit_file_close(mapped);
    frit_file_close(copied);
}

static void a_file_larger_than_memory_is_refused_before_it_is_read(void **state)
{
    (void)state;
    const char *path = temp_path("large");
    frit_file *file;
    write_file(path, "hello", 5);
    if (truncate(path, (off_t)1 << 42) != 0) skip_because("this file system has no files of 4 TiB");
    assert_fails(frit_file_open(&file, path, true), FRIT_E_MEMORY,
                 "large: has 4398046511104 bytes to be read into memory, ");
}

static void reading_text_is_limited_and_zero_terminated(void **state)
{
    (void)state;
    const char *path = temp_path("text");
    write_file(path, "hello", 5);
    char *text;
    size_t n;
    assert_ok(frit_file_read(path, 5, &text, &n));
    assert_int_equal(n, 5);
    assert_string_equal(text, "hello");
    free(text);
    assert_fails(frit_file_read(path, 4, &text, &n), FRIT_E_LIMIT, "text: has 5 bytes, expected at most 4");
    write_file(path, "", 0);
    assert_ok(frit_file_read(path, 0, &text, &n));
    assert_string_equal(text, "");
    free(text);
#if defined(__linux__)
    assert_ok(frit_file_read("/proc/self/status", 1 << 20, &text, &n));   // a file whose size is reported as 0
    assert_non_null(strstr(text, "VmPeak"));
    free(text);
    assert_fails(frit_file_read("/proc/self/status", 100, &text, &n), FRIT_E_LIMIT, "has more than 100 bytes");
#endif
}

// Returns the number of names in a folder.
static int count_names(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static const char *own_folder(const char *name)
{
    const char *folder = temp_path(name);
    assert_int_equal(mkdir(folder, 0700), 0);
    return folder;
}

static void assert_holds(const char *path, const char *want)
{
    size_t n;
    char *text = read_file(path, &n);
    assert_string_equal(text, want);
    free(text);
}

static void an_aborted_file_leaves_nothing(void **state)
{
    (void)state;
    const char *folder = own_folder("aborted"), *path = temp_path("aborted/out");
    frit_file_writer *writer;
    assert_ok(frit_file_writer_open(&writer, path));
    assert_ok(frit_file_writer_write(writer, "half", 4));
    assert_int_equal(count_names(folder), 1);
    frit_file_writer_abort(writer);
    assert_int_equal(count_names(folder), 0);
    write_file(path, "old", 3);
    assert_ok(frit_file_writer_open(&writer, path));
    assert_ok(frit_file_writer_write(writer, "new", 3));
    frit_file_writer_abort(writer);
    assert_int_equal(count_names(folder), 1);
    assert_holds(path, "old");
    frit_file_writer_abort(NULL);
}

static void a_commit_replaces_the_file_at_once(void **state)
{
    (void)state;
    const char *folder = own_folder("committed"), *path = temp_path("committed/out");
    write_file(path, "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    frit_file *old;
    assert_ok(frit_file_open(&old, path, false));
    frit_file_writer *writer;
    assert_ok(frit_file_writer_open(&writer, path));
    for (int i = 0; i < 3; i++) assert_ok(frit_file_writer_write(writer, "new", 3));
    assert_int_equal(frit_file_writer_offset(writer), 9);
    assert_holds(path, "old");
    assert_ok(frit_file_writer_commit(writer));
    assert_holds(path, "newnewnew");
    assert_memory_equal(frit_file_data(old), "old", 3);   // an open file keeps its contents
    frit_file_close(old);
    assert_int_equal(count_names(folder), 1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void a_part_goes_on_with_its_key_and_has_one_writer(void **state)
{
    (void)state;
    const char *folder = own_folder("part"), *path = temp_path("part/out");
    uint8_t key[FRIT_PARTIAL_KEY_BYTES] = "key of the first",
            first[FRIT_PARTIAL_KEY_BYTES] = "the file's own first bytes";
    frit_file_writer *writer, *other;
    uint64_t n_kept;
    assert_ok(frit_partial_file_open(&writer, path, key, &n_kept));
    assert_int_equal(n_kept, 0);
    assert_ok(frit_file_writer_write(writer, "abcdef", 6));
    assert_ok(frit_partial_file_open(&other, path, key, &n_kept));
    assert_null(other);
    frit_partial_file_leave(writer);
    assert_ok(frit_partial_file_open(&writer, path, key, &n_kept));
    assert_int_equal(n_kept, FRIT_PARTIAL_KEY_BYTES + 6);
    assert_ok(frit_partial_file_keep(writer, FRIT_PARTIAL_KEY_BYTES + 3));
    assert_ok(frit_file_writer_write(writer, "xy", 2));
    assert_ok(frit_partial_file_commit(writer, first));
    assert_int_equal(count_names(folder), 1);
    size_t n;
    char *bytes = read_file(path, &n);
    assert_int_equal(n, FRIT_PARTIAL_KEY_BYTES + 5);
    assert_memory_equal(bytes, first, FRIT_PARTIAL_KEY_BYTES);
    assert_memory_equal(bytes + FRIT_PARTIAL_KEY_BYTES, "abcxy", 5);
    free(bytes);
    // Another key begins anew; an uncommitted file can be removed.
    assert_ok(frit_partial_file_open(&writer, path, key, &n_kept));
    assert_ok(frit_file_writer_write(writer, "abc", 3));
    frit_partial_file_leave(writer);
    key[0] = 'K';
    assert_ok(frit_partial_file_open(&writer, path, key, &n_kept));
    assert_int_equal(n_kept, 0);
    frit_file_writer_abort(writer);
    assert_int_equal(count_names(folder), 1);
}

static void pieces_of_any_size_arrive_in_order(void **state)
{
    (void)state;
    const char *path = temp_path("pieces");
    enum { N = 3000000 };
    unsigned char *bytes = malloc(N);
    frit_rng rng;
    frit_rng_init(&rng, 1);
    for (size_t i = 0; i < N; i++) bytes[i] = (unsigned char)frit_rng_next(&rng);
    frit_file_writer *writer;
    assert_ok(frit_file_writer_open(&writer, path));
    for (size_t at = 0, n; at < N; at += n) {
        int64_t most = (int64_t)1 << random_between(&rng, 0, 20);
        n = (size_t)random_between(&rng, 0, most);
        if (n > N - at) n = N - at;
        assert_ok(frit_file_writer_write(writer, bytes + at, n));
        assert_int_equal(frit_file_writer_offset(writer), at + n);
    }
    assert_ok(frit_file_writer_commit(writer));
    size_t n;
    char *back = read_file(path, &n);
    assert_int_equal(n, N);
    assert_memory_equal(back, bytes, N);
    free(back);
    free(bytes);
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
    (void)state;
    const char *folder = own_folder("linked"), *file = temp_path("linked/file"), *link = temp_path("linked/link");
    write_file(file, "old", 3);
    assert_int_equal(symlink("file", link), 0);
    frit_file_writer *writer;
    assert_ok(frit_file_writer_open(&writer, link));
    assert_ok(frit_file_writer_write(writer, "new", 3));
    assert_ok(frit_file_writer_commit(writer));
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_holds(file, "new");
    assert_int_equal(count_names(folder), 2);
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

// Permissions are independent of the umask and of an existing file.
static void a_private_file_is_its_owners_alone(void **state)
{
    (void)state;
    const mode_t before = umask(0);
    const char *path = temp_path("private-file"), *folder = temp_path("private-folder");
    frit_file_writer *writer;
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_file_writer_open_private(&writer, path));
        assert_ok(frit_file_writer_write(writer, "said", 4));
        assert_ok(frit_file_writer_commit(writer));
        assert_int_equal(mode_of(path), 0600);
        assert_holds(path, "said");
        assert_int_equal(chmod(path, 0644), 0);
    }
    assert_ok(frit_folder_make_private(folder));
    assert_int_equal(mode_of(folder), 0700);
    assert_int_equal(chmod(folder, 0750), 0);   // the owner's permissions stay unchanged
    assert_ok(frit_folder_make_private(folder));
    assert_int_equal(mode_of(folder), 0750);
    umask(before);
}

static void what_is_not_a_file_is_never_replaced(void **state)
{
    (void)state;
    frit_file_writer *writer;
    assert_fails(frit_file_writer_open(&writer, "/dev/null"), FRIT_E_IO,
                 "/dev/null: is a device and cannot be replaced");
    assert_null(writer);
    assert_fails(frit_file_writer_open(&writer, "/tmp"), FRIT_E_IO, "/tmp: is a folder and cannot be replaced");
    assert_fails(frit_file_writer_open(&writer, "/no-such-folder/x"), FRIT_E_NOT_FOUND, "/no-such-folder/x: cannot be");
}

// A limit on file size simulates a full disk: write fails half way in the same manner.
static void a_full_disk_is_reported_and_leaves_nothing(void **state)
{
    (void)state;
    const char *folder = own_folder("full"), *path = temp_path("full/out");
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char *block = calloc(1, 700000);
    frit_file_writer *writer;
    assert_ok(frit_file_writer_open(&writer, path));
    frit_status first = frit_file_writer_write(writer, block, 700000);
    frit_status second = frit_file_writer_write(writer, block, 700000);
    char sentence[FRIT_ERROR_BYTES];
    snprintf(sentence, sizeof sentence, "%s", frit_error());
    frit_file_writer_abort(writer);
    assert_ok(frit_file_writer_open(&writer, path));
    frit_status small_pieces = FRIT_OK;
    for (int i = 0; i < 18 && small_pieces == FRIT_OK; i++) small_pieces = frit_file_writer_write(writer, block, 65536);
    frit_status commit = frit_file_writer_commit(writer);
    setrlimit(RLIMIT_FSIZE, &before);
    free(block);
    assert_ok(first);
    assert_int_equal(second, FRIT_E_IO);
    assert_non_null(strstr(sentence, "full/out: cannot be written: File too large"));
    assert_ok(small_pieces);   // the last pieces were still in the buffer
    assert_int_equal(commit, FRIT_E_IO);
    assert_int_equal(count_names(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_private_file_is_its_owners_alone),
        cmocka_unit_test(a_file_is_the_same_mapped_and_read),
        cmocka_unit_test(a_copy_changes_alone_and_has_no_name),
        cmocka_unit_test(scratch_lies_in_a_file_or_in_memory),
        cmocka_unit_test(an_empty_file_has_no_bytes),
        cmocka_unit_test(what_is_not_a_regular_file_is_refused_at_once),
        cmocka_unit_test(a_file_that_shrinks_is_no_longer_intact),
        cmocka_unit_test(a_file_larger_than_memory_is_refused_before_it_is_read),
        cmocka_unit_test(reading_text_is_limited_and_zero_terminated),
        cmocka_unit_test(an_aborted_file_leaves_nothing),
        cmocka_unit_test(a_commit_replaces_the_file_at_once),
        cmocka_unit_test(a_part_goes_on_with_its_key_and_has_one_writer),
        cmocka_unit_test(pieces_of_any_size_arrive_in_order),
        cmocka_unit_test(a_link_stays_and_its_file_is_replaced),
        cmocka_unit_test(what_is_not_a_file_is_never_replaced),
        cmocka_unit_test(a_full_disk_is_reported_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
