#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the error sentences quoted in docs/troubleshooting.md appear in the source.

    tests/docs/sentences.py              ends with 1 if a quoted sentence is not in the source
    tests/docs/sentences.py --list DIR   prints the sentences of error calls in DIR that the document does not quote

A quoted sentence is a list item that consists of code. `…` stands for a value: conversions of a format in the source
are replaced by `…`, too.
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "troubleshooting.md")
FOLDERS = ["src", "apps"]
CALLS = r"\b(?:frit_fail|hub_fail|hub_system_failed|fail_code|cli_fail|cli_usage|cli_report_\w+|cli_note|cli_warn|server_refuse|refuse\w*|fail\w*|warn\w*|frit_log_say)\b"
LEAST = 12   # least number of characters besides `…`

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|\s+|[^\s"\'/\w]+|.', re.S)
CONVERSION = re.compile(r"%(?:[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXeEfFgGcsp]|%)")
# A macro for the size of a number, as in "%" PRIu64, is part of the conversion.
SIZE = re.compile(r"PRI[diuxX]\d+$")


def plain(text):
    """Returns the text of a literal with `…` for its conversions."""
    text = re.sub(r"\\(.)", lambda m: {"n": " ", "t": " "}.get(m[1], m[1]), text)
    text = CONVERSION.sub(lambda m: "%" if m[0] == "%%" else "…", text)
    return " ".join(re.sub("…+", "…", text).split())


def literals(text):
    """Yields (offset, text) of each literal. Adjacent literals are joined."""
    found, joined, start = [], None, 0
    for match in TOKEN.finditer(text):
        token = match[0]
        if match[1] is not None:
            if joined is None:
                joined, start = "", match.start()
            joined += match[1]
        elif joined is not None and SIZE.match(token):
            joined += "d"   # completes the conversion
        elif not token.isspace() and not token.startswith(("//", "/*")) and joined is not None:
            found.append((start, plain(joined)))
            joined = None
    return found


def sources(folders):
    for folder in folders:
        for at, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def")):
                    path = os.path.join(at, name)
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, ROOT), file.read()


def quoted():
    """Yields (line, sentence) for each quoted sentence of the page."""
    with open(PAGE, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            item = re.fullmatch(r"- `([^`]+)`\n", line)
            if item:
                yield number, item[1]


def uncovered(folders):
    """Yields (path, sentence) for the error calls that the page does not quote."""
    pieces = [sentence.strip("… ") for _, sentence in quoted()]
    for path, source in sources(folders):
        starts = [match.start() for match in re.finditer(CALLS, source)]
        for at, text in literals(source):
            before = [start for start in starts if start < at]
            call = before and ";" not in source[before[-1]:at] and "{" not in source[before[-1]:at]
            if call and len(text.replace("…", "")) >= LEAST and " " in text and not any(p in text for p in pieces):
                yield path, text


def check():
    known = [text for _, source in sources(FOLDERS) for _, text in literals(source)]
    everything = "\n".join(known)
    faults = count = 0
    for number, sentence in quoted():
        count += 1
        words = sentence.replace("…", "")
        if len(words) < LEAST:
            faults += 1
            print(f"docs/troubleshooting.md:{number}: `{sentence}` is too short to be found")
        elif sentence.strip("… ") not in everything:
            faults += 1
            print(f"docs/troubleshooting.md:{number}: `{sentence}` does not stand in the source")
    print(f"{count} sentences, {faults} faults")
    return 1 if faults or not count else 0


def main():
    if sys.argv[1:2] != ["--list"]:
        return check()
    for path, text in uncovered(sys.argv[2:]):
        print(f"{path}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
