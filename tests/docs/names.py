#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that names in documents and comments exist: files, functions, options, targets of make, tests.

    tests/docs/names.py    prints each name that is not there, with its place; ends with 1 if there is one

Documents are README.md, CONTRIBUTING.md, CHANGELOG.md, docs/ and the README of each folder. Names of files, functions
and options are in code (`...`), names of targets and tests in commands. docs/log is left out: it records attempts,
whose code may be gone. Comments are those of src, apps and include. Names of files (`kv.h`, `engine/kv/kv.h`) and
functions (frit_...) may stand anywhere in them. A name with an asterisk, with `…` or with a word in capitals is a
pattern, not a name. The codes of the server's refusals are those in the table of docs/requests.md, with their statuses.
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CODE = (".c", ".h", ".def", ".cu", ".cuh", ".inc")
SOURCES = ("src/", "apps/", "include/")
PREFIX = r"(?:frit|server|hub|cli)_"
FILE = re.compile(r"(?<![\w/.$<>*-])((?:[\w-]+/)*[\w-]+\.(?:c|h|cuh?|def|md))(?![\w.*])")
# Paths from the root of the tree, also in commands, such as tests/hub/pull_test.py.
PATH = re.compile(r"(?<![\w/.$<>*-])((?:src|apps|include|tests|bench|tools|bindings|packaging|deploy|cmake|docs)/[\w./-]*\w)(?![\w*…])")
FUNCTION = re.compile(rf"(?<![\w./%-])({PREFIX}[a-z0-9_]+)(?![\w/.]*\.(?:c|h|py|sh|cu|md|txt|log)\b)")
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)(?![\w*-])")
TARGET = re.compile(r"(?:^|`|&& )\s*make ([a-z][a-z0-9-]*)", re.M)
PRESET = re.compile(r"--preset ([a-z]\w*)")
TEST = re.compile(r"\btest_([a-z]+_[a-z0-9_]+)(?![\w*.]|/)")
NAMED_TEST = re.compile(r"([a-z]+)/[a-z0-9_]+(?:@\w+)?")
CTEST = re.compile(r"ctest[^\n`]* -R '?\"?([\w/@.|()\\^-]+)")
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[^/"\']+|.', re.S)

REFUSAL = re.compile(r'server_refuse\(\s*[^,;"]+,\s*(\d+),\s*"(\w+)"')
CODES = "docs/requests.md"

# Files of other projects, and files that users write.
OTHERS_FILES = {
    "first.c",       # written in docs/library.md
    "mempolicy.h",   # a header of Linux
    "jpeglib.h",     # a header of libjpeg
}
EXAMPLES = {"frit_thing_verb"}   # the form of a name, in CONTRIBUTING.md
# Options of other programs that appear without the program's name.
OTHERS_OPTIONS = {"kv-cache-dtype", "gpus", "kernel-name"}


def tracked():
    done = None
    if shutil.which("git"):
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                              capture_output=True, text=True, check=False)
    if done and done.returncode == 0:
        return [path for path in done.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, path))]
    return [os.path.relpath(os.path.join(at, name), ROOT) for at, _, names in os.walk(ROOT)
            for name in names if not os.path.relpath(at, ROOT).startswith((".git", "build"))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def is_document(path):
    return path.endswith(".md") and not path.startswith(("docs/log/", "tests/", "build/"))


def split(text):
    """Returns the comments of a C file as (offset, text), and the rest as one text."""
    comments, code = [], []
    for match in TOKEN.finditer(text):
        if match[0].startswith(("//", "/*")):
            comments.append((match.start(), match[0]))
        else:
            code.append(match[0])
    return comments, " ".join(code)


def code_spans(text):
    """Yields the code of a document as (offset, text, True for a block)."""
    for match in re.finditer(r"^```[^\n]*\n(.*?)^```|^(?: {4}[^\n]*\n)+|`([^`\n]+)`", text, re.M | re.S):
        inline = match[2] is not None
        yield match.start(), match[2] if inline else match[0], not inline


class Names:
    def __init__(self):
        self.paths = tracked()
        self.ends = set()
        for path in self.paths:
            parts = path.split("/")
            self.ends.update("/".join(parts[i:]) for i in range(len(parts)))
        self.words, self.literals = set(), set()
        for path in self.paths:
            if path.endswith(CODE + (".py", ".sh", ".mjs", ".cpp", ".cmake", ".map")) or "." not in os.path.basename(path):
                text = read(path)
                code = split(text)[1] if path.endswith(CODE) else text
                self.words.update(re.findall(rf"{PREFIX}\w+", code))
                self.literals.update(re.findall(r'"-{0,2}([a-z][a-z0-9-]+)[="]', text))
                self.literals.update(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", code))
        self.codes = set(re.findall(r'define FRIT_CODE_\w+\s+"(\w+)"', read("include/frit/status.h")))
        self.targets = set(re.findall(r"^([a-z][\w-]*):", read("Makefile"), re.M))
        self.presets = set(re.findall(r'"name": "(\w+)"', read("CMakePresets.json")))
        cmake = read("tests/CMakeLists.txt")
        # The program of tests/server/http/keys_test.c is named server/keys.
        self.tests = {path.split("/")[1] + "/" + os.path.basename(path)[:-len("_test.c")]
                      for path in self.paths if path.startswith("tests/") and path.endswith("_test.c")}
        self.tests |= {path[len("tests/"):path.rindex("_test.")] for path in self.paths
                       if re.fullmatch(r"tests/\w+/\w+_test\.(?:py|cmake)", path)}
        self.test_folders = {name.split("/")[0] for name in self.tests}
        self.programs = {name.replace("/", "_") for name in self.tests}
        for name in re.findall(r"add_test\(NAME ([\w/@$]+)", cmake):
            self.tests.add(name)
        kinds = ("alone", "layers", "ops", "tiles")
        self.tests |= {f"{name}@{kind}" for name in self.tests for kind in kinds}

    def has_file(self, name):
        return name in self.ends or os.path.basename(name) in OTHERS_FILES

    def has_folder(self, name):
        return any("/" + name + "/" in "/" + path for path in self.paths)

    def has_function(self, name):
        if name in self.words or name in EXAMPLES:
            return True
        return name.endswith("_") and any(word.startswith(name) for word in self.words)

    def faults_of(self, text):
        for match in FILE.finditer(text):
            if not re.search("[A-Z]{2}", match[1]) and not self.has_file(match[1]):
                yield match.start(), f"there is no file '{match[1]}'"
        for match in FUNCTION.finditer(text):
            if not self.has_function(match[1]):
                yield match.start(), f"there is no name '{match[1]}'"

    def comment_faults(self, path):
        text = read(path)
        for offset, comment in split(text)[0]:
            for at, fault in self.faults_of(comment):
                yield text.count("\n", 0, offset + at) + 1, fault

    def command_faults(self, text, is_block):
        for match in PATH.finditer(text):
            if not re.search("[A-Z]{2}", match[1]) and match[1] not in self.tests and not os.path.exists(os.path.join(ROOT, match[1])):
                yield match.start(), f"there is no '{match[1]}'"
        for match in TARGET.finditer(text if is_block else "`" + text):
            if match[1] not in self.targets:
                yield match.start(), f"there is no target of make '{match[1]}'"
        for match in PRESET.finditer(text):
            if match[1] not in self.presets:
                yield match.start(), f"there is no preset '{match[1]}'"
        for match in TEST.finditer(text):
            if match[1] not in self.programs:
                yield match.start(), f"there is no test program 'test_{match[1]}'"
        for match in CTEST.finditer(text):
            pattern = match[1].replace("\\|", "|")
            if not any(re.search(pattern, name) for name in self.tests):
                yield match.start(), f"no test of ctest matches '{match[1]}'"

    def test_faults(self, code):
        """Reports a name such as `engine/cuts` that is neither a test nor a folder."""
        match = NAMED_TEST.fullmatch(code)
        if match and match[1] in self.test_folders and code not in self.tests and not self.has_folder(code):
            yield 0, f"there is no test '{code}'"

    def document_faults(self, path):
        text = read(path)
        for offset, code, is_block in code_spans(text):
            faults = list(self.command_faults(code, is_block))
            if not is_block:
                faults += [*self.faults_of(code), *self.test_faults(code)]
            lines = code.splitlines() if is_block else [code]
            at = 0
            for line in lines:
                if re.match(r"\s*(?:\$ )?(?:frit |build/release/frit |--)", line):
                    faults += [(at, f"there is no option '--{m[1]}'") for m in OPTION.finditer(line.split(" | ")[0].split(";")[0])
                               if m[1] not in self.literals and m[1] not in OTHERS_OPTIONS]
                at += len(line) + 1
            for at, fault in faults:
                yield text.count("\n", 0, offset + at) + 1, fault
        folder = os.path.dirname(path)
        for match in re.finditer(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]*)?\)", text):
            target = os.path.normpath(os.path.join(folder, match[1])) if match[1] else path
            line = text.count("\n", 0, match.start()) + 1
            if not os.path.exists(os.path.join(ROOT, target)):
                yield line, f"a link leads to '{match[1]}', which is not there"
            elif match[2] and target.endswith(".md") and match[2][1:] not in anchors(read(target)):
                yield line, f"'{target}' has no heading '{match[2]}'"


    def code_faults(self):
        """Yields the refusals of the server without a row in the table of codes, and the rows without a refusal."""
        sources = [read(path) for path in self.paths if path.startswith("apps/server/") and path.endswith(".c")]
        listed = {}
        text = read(CODES)
        for row in re.finditer(r"^\| ([\d, ]+) \| (`[^|]+) \|", text, re.M):
            for code in re.findall(r"`(\w+)`", row[2]):
                for status in row[1].split(", "):
                    listed[status, code] = text.count("\n", 0, row.start()) + 1
        refused = {pair for source in sources for pair in REFUSAL.findall(source)}
        for status, code in sorted(refused - listed.keys()):
            yield 1, f"the table of codes has no row '{status} {code}'"
        for status, code in sorted(listed.keys() - refused):
            if not any(f'"{code}"' in source for source in sources) and code not in self.codes:
                yield listed[status, code], f"the server refuses nothing with '{status} {code}'"


def anchors(text):
    """Returns the anchors of a document's headings, in GitHub's form."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def main():
    names, faults = Names(), 0
    for path in sorted(names.paths):
        if is_document(path):
            found = names.document_faults(path)
        elif path.startswith(SOURCES) and path.endswith(CODE):
            found = names.comment_faults(path)
        else:
            continue
        if path == CODES:
            found = [*found, *names.code_faults()]
        for line, fault in found:
            faults += 1
            print(f"{path}:{line}: {fault}")
    print(f"{faults} names are not there" if faults else "all names exist")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
