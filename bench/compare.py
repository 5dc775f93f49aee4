#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs frit bench and, if they are named, the benchmarks of llama.cpp and ik_llama.cpp on one file.

    bench/compare.py model.gguf --llama PATH/llama-bench --ik PATH/llama-bench -p 512 -n 128 --rounds 3

All programs run with the same number of threads, one after another in each of several rounds. Prints medians with the
least and the largest value, and the ratio of frit's median to the better one of the others. ik_llama.cpp runs with and
without run-time repacking. Failed runs are listed below the table.

    -d 0,8192            tests after contexts of 0 and 8192 tokens
    --parallel 2,4,8     several sequences in one step (the others use llama-batched-bench, beside their llama-bench)
    --busy               generation again while another process keeps one core busy
    --first-token        seconds from the start of the process to the first byte of the answer, and its largest
                         resident set; --llama-cli and --ik-cli name the others' programs
    --no-warmup          the others measure their first run, to save the time of a warm-up (frit always has one)
    --save FILE          also appends every sample to FILE, as JSON lines
    --report FILE ...    measures nothing: prints the table of saved samples (several runs make one table)
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def numbers(text):
    """"512", "128,512" -> [512], [128, 512]"""
    values = [int(word) for word in text.split(",")]
    if any(v < 0 for v in values):
        raise argparse.ArgumentTypeError(f"'{text}': a number is negative")
    return values


def test_name(prompt=0, gen=0, depth=0, parallel=1):
    name = f"pp{prompt}" if gen == 0 else f"tg{gen}"
    name += f" x {parallel}" if parallel > 1 else ""
    return name + (f" @ d{depth}" if depth else "")


class Failure(Exception):
    """A run that gave no figures. The message is a sentence with the reason."""


# ------------------------------------------------------------------------------ engines
#
# An engine makes a command for a group of tests, and samples of the command's output: {test: {quantity: [values]}}. It
# returns None for tests that it cannot measure.


class Frit:
    name = "frit"

    def __init__(self, program, options):
        self.program, self.options = program, options

    def bench(self, model, prompt, gen, depth, parallel=(1,)):
        command = [self.program, "bench", model, "-p", join(prompt), "-n", join(gen), "-d", str(depth),
                   "-r", str(self.options.repetitions), "-o", "json"]
        command += ["-t", str(self.options.threads)] if self.options.threads else []
        command += ["-npl", join(parallel)] if list(parallel) != [1] else []
        for option, value in (("-ctk", self.options.ctk), ("-ctv", self.options.ctv)):
            command += [option, value] if value else []
        return command

    def parse(self, output, depth):
        samples = {}
        for row in parse_json(output):
            name = test_name(row["n_prompt"], row["n_gen"], row["n_depth"], row["n_parallel"])
            samples[name] = {"t/s": row["samples_ts"]}
            if row["machine_gbps"] > 0:
                rates = row["samples_ts"]
                samples[name]["memory"] = [t * row["bytes_per_token"] * 1e-9 / row["machine_gbps"] for t in rates]
                samples[name]["arithmetic"] = [t * row["ops_per_token"] * 1e-12 / row["machine_tops"] for t in rates]
        return samples

    def parallel(self, model, gen, parallel):
        return self.bench(model, [0], [gen], 0, parallel)

    def parse_parallel(self, output):
        return self.parse(output, 0)

    def first_token(self, model, prompt):
        command = [self.program, "run", model, "--raw", "-p", prompt, "-n", "1", "--temp", "0", "-q"]
        command += ["-c", str(self.options.ctx)]
        return command + (["-t", str(self.options.threads)] if self.options.threads else [])


