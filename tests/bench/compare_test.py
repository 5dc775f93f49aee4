#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests bench/compare.py with programs that print invented measurements at once."""
import contextlib
import io
import json
import stat
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
sys.dont_write_bytecode = True
import compare  # noqa: E402

# Each fake has a fixed number of tokens/s, and appends its arguments to a log.
FAKE = """#!{python}
import json, sys
args = sys.argv[1:]
open({log!r}, "a").write(json.dumps([{name!r}] + args) + "\\n")
def of(flag, otherwise=""):
    return args[args.index(flag) + 1] if flag in args else otherwise
"""

FAKE_BENCH = FAKE + """
speed = {speed} * (1.5 if of("-rtr") == "1" else 1)
numbers = lambda text: [int(n) for n in text.split(",")]
rows = []
def add(p, n, d, parallel=1):
    ts = [speed * parallel * (10 if p and not n else 1), speed * parallel]
    row = dict(n_prompt=p, n_gen=n, samples_ts=ts[:1], model_filename=of("-m"))
    if {name!r} == "frit":
        row.update(n_depth=d, n_parallel=parallel, machine_gbps=50.0, machine_tops=2.0, bytes_per_token=1e9,
                   ops_per_token=1e9)
    elif {name!r} == "llama":
        row.update(n_depth=d)
    rows.append(row)
depth = int(of("-d", "0"))
for p in numbers(of("-p", "0")):
    if p: add(p, 0, depth)
for n in numbers(of("-n", "0")):
    if n:
        for b in numbers(of("-npl", "1")): add(0, n, depth, b)
for i, a in enumerate(args):
    if a == "-gp": add(*numbers(args[i + 1]), 0)
print("some words before")
print("[\\n" + ",\\n".join(json.dumps(row) for row in rows) + "\\n]")
"""

FAKE_BATCHED = FAKE + """
print("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |")
print("|-------|--------|------|--------|----------|----------|----------|----------|")
for b in of("-npl").split(","):
    print(f"|    16 | {{int(of('-ntg')):6d}} | {{int(b):4d}} |     99 |    0.100 |   160.00 |    1.000 | {{7.0 * int(b):8.2f}} |")
"""

