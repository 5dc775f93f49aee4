#!/bin/sh
# SPDX-License-Identifier: MIT
# windows.sh: builds windows.c and the files of apps/hub about the disk for Windows, with MinGW's gcc, and runs the
# program with wine. Ends with 77 if one of both is missing.
#
# tests/hub/windows.sh FOLDER      the folder of the build, the run, and wine's own files
set -eu
compiler=x86_64-w64-mingw32-gcc
for program in $compiler wine; do
    command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
root=$(cd "$(dirname "$0")/../.." && pwd)
rm -rf "$1/run" && mkdir -p "$1/run"
cd "$root"
# -Wno-format: this gcc checks "printf" by Microsoft's old rules, regardless of the macro.
$compiler -std=c17 -O1 -Wall -Wextra -Werror -Wno-format -D__USE_MINGW_ANSI_STDIO=1 -Iinclude -Iapps -static \
    apps/hub/disk.c apps/hub/disk_win.c apps/hub/part.c apps/hub/settings.c apps/hub/status.c tests/hub/windows.c \
    -o "$1/run/windows.exe"
cd "$1/run"
export WINEPREFIX="$1/wine" WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' DISPLAY=
code=0
wine ./windows.exe 2>wine.log || code=$?
wineserver -k >/dev/null 2>&1 || true   # ends the server of this prefix only
exit $code
