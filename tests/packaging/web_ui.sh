#!/bin/sh
# SPDX-License-Identifier: MIT
# web_ui.sh CMAKE: the source tarball has the built web UI, and a build of it without Node.js uses that. The test makes
# a small tree of the scripts and files involved, where a script stands for Node.js.
set -eu
cmake=$1
source=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d "${TMPDIR:-/tmp}/frit-web-ui-XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "web_ui.sh: $*" >&2; exit 1; }

mkdir -p "$work/tree/cmake" "$work/tree/apps/server/web_ui" "$work/tree/packaging" "$work/tree/tools" "$work/bin"
cd "$work/tree"
mkdir include && cp "$source/include/frit.h" include/
cp "$source"/cmake/FritWebUi*.cmake cmake/
cp -R "$source/apps/server/web_ui/docs" "$source/apps/server/web_ui/plain" apps/server/web_ui/
cp "$source"/packaging/web_ui "$source"/packaging/source_tarball "$source"/packaging/project packaging/
printf '#!/bin/sh\n' >tools/setup
cat >"$work/bin/node" <<'END'
#!/bin/sh
mkdir -p "$3"
for name in index.html app.js worker.js; do echo "built $name" | gzip -9n >"$3/$name.gz"; done
echo "a licence" >"$3/licenses.txt"
printf 'a-library\t1.0\tMIT\tits authors\n' >"$3/libraries.tsv"
END
chmod +x tools/setup "$work/bin/node"
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(web_ui NONE)
include(cmake/FritWebUiFiles.cmake)
add_custom_target(web_ui ALL DEPENDS ${frit_web_ui_source})
file(WRITE ${CMAKE_BINARY_DIR}/licenses "${frit_web_ui_licenses}")
END
export SOURCE_DATE_EPOCH=1700000000 GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
git init -q . && git add .

# Builds the tree in FOLDER without Node.js. The files of the web UI are in FOLDER/build/generated/web_ui_files.c.
build() {
    "$cmake" --log-level=WARNING -S "$1" -B "$1/build" -DFRIT_PAGE_TOOLS="$work/none" >"$work/log" 2>&1 &&
        "$cmake" --build "$1/build" >>"$work/log" 2>&1 || { cat "$work/log" >&2; fail "the tree does not build"; }
}
has() { grep -q "{\"$2\", $3," "$1/build/generated/web_ui_files.c"; }

build .
has . index.html NULL || fail "a tree without a built web UI has no short text"
rm -rf build

first=$(PATH=$work/bin:$PATH packaging/source_tarball "$work/first")
tar -xzf "$first" -C "$work"
unpacked=$(basename "$first" .tar.gz)
unpacked=$work/$unpacked
[ "$(gunzip -c "$unpacked/apps/server/web_ui/built/app.js.gz")" = "built app.js" ] || fail "the tarball has no built web UI"
[ ! -e "$unpacked/build" ] || fail "the tarball has a folder build"
build "$unpacked"
for name in index.html app.js worker.js; do has "$unpacked" $name '"gzip"' || fail "the build has no $name"; done
! grep -q libraries.tsv "$unpacked/build/generated/web_ui_files.c" || fail "the program has the table of libraries"
[ "$(cat "$unpacked/build/licenses")" = "$unpacked/apps/server/web_ui/built/licenses.txt" ] || fail "the licences are not known"

# A tarball made from an unpacked tarball without Node.js must be equal to the first one.
cd "$unpacked"
rm -rf build
second=$(packaging/source_tarball "$work/second")
cmp "$first" "$second" || fail "a tarball of an unpacked tarball differs"