class Llama:
    """llama.cpp's llama-bench, llama-batched-bench and a command line such as llama-completion."""
    name = "llama.cpp"
    extra = []

    def __init__(self, program, cli, options):
        self.program, self.cli, self.options = program, cli, options

    def flags(self):
        flags = ["-t", str(self.options.threads)] if self.options.threads else []
        for option, value in (("-ctk", self.options.ctk), ("-ctv", self.options.ctv)):
            flags += [option, value] if value else []
        return flags

    def bench(self, model, prompt, gen, depth):
        return [self.program, "-m", model, "-p", join(prompt), "-n", join(gen), "-d", str(depth),
                "-r", str(self.options.repetitions), "-fa", "1", "-o", "json", *self.cold(), *self.flags(), *self.extra]

    def cold(self):
        return ["--no-warmup"] if self.options.no_warmup else []

    def parse(self, output, depth):
        samples = {}
        for row in parse_json(output):
            name = test_name(row["n_prompt"], row["n_gen"], row.get("n_depth", 0))
            samples[name] = {"t/s": row["samples_ts"]}
        return samples

    def parallel(self, model, gen, parallel):
        program = Path(self.program).with_name("llama-batched-bench")
        if not program.exists():
            return None
        room = max(parallel) * (16 + gen + 8)
        return [str(program), "-m", model, "-npp", "16", "-ntg", str(gen), "-npl", join(parallel), "-c", str(room),
                "-fa", "on", *self.flags(), *self.extra]

    def parse_parallel(self, output):
        """| PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | ..."""
        samples = {}
        for line in output.splitlines():
            cells = [cell.strip() for cell in line.split("|")[1:-1]]
            if len(cells) < 8 or not cells[0].isdigit():
                continue
            name = test_name(0, int(cells[1]), 0, int(cells[2]))
            samples.setdefault(name, {"t/s": []})["t/s"].append(float(cells[7]))
        return samples

    def first_token(self, model, prompt):
        if not self.cli:
            return None
        return [self.cli, "-m", model, "-p", prompt, "-n", "1", "--temp", "0", "-no-cnv", "--no-display-prompt",
                "-c", str(self.options.ctx), "-fa", "on", *self.flags(), *self.extra]


class Ik(Llama):
    """ik_llama.cpp. Its option for a test after a context is "-gp DEPTH,N", and it has one for generation only."""
    name = "ik_llama.cpp"

    def bench(self, model, prompt, gen, depth):
        if depth == 0:
            tests = ["-p", join(prompt), "-n", join(gen)]
        else:
            gen = [n for n in gen if n > 0]
            if not gen:
                return None
            tests = ["-p", "0", "-n", "0"] + [word for n in gen for word in ("-gp", f"{depth},{n}")]
        return [self.program, "-m", model, *tests, "-r", str(self.options.repetitions), "-fa", "1", "-o", "json",
                *self.cold(), *self.flags(), *self.extra]

    def cold(self):
        return ["-w", "0"] if self.options.no_warmup else []

    def parse(self, output, depth):
        samples = {}
        for row in parse_json(output):
            if depth > 0:
                row = {**row, "n_prompt": 0, "n_depth": depth}
            name = test_name(row["n_prompt"], row["n_gen"], row.get("n_depth", 0))
            samples[name] = {"t/s": row["samples_ts"]}
        return samples

    def first_token(self, model, prompt):
        command = super().first_token(model, prompt)
        return command and [word for word in command if word != "-no-cnv"]


class IkRepacked(Ik):
    name = "ik_llama.cpp -rtr"
    extra = ["-rtr", "1"]

    def parallel(self, model, gen, parallel):
        command = super().parallel(model, gen, parallel)
        return command and command[:-1]   # the last word is an option with a value elsewhere, and a switch here

    def first_token(self, model, prompt):
        command = super().first_token(model, prompt)
        return command and command[:-1]


def parallel_rows(engine, done):
    """Finds the table of a parallel run, which some programs print to stdout and some to stderr."""
    samples = engine.parse_parallel(done.stdout) or engine.parse_parallel(done.stderr)
    if not samples:
        raise Failure("its output is not the table that was expected")
    return samples


def join(values):
    return ",".join(str(value) for value in values)


def parse_json(output):
    """Returns the JSON array in the output. Programs print other text around it."""
    start, end = output.find("[\n"), output.rfind("]")
    try:
        rows = json.loads(output[start:end + 1])
        return [row for row in rows if row.get("samples_ts")]
    except (ValueError, AttributeError):
        raise Failure("its output is not the JSON that was expected") from None


# ------------------------------------------------------------------------------ running


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def execute(command, timeout):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False,
                              cwd=tempfile.gettempdir())   # some programs write logs into the current folder
    except OSError as error:
        raise Failure(f"could not be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"was stopped after {timeout:g} s") from None
    if done.returncode != 0:
        raise Failure(f"ended with {done.returncode}: {last_line(done.stderr)}")
    return done


def time_first_token(command, timeout):
    """Returns the seconds to the first byte of the answer, or to the end of an empty one, and the largest resident set
    in GB."""
    with tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL,
                                       cwd=tempfile.gettempdir())
        except OSError as error:
            raise Failure(f"could not be started: {error.strerror}") from None
        byte = b" "
        while byte.isspace():
            byte = process.stdout.read(1)
        seconds = time.monotonic() - start
        process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            raise Failure(f"ended with {process.returncode}: {last_line(said)}")
    scale = 1e-9 if sys.platform == "darwin" else 1024e-9   # the unit is bytes on macOS and KiB elsewhere
    return {"first token": {"s": [seconds]}, "largest resident set": {"GB": [usage.ru_maxrss * scale]}}


