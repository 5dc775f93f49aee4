#!/bin/sh
# SPDX-License-Identifier: MIT
# twice.sh FOLDER: builds what make dist and make deb wrote into FOLDER once more, from a clone of the last commit in another
# folder, with a cache of zig that is empty, and compares the bytes of all files. Takes as long as the first time.
#
# What dpkg-buildpackage says of its run (.buildinfo, and .changes, which has the hash of that) is left out: it has the hour.
set -eu
folder=$(realpath "$1")
cd "$(dirname "$0")/../.."
[ -z "$(git status --porcelain)" ] || { echo "twice.sh: the tree has changes that are not committed" >&2; exit 1; }
again=$(mktemp -d "${TMPDIR:-/tmp}/frit-again-XXXXXX")
trap 'rm -rf "$again"' EXIT
git clone --quiet . "$again/in-a-folder-with-another-name"
tools=$PWD/build/tools
cd "$again/in-a-folder-with-another-name"
mkdir build
if [ -e "$tools" ]; then ln -s "$tools" build/tools; fi   # compilers, not what they made
export ZIG_GLOBAL_CACHE_DIR="$again/zig" CCACHE_DISABLE=1

sums() { (cd "$1" && find . -maxdepth 1 -type f ! -name '*.buildinfo' ! -name '*.changes' -exec sha256sum {} + | sort -k 2); }
if [ -e "$folder/SHA256SUMS" ]; then
    names=$(sed -n 's/^.*  frit-[0-9.]*-\([a-z]*-[a-z0-9_]*\)\.\(tar\.gz\|zip\)$/\1/p' "$folder/SHA256SUMS" | tr '\n' ' ')
    make dist DIST_NAMES="$names" >/dev/null
fi
if ls "$folder"/*.deb >/dev/null 2>&1; then make deb >/dev/null; fi
sums "$folder" >"$again/first"
sums build/dist >"$again/second"
diff "$again/first" "$again/second" || { echo "twice.sh: the lines with < and > differ" >&2; exit 1; }
echo "$(wc -l <"$again/first") files, the same bytes"
