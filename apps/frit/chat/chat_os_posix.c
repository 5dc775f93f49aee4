// SPDX-License-Identifier: MIT
// Folders and editors, on POSIX systems.
#include "frit/chat/chat.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void chat_os_make_folder(const char *path)
{
    mkdir(path, 0700);
}

int chat_os_run_editor(const char *editor, const char *path)
{
    int status = -1;
    cli_text command = {0};
    cli_text_print(&command, "%s \"$FRIT_EDITED_FILE\"", editor);
    pid_t child = fork();
    if (child == 0) {
        setenv("FRIT_EDITED_FILE", path, 1);
        execl("/bin/sh", "sh", "-c", command.data, (char *)NULL);
        _exit(127);
    }
    free(command.data);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
