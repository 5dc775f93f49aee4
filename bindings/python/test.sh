#!/bin/sh
# SPDX-License-Identifier: MIT
# test.sh: tests the Python package with a library and a command that were built. It checks types and runs the tests in
# a virtual environment (build/python), whose packages come from PyPI.
#
#     bindings/python/test.sh --setup                      makes the environment
#     bindings/python/test.sh --frameworks                 adds LangChain and LlamaIndex to it, which are tested then
#     bindings/python/test.sh LIBRARY COMMAND [ARGUMENTS]  arguments go to pytest
#
# A library with the address sanitizer needs the sanitizer to be loaded first: FRIT_PRELOAD names it. The library then
# overwrites freed memory, because NumPy, which reads views, is not compiled with the sanitizer.
set -eu
cd "$(dirname "$0")/../.."
python=$PWD/build/python/bin/python
packages='pytest>=8 numpy pydantic>=2 mypy==2.4.1 pyright==1.1.414 hatchling==1.33.0 build pillow'

if [ "$(cat build/python/complete 2>/dev/null)" != "$packages" ]; then
    python3 -m venv build/python
    # shellcheck disable=SC2086 # packages are split into words on purpose
    "$python" -m pip install --quiet --disable-pip-version-check $packages
    echo "$packages" >build/python/complete
fi
if [ "$1" = --setup ]; then exit 0; fi
if [ "$1" = --frameworks ]; then
    # The frameworks' packages require llama-cpp-python, which frit replaces: only the packages that do not require it
    # are installed with their dependencies.
    "$python" -m pip install --quiet --disable-pip-version-check langchain-community llama-index-core
    exec "$python" -m pip install --quiet --disable-pip-version-check --no-deps llama-index-llms-llama-cpp
fi

FRIT_LIBRARY=$(realpath "$1") FRIT_COMMAND=$(realpath "$2")
export FRIT_LIBRARY FRIT_COMMAND
shift 2
"$python" -m mypy --config-file bindings/python/pyproject.toml bindings/python/frit
if [ -n "${FRIT_PRELOAD:-}" ]; then
    export LD_PRELOAD="$FRIT_PRELOAD" ASAN_OPTIONS=detect_leaks=0:max_free_fill_size=1000000000:free_fill_byte=85
fi
exec "$python" -m pytest -q bindings/python "$@"
