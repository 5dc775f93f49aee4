#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs unmodified clients of other projects, from PyPI and npm, against frit serve. Each row of the table has a virtual
# environment under build/clients with the packages that the row names.
#
#     tests/server/clients/clients.sh build/release/frit [ROW...]
set -eu
frit=$(realpath "$1")
shift
cd "$(dirname "$0")/../../.."
folder=build/clients

# row | packages from PyPI | packages from npm
rows='
curl||
openai|openai|
anthropic|anthropic|
ollama|ollama|
openapi|openapi-spec-validator schemathesis|
node||openai ai @ai-sdk/openai-compatible zod
langchain|langchain-openai langchain-anthropic langchain-ollama|
litellm|litellm mcp|
instructor|instructor|
pydantic_ai|pydantic-ai-slim[openai,anthropic]|
llm|llm|
lm_eval|lm-eval[api] transformers tokenizers gguf|
'

install() {   # row, packages from PyPI, from npm
    if [ ! -e "$folder/$1/installed" ] || [ "$(cat "$folder/$1/installed")" != "$2|$3" ]; then
        rm -rf "${folder:?}/$1"
        "$folder/uv/bin/uv" venv --quiet --python python3 "$folder/$1"
        # shellcheck disable=SC2086 # the lists are split into words on purpose
        if [ -n "$2" ]; then "$folder/uv/bin/uv" pip install --quiet --python "$folder/$1/bin/python" $2; fi
        # shellcheck disable=SC2086
        if [ -n "$3" ]; then npm install --silent --no-audit --no-fund --prefix "$folder/$1" $3; fi
        echo "$2|$3" > "$folder/$1/installed"
    fi
}

if ! "$folder/uv/bin/uv" --version >/dev/null 2>&1; then
    python3 -m venv "$folder/uv"
    "$folder/uv/bin/pip" install --quiet --disable-pip-version-check uv
fi
failed=''
while IFS='|' read -r row pypi npm; do
    case " $* " in *" $row "* | '  ') ;; *) continue ;; esac
    [ -n "$row" ] || continue
    if [ -n "$npm" ] && ! command -v npm >/dev/null; then echo "$row: skipped, no npm is here"; continue; fi
    echo "== $row"
    install "$row" "$pypi" "$npm"
    "$folder/$row/bin/python" "tests/server/clients/clients_$row.py" "$frit" </dev/null || failed="$failed $row"
done <<END
$rows
END
if [ -n "$failed" ]; then echo "failed:$failed"; exit 1; fi
