#!/bin/sh
# SPDX-License-Identifier: MIT
# wheel.sh: builds wheels into build/wheels, with zig for the systems that are named (linux-x86_64, linux-aarch64,
# windows-x86_64, macos-x86_64, macos-aarch64), or with this machine's compiler and libraries for "native". Wheels for
# Linux are checked with auditwheel; one for this machine is installed in an empty environment, where command and
# package must give the same text.
set -eu
cd "$(dirname "$0")/../.."
python=$PWD/build/python/bin/python
PATH=$PWD/build/tools/bin:$PATH

fail() { echo "wheel.sh: $*" >&2; exit 1; }

# The newest wheel whose name has a match of the pattern.
newest() { find build/wheels -name "*$1.whl" -printf '%T@ %p\n' | sort -n | sed -n '$s/^[^ ]* //p'; }

try_wheel() {
    size=$(wc -c <"$1")
    [ "$size" -le 5000000 ] || fail "$1 has $size bytes, expected 5,000,000 at most"
    rm -rf build/wheels/try && python3 -m venv build/wheels/try
    build/wheels/try/bin/pip install --quiet --disable-pip-version-check "$1"
    said=$(build/wheels/try/bin/frit run -m models/fable.gguf -n 12 --temp 0 -p 'Tell me a tale.' </dev/null 2>/dev/null)
    found=$(cd build/wheels && try/bin/python -c "import frit
print(frit.load('../../models/fable.gguf').chat('Tell me a tale.', max_tokens=12, temperature=0))")
    [ -n "$said" ] && [ "$said" = "$found" ] || fail "$1: the command says '$said', the package '$found'"
    echo "$1: $size bytes; installed and used: $found"
}

bindings/python/test.sh --setup
for name in "$@"; do
    if [ "$name" = native ]; then name=''; else tools/setup zig && tools/static_libraries "$name"; fi
    FRIT_WHEEL_TARGET=$name "$python" -m build --wheel --no-isolation --outdir build/wheels bindings/python
    case $name in
    linux-*) "$python" -m auditwheel show "$(newest "manylinux*${name#linux-}")" ;;
    esac
    case $name in
    '' | "linux-$(uname -m)") try_wheel "$(newest "$(uname -m)")" ;;
    esac
done
