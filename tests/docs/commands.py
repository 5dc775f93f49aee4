#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the command blocks of pages of docs/, in order, each page in a folder of its own.

    tests/docs/commands.py BUILD PAGE...      BUILD: a build folder, which is installed beside the pages' folders

A page's folder has `model.gguf` (the bundled model, or a tiny model for pages in TINY), `Qwen3-4B` and `Llama-3.2-1B`
(folders of tiny models), and the texts `text.txt` and `other.txt`. `frit` is in PATH, and pkg-config and CMake find the
library. Models by name come from a server of tests/hub/replay.py, which has the names in NAMED. A block of C or CMake
whose first line is a comment with a file's name is written to that file. Answers are cut to a few tokens. A block after
<!-- not run: REASON --> is left out, and the reason is printed. A block after <!-- serves --> runs until the page ends,
and port 8080 in later blocks is replaced by its port. names.py checks the targets of make and the tests that a page
names.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BLOCK = re.compile(r"(?:<!-- (?P<marker>[^>]+?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
FILE = re.compile(r"(?://|#) (?P<name>[\w.]+)\n")
SECONDS = 300
TINY = ["quantize.md"]
NAMED = {"Qwen/Qwen3-4B-GGUF": ["Qwen3-4B-Q4_K_M.gguf", "Qwen3-4B-Q8_0.gguf"]}


sys.path.insert(0, os.path.join(ROOT, "tests", "hub"))
from replay import Hub  # noqa: E402


def start_hub(build):
    """Starts a server of models. None: the command was built without libcurl."""
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        if not re.search("^CURL_FOUND:INTERNAL=1", file.read(), re.M):
            return None
    with open(os.path.join(ROOT, "models", "fable.gguf"), "rb") as file:
        model = file.read()
    hub = Hub()
    for name, files in NAMED.items():
        hub.add(name, {file: model for file in files})
    hub.add_ollama("library/llama3.2", "1b", model)
    return hub


class Page:
    def __init__(self, path, prefix, library, folder, hub):
        self.path, self.prefix, self.library, self.folder, self.hub = path, prefix, library, folder, hub
        self.server, self.port, self.n_run, self.faults = None, "8080", 0, []

    def environment(self):
        """Returns the environment of the blocks: paths, and options of frit that keep the test short."""
        url = self.hub.url if self.hub else "http://127.0.0.1:9"
        return {**os.environ, "PATH": os.path.join(self.prefix, "bin") + os.pathsep + os.environ["PATH"],
                "PKG_CONFIG_PATH": os.path.join(self.library, "pkgconfig"), "LD_LIBRARY_PATH": self.library,
                "DYLD_LIBRARY_PATH": self.library, "CMAKE_PREFIX_PATH": self.prefix, "XDG_STATE_HOME": self.folder,
                "FRIT_N_PREDICT": "8", "FRIT_REPETITIONS": "1", "FRIT_NO_PROBE": "1", "FRIT_N_GEN": "8",
                "FRIT_N_PROMPT": "32", "FRIT_WINDOWS": "2",
                "HOME": self.folder, "HF_HOME": os.path.join(self.folder, "hub"), "HF_ENDPOINT": url,
                "OLLAMA_MODELS": os.path.join(self.folder, "ollama"), "FRIT_OLLAMA_REGISTRY": url}

    def prepare(self):
        def put(path, name):
            shutil.copy(os.path.join(ROOT, path), os.path.join(self.folder, name))

        for name in ("Qwen3-4B", "Llama-3.2-1B"):
            shutil.copytree(os.path.join(ROOT, "tests", "goldens", "hf", "llama"), os.path.join(self.folder, name))
        put("docs/operations.md", "text.txt")
        put("docs/server.md", "other.txt")
        if os.path.basename(self.path) in TINY:
            return self.run("frit convert Llama-3.2-1B model.gguf")
        put("models/fable.gguf", "model.gguf")
        return None

    def serve(self, text):
        """Starts a block that serves, and waits for the line with its address."""
        self.server = subprocess.Popen(["sh", "-c", "exec " + text], cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, env={**self.environment(), "FRIT_PORT": "0"})
        said = []
        for line in self.server.stderr:
            said.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                self.port = found[1]
                # Later output is read too, since a full pipe would stop the server.
                threading.Thread(target=self.server.stderr.read, daemon=True).start()
                return None
        return f"the server ended with {self.server.wait()}: {''.join(said)}"

    def run(self, text):
        text = text.replace(":8080", ":" + self.port)
        try:
            done = subprocess.run(["sh", "-euc", text], cwd=self.folder, stdin=subprocess.DEVNULL, env=self.environment(),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"took more than {SECONDS} s"
        wrong = done.returncode != 0 or (text.startswith("curl") and '"error"' in done.stdout)
        return f"ended with {done.returncode}:\n{done.stdout}" if wrong else None

    def block(self, block):
        marker, text = block["marker"] or "", block["text"]
        if marker.startswith("not run: ") or "hf:" in text and not self.hub:
            return None
        if block["language"] != "sh":
            named = FILE.match(text)
            if named:
                with open(os.path.join(self.folder, named["name"]), "w", encoding="utf-8") as file:
                    file.write(text)
            return None
        self.n_run += 1
        return self.serve(text) if marker == "serves" else self.run(text)

    def walk(self):
        with open(self.path, encoding="utf-8") as file:
            page = file.read()
        fault = self.prepare()
        self.faults += [f"{self.path}: {fault}"] if fault else []
        try:
            for block in BLOCK.finditer(page):
                fault = self.block(block)
                if fault:
                    line = page.count("\n", 0, block.start("text"))
                    self.faults.append(f"{os.path.relpath(self.path, ROOT)}:{line}: {fault}")
        finally:
            if self.server:
                self.server.send_signal(signal.SIGKILL)
                self.server.wait()


def main():
    build, pages = sys.argv[1], sys.argv[2:]
    faults, n_run = [], 0
    hub = start_hub(build)
    with tempfile.TemporaryDirectory() as top:
        prefix = os.path.join(top, "prefix")
        subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        library = next(at for at, _, names in os.walk(prefix) if "libfrit.a" in names)   # lib, lib64 or lib/TRIPLE
        for path in pages:
            folder = os.path.join(top, os.path.splitext(os.path.basename(path))[0])
            os.mkdir(folder)
            page = Page(path, prefix, library, folder, hub)
            page.walk()
            print(f"{os.path.basename(path)}: {page.n_run} blocks, {len(page.faults)} faults")
            faults += page.faults
            n_run += page.n_run
    if hub:
        hub.close()
    if n_run < len(pages):   # the pages' blocks have another form than this script reads
        faults.append(f"{n_run} blocks of {len(pages)} pages were run")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
