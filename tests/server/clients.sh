#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs clients.py and clients_*.py with the unmodified packages from PyPI, in a virtual environment under build/clients.
#
#     tests/server/clients.sh build/release/frit
set -eu
frit=$(realpath "$1")
cd "$(dirname "$0")/../.."
venv=build/clients
if ! "$venv/bin/python" -c 'import anthropic, ollama, openai, openapi_spec_validator, schemathesis' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check anthropic ollama openai openapi-spec-validator schemathesis
fi
for tests in clients clients_anthropic clients_ollama clients_openapi; do
    "$venv/bin/python" "tests/server/$tests.py" "$frit"
done
