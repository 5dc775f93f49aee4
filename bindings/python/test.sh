#!/bin/sh
# SPDX-License-Identifier: MIT
# test.sh: tests the Python package with a library and a command that were built: types, and tests in an environment of
# its own (build/python), whose packages come from PyPI.
#
#     bindings/python/test.sh --setup                      makes the environment
#     bindings/python/test.sh --frameworks                 adds LangChain and LlamaIndex to it, which are tested then
#     bindings/python/test.sh LIBRARY COMMAND [ARGUMENTS]  arguments go to pytest
#
# A library with the address sanitizer needs that loaded first: FRIT_PRELOAD names it. What is freed is then overwritten,
# because numpy, which reads views, is not compiled with it.
set -eu
cd "$(dirname "$0")/../.."
python=$PWD/build/python/bin/python
packages='pytest>=8 numpy pydantic>=2 mypy==2.4.1 pyright==1.1.414 hatchling==1.33.0 build'

if [ ! -e build/python/complete ]; then
    python3 -m venv build/python
    # shellcheck disable=SC2086 # packages are split into words on purpose
    "$python" -m pip install --quiet --disable-pip-version-check $packages
    touch build/python/complete
fi
if [ "$1" = --setup ]; then exit 0; fi
if [ "$1" = --frameworks ]; then
    # Their packages for llama-cpp-python want it installed; frit takes its place.
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
