#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the commands run, chat and info, and some that fail, under valgrind. Any leak or bad access is a failure.
#     tools/valgrind_test.sh build/debug/frit [MODEL]
set -u
frit=${1:?usage: $0 FRIT [MODEL]}
model=${2:-models/fable.gguf}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
head -c 100000 "$model" >"$scratch/cut.gguf"
: >"$scratch/empty.gguf"
n_passed=0 n_failed=0

# check CODE ARGUMENTS…: the command must end with CODE, and valgrind must report nothing.
check() {
    code=$1
    shift
    printf 'Once upon a time\nAnd then?\n' | valgrind -q --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all \
        --error-exitcode=99 "$frit" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    if [ "$got" = "$code" ]; then
        n_passed=$((n_passed + 1))
    else
        n_failed=$((n_failed + 1))
        printf 'frit %s: exit code %s, expected %s\n' "$*" "$got" "$code"
        cat "$scratch/err"
    fi
}

check 0 run "$model" -p "Once upon a time" -n 3 -c 64 --raw
check 0 run "$model" -n 2 -c 128 --json --stop " a"
check 0 run "$model" -p "Once" -n 2 -c 64 --raw --cpu reference
check 0 run "$model" -p "Once" -n 2 -c 64 --raw --cpu scalar --no-mmap --no-fuse
check 0 run "$model" -p "Once" -n 2 -c 64 --raw --temp 1 --repeat-penalty 1.1 --presence-penalty 0.1 --logit-bias 5=-inf
check 0 chat "$model" -n 2 -c 256
check 0 info "$model"
check 0 info "$model" --tensors --json
check 0 info --ops
check 0 tokenize "$model" --special --parse-special
check 0 logits "$model" --ids 1,2,3 -o "$scratch/l.f32"
check 0 logits "$model" --ids 1,2,3 -o "$scratch/l.f32" --embeddings
check 0 bench "$model" -p 4 -n 2 -r 1 --no-probe -o json
check 0 help run
check 0 completions zsh
check 1 perplexity "$model" -f - -c 4096
check 1 logits "$model" --ids 99999999 -o "$scratch/l.f32"
check 1 run -f "$scratch/absent"
check 1 run "$model" -p "Once upon a time" -c 1 --raw
check 2 run --frobnicate
check 2 run "$model" -p x --samplers nonsense
check 2 run "$model" -p x --cpu nonsense
check 3 run "$scratch/cut.gguf" -p x
check 3 info "$scratch/empty.gguf"
check 3 info "$scratch"
check 3 chat "$scratch/absent.gguf"
check 4 run "$model" -p x -c 134217728
printf '%d passed, %d failed\n' "$n_passed" "$n_failed"
[ "$n_failed" = 0 ]
