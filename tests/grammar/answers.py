#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Validates random answers with the jsonschema package.

    answers.py PROGRAM [N]

PROGRAM is test_grammar_schema. With --answers it writes a pair of schema and answer in each line: N (21) answers for
each of 50 schemas, of which a few do not end. The script ends with 1 if an answer is not valid, and with 0 if the
package is not installed.
"""
import json
import subprocess
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("the package jsonschema is not here; nothing was validated")
    sys.exit(0)

n = sys.argv[2] if len(sys.argv) > 2 else "21"
output = subprocess.run([sys.argv[1], "--answers", n], capture_output=True, check=True).stdout.decode()
pairs = [line.split("\t") for line in output.splitlines() if "\t" in line]
validators = {schema: Draft202012Validator(json.loads(schema)) for schema, _ in pairs}
wrong = 0
for schema, answer in pairs:
    for error in validators[schema].iter_errors(json.loads(answer)):
        print(f"{schema}: {answer}: {error.message}")
        wrong += 1
print(f"{len(pairs)} answers, {wrong} wrong")
sys.exit(1 if wrong or len(pairs) < 1000 else 0)