class BusyCore:
    """A process that keeps one core busy: the last one that this process may use."""

    def __enter__(self):
        core = max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        pin = f"import os\nos.sched_setaffinity(0, [{core}])\n" if core is not None else ""
        self.process = subprocess.Popen([sys.executable, "-c", pin + "while True: pass"])
        time.sleep(0.3)
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()


class Comparison:
    def __init__(self, engines, options):
        self.engines, self.options = engines, options
        self.samples, self.commands, self.failures = [], {}, {}

    def run(self, engine, model, command, parse, suffix=""):
        """Runs a command of an engine. Returns its samples, or a sentence that says why there are none."""
        if command is None:
            return
        self.commands.setdefault((engine.name, shlex.join(command)))
        try:
            groups = parse(command)
        except Failure as failure:
            self.failures.setdefault(engine.name, f"{engine.name}: {Path(command[0]).name} {failure}")
            return
        for test, quantities in groups.items():
            for quantity, values in quantities.items():
                self.samples.append({"model": Path(model).name, "test": test + suffix, "engine": engine.name,
                                     "quantity": quantity, "values": values})

    def round(self, model, engines):
        o = self.options
        prompt, gen = [n for n in o.prompt if n > 0], [n for n in o.gen if n > 0]
        for depth in o.depth:
            for engine in engines if prompt or gen else []:
                command = engine.bench(model, prompt or [0], gen or [0], depth)
                self.run(engine, model, command, lambda c: engine.parse(execute(c, o.timeout).stdout, depth))
        for engine in engines if o.parallel and gen else []:
            command = engine.parallel(model, gen[0], o.parallel)
            self.run(engine, model, command, lambda c: parallel_rows(engine, execute(c, o.timeout)))
        for engine in engines if o.busy and gen else []:
            with BusyCore():
                command = engine.bench(model, [0], gen[:1], 0)
                self.run(engine, model, command, lambda c: engine.parse(execute(c, o.timeout).stdout, 0),
                         ", a core busy")
        for engine in engines if o.first_token else []:
            command = engine.first_token(model, o.text)
            self.run(engine, model, command, lambda c: time_first_token(c, o.timeout))

    def all_rounds(self, models):
        for model in models:
            if self.options.first_token:
                with open(model, "rb") as file:   # puts the file into the page cache before the first measurement
                    while file.read(1 << 24):
                        pass
            for i in range(self.options.rounds):
                note(f"{Path(model).name}: round {i + 1} of {self.options.rounds}")
                self.round(model, self.engines[::-1] if i % 2 else self.engines)


def note(text):
    if sys.stderr.isatty():
        print(f"compare: {text}", file=sys.stderr)


# ------------------------------------------------------------------------------ printing


def figures(values, digits):
    if not values:
        return "-"
    text = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return text
    return f"{text} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def table(samples):
    """Returns the rows of a table as text: a head, then a row for each model, test and quantity."""
    cells, order, engines = {}, [], []
    for s in samples:
        key = (s["model"], s["test"], s["quantity"])
        if s["quantity"] in ("memory", "arithmetic"):
            pass
        elif key not in order:
            order.append(key)
        if s["engine"] not in engines:
            engines.append(s["engine"])
        cells.setdefault((*key, s["engine"]), []).extend(s["values"])
    engines.sort(key=lambda name: (name != "frit", name))
    others = engines[1:] if "frit" in engines else engines
    rows = [["model", "test", "unit", *engines] + (["frit / best other"] if others else []) + ["memory", "arithmetic"]]
    for model, test, quantity in order:
        values = [cells.get((model, test, quantity, engine), []) for engine in engines]
        medians = {engine: statistics.median(v) for engine, v in zip(engines, values) if v}
        digits = {"t/s": 1, "s": 3, "GB": 2}[quantity]
        row = [model, test, quantity] + [figures(v, digits) for v in values]
        if others:
            better = max if quantity == "t/s" else min
            best = [medians[name] for name in others if name in medians]
            row.append(f"{medians['frit'] / better(best):.2f}" if best and "frit" in medians else "-")
        for share in ("memory", "arithmetic"):
            of = cells.get((model, test, share, "frit"))
            row.append(f"{100 * statistics.median(of):.0f} %" if of else "-")
        rows.append(row)
    return rows


def print_table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = 3   # columns that are aligned to the left: model, test, unit
    for i, row in enumerate(rows):
        cells = [cell.ljust(w) if c < left else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths))]
        print("| " + " | ".join(cells) + " |")
        if i == 0:
            print("| " + " | ".join("-" * w if c < left else "-" * (w - 1) + ":" for c, w in enumerate(widths)) + " |")


