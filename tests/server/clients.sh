#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs clients.py and clients_*.py with the unmodified packages from PyPI, in a virtual environment under build/clients.
#
#     tests/server/clients.sh build/release/frit
set -eu
frit=$(realpath "$1")
cd "$(dirname "$0")/../.."
venv=build/clients
if ! "$venv/bin/python" -c 'import anthropic, ollama, openai' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check anthropic ollama openai
fi
for tests in clients clients_anthropic clients_ollama; do
    "$venv/bin/python" "tests/server/$tests.py" "$frit"
done
