#!/bin/sh
# SPDX-License-Identifier: MIT
# twice.sh FOLDER: repeats the builds of make dist and make deb in FOLDER from a clone of the last commit in another
# folder, with an empty cache of zig, and compares the bytes of all files. It takes as long as the first builds.
#
# dpkg-buildpackage's records of its run (.buildinfo, and .changes, which has the hash of .buildinfo) have the time of
# day and are not compared.
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
if [ -e "$tools" ]; then ln -s "$tools" build/tools; fi   # the compilers, but not their caches
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