def print_busy(samples):
    """Prints the share of generation's speed that is left while a core is busy."""
    groups = {}
    for s in samples:
        if s["quantity"] == "t/s":
            groups.setdefault((s["model"], s["engine"], s["test"]), []).extend(s["values"])
    for (model, engine, test), values in groups.items():
        quiet = groups.get((model, engine, test.removesuffix(", a core busy")))
        if test.endswith(", a core busy") and quiet:
            share = statistics.median(values) / statistics.median(quiet)
            print(f"{model}: {engine} keeps {100 * share:.0f} % of its speed while a core is busy")


def parse_arguments(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("models", nargs="*", metavar="MODEL", help="GGUF files")
    p.add_argument("--frit", default=str(HERE.parent / "build/release/frit"), metavar="PATH", help="(build/release)")
    p.add_argument("--llama", metavar="PATH", help="llama.cpp's llama-bench")
    p.add_argument("--ik", metavar="PATH", help="ik_llama.cpp's llama-bench")
    p.add_argument("--llama-cli", metavar="PATH", help="llama.cpp's command line, for --first-token")
    p.add_argument("--ik-cli", metavar="PATH", help="ik_llama.cpp's command line, for --first-token")
    p.add_argument("--only", metavar="NAMES", help="of the engines, for example frit,llama.cpp")
    p.add_argument("-t", "--threads", type=int, default=len(os.sched_getaffinity(0)) if hasattr(
        os, "sched_getaffinity") else os.cpu_count(), metavar="N", help="for all (one per core)")
    p.add_argument("-p", "--prompt", type=numbers, default=[512], metavar="LIST", help="prompt tests (512)")
    p.add_argument("-n", "--gen", type=numbers, default=[128], metavar="LIST", help="generation tests (128)")
    p.add_argument("-d", "--depth", type=numbers, default=[0], metavar="LIST", help="contexts before them (0)")
    p.add_argument("--parallel", type=numbers, metavar="LIST", help="sequences that generate together")
    p.add_argument("-ctk", metavar="TYPE", help="type of cached keys")
    p.add_argument("-ctv", metavar="TYPE", help="type of cached values")
    p.add_argument("-r", "--repetitions", type=int, default=1, metavar="N", help="of each test in each round (1)")
    p.add_argument("--rounds", type=int, default=3, metavar="N", help="(3)")
    p.add_argument("--no-warmup", action="store_true", help="the others' first run counts")
    p.add_argument("--busy", action="store_true", help="generation with a busy core too")
    p.add_argument("--first-token", action="store_true", help="time to the first token and largest resident set")
    p.add_argument("--text", default="Hello", help="the prompt for --first-token (Hello)")
    p.add_argument("--ctx", type=int, default=4096, metavar="N", help="the context for --first-token (4096)")
    p.add_argument("--timeout", type=float, default=1800, metavar="S", help="seconds for one command (1800)")
    p.add_argument("--save", metavar="FILE", help="append the samples")
    p.add_argument("--report", nargs="+", metavar="FILE", help="only print the table of saved samples")
    options = p.parse_args(arguments)
    if bool(options.models) == bool(options.report):
        p.error("name a model, or files for --report")
    for model in options.models:
        if not Path(model).exists():
            p.error(f"{model}: there is no such file")
    options.models = [str(Path(model).resolve()) for model in options.models]
    for name in ("frit", "llama", "ik", "llama_cli", "ik_cli"):
        path = getattr(options, name)
        if path and os.sep in path:
            setattr(options, name, os.path.abspath(path))
    return options


def make_engines(options):
    engines = [Frit(options.frit, options)]
    if options.llama or options.llama_cli:
        engines.append(Llama(options.llama or options.llama_cli, options.llama_cli, options))
    if options.ik or options.ik_cli:
        engines += [kind(options.ik or options.ik_cli, options.ik_cli, options) for kind in (Ik, IkRepacked)]
    if options.only:
        engines = [engine for engine in engines if engine.name in options.only.split(",")]
    return engines


def main(arguments):
    options = parse_arguments(arguments)
    comparison = Comparison(make_engines(options) if options.models else [], options)
    if options.report:
        for path in options.report:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
            comparison.samples += [json.loads(line) for line in lines if line.strip()]
    try:
        comparison.all_rounds(options.models)
    except KeyboardInterrupt:
        print("compare: stopped; this is what was measured so far", file=sys.stderr)
    if options.save:
        with open(options.save, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(sample) + "\n" for sample in comparison.samples)
    if comparison.samples:
        print_table(table(comparison.samples))
        print_busy(comparison.samples)
    for sentence in comparison.failures.values():
        print(f"\n{sentence}")
    if comparison.commands:
        print("\nCommands:\n")
    for _, command in comparison.commands:
        print(f"    {command}")
    return 0 if comparison.samples else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
