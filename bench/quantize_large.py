#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures quantization of a model of a large shape with random weights.

    bench/quantize_large.py build/release/frit --shape llama-8b --limit 540 --runs mix,fast
    bench/quantize_large.py build/release/frit --shape llama-8b --layers 2 --limit 540 --runs refined --windows 160

Writes the model in bf16, then quantizes it with `--mix q4_k_m` (mix), `--bits 4.5 --fast` (fast), `--bits 4.5` (full),
or `--mix q4_k_m --refine own` (refined). The refined run names a mix, because a size could give the few layers of a cut
model only types that cannot be refined. Prints the seconds of each run, of its phases and of each refined layer, and
the most anonymous memory. All runs together have --limit seconds. A run that is stopped at the limit gets an estimate
of its phase's time from the share that was done.
"""
import argparse
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import threading
import time

STEP = re.compile(r"([a-z ]+) \[[#.]+\] +(\d+)%")
LAYER = re.compile(r"\S+: reading the model took.*")


def anonymous_bytes(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            found = re.search(r"RssAnon:\s+(\d+) kB", status.read())
    except OSError:
        return 0
    return 1024 * int(found.group(1)) if found else 0


class Run:
    """A command that runs on a terminal, so that it shows its progress."""

    def __init__(self, command):
        self.peak, self.phases, self.text, self.line, self.layers = 0, [], "", "", []
        self.start = time.monotonic()
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL)
        os.close(slave)
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def watch(self):
        while self.process.poll() is None:
            self.peak = max(self.peak, anonymous_bytes(self.process.pid))
            time.sleep(0.02)

    def note(self, what, share):
        now = time.monotonic()
        if not self.phases or self.phases[-1][0] != what:
            self.phases.append([what, self.phases[-1][2] if self.phases else self.start, now, share])
        self.phases[-1][2:] = [now, share]

    def read(self):
        try:
            now = os.read(self.master, 4096).decode("utf-8", "replace")
        except OSError:
            return False
        self.text += now
        *lines, self.line = re.split(r"[\r\n]+", self.line + now)
        self.layers += [found.group(0) for found in map(LAYER.search, lines) if found]
        for found in STEP.finditer(self.text):
            self.note(found.group(1).strip(), int(found.group(2)))
        self.text = self.text[-200:] if STEP.search(self.text) is None else self.text[self.text.rfind("]") - 60 :]
        return True

    def wait(self, end):
        stopped = False
        while True:
            if not stopped and time.monotonic() > end:
                self.process.send_signal(signal.SIGINT)
                stopped = True
            if select.select([self.master], [], [], 0.2)[0] and not self.read():
                break
            if self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]:
                break
        self.process.wait()
        os.close(self.master)
        return stopped


def measure(name, command, end):
    run = Run(command)
    stopped = run.wait(end)
    seconds = time.monotonic() - run.start
    if run.process.returncode != 0 and not stopped:
        raise SystemExit(f"{' '.join(command)}: {run.text[-400:]}")
    print(f"{name}: {seconds:.1f} s{', stopped' if stopped else ''}; anonymous memory {run.peak / 1e9:.2f} GB", flush=True)
    for what, begin, last, share in run.phases:
        whole = f", {100 * (last - begin) / share:.0f} s for all of it" if 0 < share < 98 else ""
        print(f"    {what}: {last - begin:.1f} s to {share} %{whole}", flush=True)
    for line in run.layers:
        print(f"        {line}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frit")
    parser.add_argument("--shape", default="llama-8b")
    parser.add_argument("--layers", default="0")
    parser.add_argument("--windows", default="0", help="of the text that the model writes")
    parser.add_argument("--runs", default="mix,fast,full")
    parser.add_argument("--threads", default="0")
    parser.add_argument("--folder", help="where the files go; needs 1.6 times the model's bytes")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for all")
    args = parser.parse_args()
    end = time.monotonic() + args.limit
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        model, small = (os.path.join(folder, name) for name in ("model.gguf", "small.gguf"))
        make = [args.frit, "bench", "--random", args.shape, "--layers", args.layers, "--type", "bf16", "--save", model]
        measure("making the model", make + ["-p", "1", "-n", "0", "-r", "1", "--no-probe"], end)
        print(f"{os.path.getsize(model) / 1e9:.1f} GB", flush=True)
        size = ["--bits", "4.5", "--windows", args.windows]
        runs = {"mix": ["--mix", "q4_k_m"], "fast": size + ["--fast"], "full": size + ["--verbose"],
                "refined": ["--mix", "q4_k_m", "--refine", "own", "--windows", args.windows, "--verbose"]}
        for name in args.runs.split(","):
            measure(name, [args.frit, "quantize", model, small] + runs[name] + ["-t", args.threads], end)
            for path in (small, small + ".state", small + ".part", small + ".refine.part"):
                if os.path.exists(path):
                    os.remove(path)


if __name__ == "__main__":
    main()
