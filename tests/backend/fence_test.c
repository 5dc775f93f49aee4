// SPDX-License-Identifier: MIT
// Checks that the malloc of tests/fence ends a program that reads or writes past the end of an array; tests of kernels
// rely on it.
#include "support/support.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Accesses byte `at` of a new array of n bytes in a separate process, then frees the array. Returns the signal that
// ended the process, or 0.
static int signal_of_access(size_t n, size_t at, bool writes)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = {0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        volatile char *array = malloc(n);
        if (writes)
            array[at] = 1;
        else
            (void)array[at];
        free((void *)(uintptr_t)array);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void accesses_past_an_array_end_the_program(void **state)
{
    (void)state;
#if !defined(FRIT_TEST_FENCE)
    skip_because("this build has the system's malloc");
#endif
    assert_int_equal(signal_of_access(64, 63, false), 0);
    assert_int_equal(signal_of_access(64, 63, true), 0);
    assert_int_equal(signal_of_access(64, 64, false), SIGSEGV);
    assert_int_equal(signal_of_access(64, 64, true), SIGSEGV);
    // Alignment leaves 15 bytes before the page: a write there is found when the array is freed.
    assert_int_equal(signal_of_access(49, 48, true), 0);
    assert_int_equal(signal_of_access(49, 49, true), SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(accesses_past_an_array_end_the_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
