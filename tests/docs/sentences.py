#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sentences that docs/troubleshooting.md quotes stand in the source, and docs/errors.md has all others.

    tests/docs/sentences.py              checks both; ends with 1 if a quoted sentence is not in the source, if the page
                                         lacks one of the files in WHOLE, or if more than LAG sentences are on no page
    tests/docs/sentences.py --write      writes docs/errors.md: by groups of GROUPS, each with what to do
    tests/docs/sentences.py --list DIR   prints the sentences of error calls in DIR that troubleshooting.md does not quote

A quoted sentence is code in the first column of a table. `…` stands for what the program puts in: conversions of a
format in the source become `…` too.
"""
import os
import re
import sys
import textwrap

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGE = os.path.join(ROOT, "docs", "troubleshooting.md")
FOLDERS = ["src", "apps"]
WHOLE = ["apps/hub/", "apps/frit/by_name.c", "apps/frit/list.c", "apps/frit/pull.c", "apps/frit/rm.c", "apps/frit/show.c"]
CALLS = r"\b(?:frit_fail|hub_fail|hub_system_failed|fail_code|cli_fail|cli_usage|cli_report_\w+|cli_note|cli_warn|server_refuse|refuse\w*|fail\w*|warn\w*|frit_log_say)\b"
LEAST = 12   # characters that are not `…`
OTHERS = os.path.join(ROOT, "docs", "errors.md")
LAG = 100   # new sentences that need not be in docs/errors.md yet

# Heading, files (the first group that has one takes it), what to do.
GROUPS = [
    ("The command line", ["apps/frit/", "apps/common/"],
     "The option, its value or the combination is wrong: `frit help COMMAND --all` has all of them, with their limits."),
    ("Requests to the server", ["apps/server/"],
     "The field that the sentence begins with is wrong: [server.md](server.md) has all fields, with types and limits. What has "
     "no field is about an option of `frit serve` (`frit help serve --all`), or says that the server is full: try again later."),
    ("Saved sessions and prefixes", ["src/engine/saved", "src/engine/session_file", "src/engine/kv_disk"],
     "The file is damaged, or of another model, version or type of cache. Delete it: the tokens run again, and only time is "
     "lost."),
    ("Quantizing, importance and refining",
     ["src/allocate/", "src/quant/", "src/engine/refine", "src/engine/covariance", "src/engine/observe",
      "src/convert/importance", "src/convert/mix"],
     "`frit help quantize` and [quantization.md](quantization.md) have the options; states and importance files belong to one "
     "model: measure again where they are of another one."),
    ("Converting", ["src/convert/"],
     "`frit help convert` has the options. Where a tensor is named, the source is unusual or damaged: compare it with the "
     "publisher's."),
    ("Adapters", ["src/format/adapter", "src/engine/adapt"],
     "The adapter is of another model or architecture, or damaged: look which model it was trained for."),
    ("Model files and folders", ["src/format/", "src/engine/model", "src/engine/metadata"],
     "The file or folder is damaged, cut off, of another kind, or newer than this frit. Compare its SHA-256 with the "
     "publisher's and fetch it again; where that is right, convert the original (`frit convert`), or take another conversion."),
    ("Architectures", ["src/arch/", "src/graph/"],
     "Metadata or weights do not fit the architecture that the file names: a faulty program converted it, or it is a variant "
     "that frit does not know ([models.md](models.md)). Take another conversion."),
    ("Tokenizers, templates and conversations", ["src/text/", "src/engine/turn", "src/engine/render", "src/engine/text"],
     "Where the sentence names messages or tools, correct the conversation. Else the model's tokenizer or template is damaged or "
     "unusual: take the publisher's files; `--chat-template FILE` gives another template."),
    ("Grammars, schemas, regular expressions", ["src/grammar/", "src/engine/grammar"],
     "Correct the place that is named, or make the grammar or schema smaller ([grammar.md](grammar.md))."),
    ("Sampling", ["src/sample/", "src/engine/pick", "src/engine/heal", "src/engine/beam", "src/engine/recommend"],
     "The value lies outside of what the sampler takes, or options exclude each other: `frit help run --all` has them. The others are "
     "about the order of a program's calls (`frit/sample.h`, `frit/pick.h`)."),
    ("Devices", ["src/backend/", "src/engine/devices", "src/engine/place"],
     "Leave `--device`, `-ngl` and `--override-tensor` out to see whether the device is the cause; [gpu.md](gpu.md) says what "
     "drivers and libraries are needed."),
    ("Files, options, threads", ["src/base/"],
     "Look at the path, its permissions (`ls -l`) and room on the disk (`df -h`); the value of an option has the form that the "
     "sentence expects. Threads that cannot be started: `ulimit -u`, or fewer of them (`-t`)."),
    ("The cache and the context", ["src/engine/kv", "src/engine/schedule", "src/engine/sh", "src/engine/prefix"],
     "The cache or the context is full, or an option of it is wrong: a larger `-c`, fewer sessions (`--parallel`), smaller types "
     "of the cache (`-ctk q8_0 -ctv q8_0`)."),
    ("Calls of the library", ["src/engine/"],
     "A program called in another order, or with other values, than the header allows: [library.md](library.md), and the comment "
     "of the function in `include/frit/`. From the command it is a fault of frit: report it."),
]

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|\s+|[^\s"\'/\w]+|.', re.S)
CONVERSION = re.compile(r"%(?:[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXeEfFgGcsp]|%)")
# A macro for a number's size, as in "%" PRIu64: the conversion goes on in it.
SIZE = re.compile(r"PRI[diuxX]\d+$")


def plain(text):
    """The text of a literal, its conversions as `…`."""
    text = re.sub(r"\\(.)", lambda m: {"n": " ", "t": " "}.get(m[1], m[1]), text)
    text = CONVERSION.sub(lambda m: "%" if m[0] == "%%" else "…", text)
    return " ".join(re.sub("…+", "…", text).split())


def literals(text):
    """(offset, text) of each literal; adjacent ones are one."""
    found, joined, start = [], None, 0
    for match in TOKEN.finditer(text):
        token = match[0]
        if match[1] is not None:
            if joined is None:
                joined, start = "", match.start()
            joined += match[1]
        elif joined is not None and SIZE.match(token):
            joined += "d"   # which ends the conversion
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
    """(line, sentence) of the page."""
    with open(PAGE, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            cell = re.match(r"\| (`[^|]*) \|", line)
            for sentence in re.findall(r"`([^`]+)`", cell[1]) if cell else []:
                yield number, sentence


def uncovered(folders):
    """(path, sentence) of error calls that the page does not quote."""
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
    for path, text in uncovered(["apps/hub", "apps/frit"]):
        if path.startswith(tuple(WHOLE)):
            faults += 1
            print(f"docs/troubleshooting.md: lacks a sentence of {path}: {text}")
    listed = others()
    missing = [text for text in dict.fromkeys(text for _, text in uncovered(FOLDERS)) if f"- `{text}`" not in listed]
    if len(missing) > LAG:
        faults += 1
        print(f"docs/errors.md: lacks {len(missing)} sentences, such as '{missing[0]}': run tests/docs/sentences.py --write")
    print(f"{count} sentences, {faults} faults; {len(missing)} new ones are not in docs/errors.md")
    return 1 if faults or not count else 0


def others():
    with open(OTHERS, encoding="utf-8") as file:
        return set(file.read().splitlines())


def group_of(path):
    return next(i for i, (_, prefixes, _) in enumerate(GROUPS) if path.startswith(tuple(prefixes)))


def write():
    groups, seen = [[] for _ in GROUPS], set()
    for path, text in uncovered(FOLDERS):
        if text not in seen and "`" not in text:
            seen.add(text)
            groups[group_of(path)].append(text)
    with open(OTHERS, "w", encoding="utf-8") as file:
        file.write("# Other errors\n\nThe sentences that [troubleshooting.md](troubleshooting.md) does not explain one by one, by "
                   "what they are about, with what\nto do; `…` stands for what the program puts in. Some are a part of a "
                   "sentence: what was expected. `tests/docs/sentences.py\n--write` makes this page from the source.\n")
        for (heading, _, advice), texts in zip(GROUPS, groups):
            if texts:
                file.write(f"\n## {heading}\n\n{textwrap.fill(advice, 125)}\n\n")
                file.writelines(f"- `{text}`\n" for text in sorted(texts, key=lambda text: text.strip("… :'")))
    print(f"{sum(map(len, groups))} sentences in {os.path.relpath(OTHERS)}")
    return 0


def main():
    if sys.argv[1:2] == ["--write"]:
        return write()
    if sys.argv[1:2] != ["--list"]:
        return check()
    for path, text in uncovered(sys.argv[2:]):
        print(f"{path}: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
