// SPDX-License-Identifier: MIT
// Folders and editors, on Windows.
#include "frit/chat/chat.h"

#include <direct.h>
#include <stdlib.h>

void chat_os_make_folder(const char *path)
{
    _mkdir(path);
}

int chat_os_run_editor(const char *editor, const char *path)
{
    cli_text command = {0};
    cli_text_print(&command, "%s \"%s\"", editor, path);
    const int code = system(command.data);
    free(command.data);
    return code;
}
