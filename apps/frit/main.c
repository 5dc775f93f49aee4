// SPDX-License-Identifier: MIT
// frit, the command.
#include "frit/cli/cli.h"

int main(int argc, char **argv)
{
    cli_begin_process();
    return cli_end_output(cli_main(argc, argv));
}
