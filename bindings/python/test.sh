#!/bin/sh
# SPDX-License-Identifier: MIT
# test.sh: tests the Python package with a library and a command that were built: types, and tests in an environment of
# its own (build/python), whose packages come from PyPI.
#
#     bindings/python/test.sh --setup                      makes the environment
#     bindings/python/test.sh LIBRARY COMMAND [ARGUMENTS]  arguments go to pytest
set -eu
cd "$(dirname "$0")/../.."
python=$PWD/build/python/bin/python
packages='pytest>=8 numpy pydantic>=2 mypy hatchling build auditwheel'

if [ ! -e build/python/complete ]; then
    python3 -m venv build/python
    # shellcheck disable=SC2086 # packages are split into words on purpose
    "$python" -m pip install --quiet --disable-pip-version-check $packages
    touch build/python/complete
fi
if [ "$1" = --setup ]; then exit 0; fi

FRIT_LIBRARY=$(realpath "$1") FRIT_COMMAND=$(realpath "$2")
export FRIT_LIBRARY FRIT_COMMAND
shift 2
"$python" -m mypy --config-file bindings/python/pyproject.toml bindings/python/frit
exec "$python" -m pytest -q bindings/python "$@"
