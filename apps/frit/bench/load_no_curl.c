// SPDX-License-Identifier: MIT
// A build without libcurl measures engines in its own process alone.
#include "frit/bench/load.h"

int load_open_server(load_driver *driver, const bench_args *args)
{
    (void)driver, (void)args;
    return cli_fail("bench: --url: this build of frit cannot reach servers: it was built without libcurl");
}
