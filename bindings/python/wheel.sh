#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh FOLDER NAME...: builds wheels into FOLDER: with zig for the named rows of packaging/platforms.tsv, or with
# this machine's compiler and libraries for "native". Equal sources give equal bytes.
set -eu
mkdir -p "$1"
out=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
. packaging/project

bindings/python/test.sh --setup
for name in "$@"; do
    if [ "$name" = native ]; then name=''; fi
    FRIT_WHEEL_TARGET=$name build/python/bin/python -m build --wheel --no-isolation --outdir "$out" bindings/python
done