FAKE_RUN = FAKE + """
import time
time.sleep(0.2)
print("x", flush=True)
time.sleep(3)
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = self.path("log")
        self.model = self.path("model.gguf")
        Path(self.model).write_bytes(b"GGUF")
        self.frit = self.fake("frit", FAKE_BENCH, speed=30)

    def path(self, name):
        return str(Path(self.folder.name) / name)

    def fake(self, name, text, **values):
        path = Path(self.path(name))
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(python=sys.executable, log=self.log, name=name.split("/")[0], **values))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def compare(self, *arguments):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = compare.main([self.model, "--frit", self.frit, "-t", "2", *arguments])
        return code, out.getvalue()

    def calls(self):
        return [json.loads(line) for line in Path(self.log).read_text().splitlines()]

    def row(self, output, test, unit="t/s"):
        """Returns the cells of a test, by the titles of the columns."""
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in output.splitlines() if line[:1] == "|"]
        found = [cells for cells in lines[2:] if cells[1] == test and cells[2] == unit]
        self.assertEqual(len(found), 1, output)
        return dict(zip(lines[0], found[0]))

    def test_alone_it_prints_figures_and_shares(self):
        code, out = self.compare("--rounds", "2")
        self.assertEqual(code, 0)
        tg = self.row(out, "tg128")
        self.assertEqual(tg["frit"], "30.0 (30.0 - 30.0)")
        self.assertEqual(tg["memory"], "60 %")      # 30 x 1 GB, of the machine's 50 GB/s
        self.assertEqual(self.row(out, "pp512")["arithmetic"], "15 %")   # 300 x 1 Gop, of the machine's 2 Top/s
        self.assertNotIn("best other", out)
        self.assertIn(f"    {self.frit} bench {self.model} -p 512 -n 128 -d 0 -r 1 -o json -t 2\n", out)

    def test_the_ratio_is_to_the_better_of_the_others(self):
        llama, ik = self.fake("llama/llama-bench", FAKE_BENCH, speed=10), self.fake("ik/llama-bench", FAKE_BENCH, speed=16)
        code, out = self.compare("--llama", llama, "--ik", ik, "--rounds", "2", "-n", "64")
        self.assertEqual(code, 0)
        tg = self.row(out, "tg64")
        self.assertEqual(tg["llama.cpp"], "10.0 (10.0 - 10.0)")
        self.assertEqual(tg["ik_llama.cpp -rtr"], "24.0 (24.0 - 24.0)")
        self.assertEqual(tg["frit / best other"], "1.25")
        order = [call[0] for call in self.calls()]
        self.assertEqual(order, ["frit", "llama", "ik", "ik", "ik", "ik", "llama", "frit"])   # reversed in even rounds

    def test_tests_behind_a_context(self):
        llama, ik = self.fake("llama/llama-bench", FAKE_BENCH, speed=10), self.fake("ik/llama-bench", FAKE_BENCH, speed=16)
        code, out = self.compare("--llama", llama, "--ik", ik, "--rounds", "1", "-d", "0,2048", "-n", "32")
        self.assertEqual(code, 0)
        self.assertEqual(self.row(out, "tg32 @ d2048")["ik_llama.cpp"], "16.0")
        self.assertEqual(self.row(out, "pp512 @ d2048")["ik_llama.cpp"], "-")
        self.assertEqual(self.row(out, "pp512 @ d2048")["llama.cpp"], "100.0")
        self.assertEqual(self.row(out, "tg32")["ik_llama.cpp"], "16.0")

    def test_sequences_in_parallel(self):
        llama = self.fake("llama/llama-bench", FAKE_BENCH, speed=10)
        self.fake("llama/llama-batched-bench", FAKE_BATCHED)
        code, out = self.compare("--llama", llama, "--rounds", "1", "-p", "0", "-n", "32", "--parallel", "2,4")
        self.assertEqual(code, 0)
        self.assertEqual(self.row(out, "tg32 x 4")["llama.cpp"], "28.0")
        self.assertEqual(self.row(out, "tg32 x 4")["frit"], "120.0")
        self.assertEqual(self.row(out, "tg32 x 2")["frit / best other"], "4.29")

    def test_sequences_in_parallel_of_a_program_with_a_switch(self):
        ik = self.fake("ik/llama-bench", FAKE_BENCH, speed=10)
        self.fake("ik/llama-batched-bench", FAKE_BATCHED)
        code, out = self.compare("--ik", ik, "--rounds", "1", "-p", "0", "-n", "32", "--parallel", "2,4")
        self.assertEqual(code, 0)
        self.assertEqual(self.row(out, "tg32 x 4")["ik_llama.cpp -rtr"], "28.0")
        batched = [call for call in self.calls() if "-npl" in call and call[0] == "ik"]
        self.assertEqual([call[-1] == "-rtr" for call in batched], [False, True])

    def test_the_others_may_skip_their_warm_up(self):
        llama, ik = self.fake("llama/llama-bench", FAKE_BENCH, speed=10), self.fake("ik/llama-bench", FAKE_BENCH, speed=16)
        code, _ = self.compare("--llama", llama, "--ik", ik, "--rounds", "1", "--no-warmup")
        self.assertEqual(code, 0)
        calls = self.calls()
        self.assertNotIn("--no-warmup", calls[0])
        self.assertIn("--no-warmup", calls[1])
        self.assertEqual([call[call.index("-w") + 1] for call in calls if "-w" in call], ["0", "0"])

    def test_a_busy_core(self):
        code, out = self.compare("--rounds", "1", "--busy")
        self.assertEqual(code, 0)
        self.assertIn("frit keeps 100 % of its speed while a core is busy", out)
        self.assertEqual(self.row(out, "tg128, a core busy")["frit"], "30.0")

    def test_the_first_token_is_timed_when_it_comes(self):
        self.frit = self.fake("frit", FAKE_RUN)
        code, out = self.compare("--rounds", "1", "-p", "0", "-n", "0", "--first-token")
        self.assertEqual(code, 0)
        seconds = float(self.row(out, "first token", "s")["frit"])
        self.assertGreaterEqual(seconds, 0.2)
        self.assertLess(seconds, 3)   # the program itself takes longer
        self.assertGreater(float(self.row(out, "largest resident set", "GB")["frit"]), 0)

    def test_a_peer_that_is_missing_or_fails_costs_a_word(self):
        broken = self.fake("llama/llama-bench", FAKE + "print('ggml: no such model', file=sys.stderr)\nsys.exit(3)\n")
        code, out = self.compare("--llama", broken, "--ik", self.path("nowhere"), "--rounds", "1")
        self.assertEqual(code, 0)
        self.assertEqual(self.row(out, "tg128")["frit / best other"] if "best other" in out else "-", "-")
        self.assertIn("llama.cpp: llama-bench ended with 3: ggml: no such model", out)
        self.assertIn("ik_llama.cpp: nowhere could not be started: No such file or directory", out)

    def test_output_that_is_no_json_costs_a_word(self):
        llama = self.fake("llama/llama-bench", FAKE + "print('| a table |')\n")
        code, out = self.compare("--llama", llama, "--rounds", "1")
        self.assertEqual(code, 0)
        self.assertIn("llama.cpp: llama-bench its output is not the JSON that was expected", out)

    def test_a_program_that_hangs_is_stopped(self):
        self.frit = self.fake("frit", FAKE + "import time\ntime.sleep(60)\n")
        code, out = self.compare("--rounds", "1", "--timeout", "0.5")
        self.assertEqual(code, 1)
        self.assertIn("frit: frit was stopped after 0.5 s", out)

    def test_saved_samples_of_several_runs_make_one_table(self):
        saved = self.path("saved")
        self.compare("--rounds", "1", "-p", "0", "--save", saved)
        self.frit = self.fake("frit", FAKE_BENCH, speed=40)
        self.compare("--rounds", "1", "-p", "0", "--save", saved)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            self.assertEqual(compare.main(["--report", saved]), 0)
        self.assertEqual(self.row(out.getvalue(), "tg128")["frit"], "35.0 (30.0 - 40.0)")

    def test_a_file_that_is_not_there_is_named(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit):
            compare.main(["nowhere.gguf"])
        self.assertIn("nowhere.gguf: there is no such file", errors.getvalue())


if __name__ == "__main__":
    unittest.main()
