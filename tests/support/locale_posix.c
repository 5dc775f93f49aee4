// SPDX-License-Identifier: MIT
// Makes a locale with localedef, which comes with glibc.
#include "support/locale.h"

#include "support/support.h"

#include <locale.h>

static const char source[] = "comment_char %\nescape_char /\n"
                             "LC_CTYPE\ncopy \"POSIX\"\nEND LC_CTYPE\n"
                             "LC_COLLATE\ncopy \"POSIX\"\nEND LC_COLLATE\n"
                             "LC_MONETARY\ncopy \"POSIX\"\nEND LC_MONETARY\n"
                             "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n"
                             "LC_TIME\ncopy \"POSIX\"\nEND LC_TIME\n"
                             "LC_MESSAGES\ncopy \"POSIX\"\nEND LC_MESSAGES\n";

const char *enter_comma_locale(void)
{
    static char folder[600];
    if (!*folder) {
        char command[2048], text[600];
        snprintf(text, sizeof text, "%s", temp_path("comma.locale"));
        write_file(text, source, sizeof source - 1);
        snprintf(folder, sizeof folder, "%s", text);
        *strrchr(folder, '/') = 0;
        // localedef warns of missing categories and ends with 1; the code below checks if it worked.
        snprintf(command, sizeof command, "localedef -c -i '%s' '%s/xx_XX' >'%s/localedef.out' 2>&1", text, folder,
                 folder);
        if (system(command) == -1) skip_because("localedef cannot be run");
        setenv("LOCPATH", folder, 1);
    }
    if (!setlocale(LC_ALL, "xx_XX") || strcmp(localeconv()->decimal_point, ",") != 0) {
        leave_comma_locale();
        skip_because("localedef is not here, which makes a locale with a decimal comma");
    }
    return folder;
}

void leave_comma_locale(void)
{
    setlocale(LC_ALL, "C");
}
