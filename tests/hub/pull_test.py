#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests `frit pull` with servers that answer like the real ones (replay.py), and with their faults.

    tests/hub/pull_test.py build/release/frit [--kills 200]
"""
import hashlib
import json
import os
import pty
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from replay import Hub, digest, git_hash, noise, weights  # noqa: E402

FRIT = ""
KILLS = 20
FABLE = Path(__file__).resolve().parents[2] / "models" / "fable.gguf"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class Case(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="frit-hub-")
        self.addCleanup(shutil.rmtree, self.home, ignore_errors=True)
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("HF_", "FRIT_", "OLLAMA_", "XDG_")) and k.lower() not in PROXIES}
        self.env.update(HOME=self.home, HF_ENDPOINT=self.hub.url, FRIT_OLLAMA_REGISTRY=self.hub.url)
        self.data = noise(3_000_000, 7)

    @property
    def cache(self):
        return Path(self.home, ".cache/huggingface/hub")

    def start(self, *arguments, **more):
        return subprocess.Popen([FRIT, *arguments], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **more)

    def frit(self, *arguments, code=0, says="", **more):
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, code, err)
        self.assertIn(says, " ".join(err.split()))   # messages are wrapped at the width of the terminal
        return out

    def pull(self, *arguments, **more):
        return self.frit("pull", *arguments, **more).strip()

    def leftovers(self):
        """Returns the files with final names, without partial files and locks."""
        return [p for p in Path(self.home).rglob("*") if p.is_file() and not p.is_symlink()
                and not p.name.endswith((".part", ".lock", "CACHEDIR.TAG", "address"))]

    def parts(self):
        return list(Path(self.home).rglob("*.part"))


class Whole(Case):
    def test_a_file_comes_whole_and_is_found_again_by_every_command(self):
        self.hub.add("org/tale", {"fable-Q4_K_M.gguf": FABLE.read_bytes(), "README.md": b"a tale"})
        path = self.pull("hf:org/tale")
        self.assertEqual(Path(path).read_bytes(), FABLE.read_bytes())
        self.assertTrue(Path(path).is_symlink())
        n = len(self.hub.requests)
        ids = self.frit("detokenize", "hf:org/tale", "5", "6")
        self.assertEqual(ids, self.frit("detokenize", str(FABLE), "5", "6"))
        self.assertIn("fable-30m", self.frit("info", "-m", "hf:org/tale:Q4_K_M"))
        self.frit("quantize", "hf:org/tale:fable-Q4_K_M.gguf", self.home + "/out.gguf", "--plan")
        self.frit("convert", "hf:org/tale", self.home + "/out.gguf")
        self.assertEqual(len(self.hub.requests), n)   # no request for files that are on this machine
        self.assertIn("hf:org/tale:Q4_K_M", self.frit("list"))

    def test_a_command_fetches_what_is_not_here(self):
        self.hub.add("org/tale", {"fable-Q4_K_M.gguf": FABLE.read_bytes()})
        out = self.frit("run", "hf:org/tale", "-p", "Tell me the tale of Rapunzel.", "-n", "5",
                        says="is not on this machine: fetching it")
        self.assertIn("There were once", out)

    def test_a_server_calls_a_model_by_its_name(self):
        self.hub.add("org/tale", {"fable-Q4_K_M.gguf": FABLE.read_bytes()})
        process = self.start("serve", "hf:org/tale", "--port", "0")
        said = ""
        while process.poll() is None and "serving" not in said:
            said += process.stderr.readline()
        process.terminate()
        said += process.communicate(timeout=60)[1]
        if "this build has no server" in said:
            self.skipTest("this build has no server")
        self.assertIn("serving hf:org/tale at http", said)

    def test_a_path_that_exists_goes_before_a_name(self):
        folder = Path(self.home, "hf:org")
        folder.mkdir()
        shutil.copy(FABLE, folder / "tale")
        self.assertIn("fable-30m", self.frit("info", "hf:org/tale", cwd=self.home))
        self.assertEqual(self.hub.requests, [])

    def test_folders_of_safetensors_come_without_the_rest(self):
        files = {"config.json": b"{}", "model-00001-of-00002.safetensors": weights(9000, 1),
                 "model-00002-of-00002.safetensors": weights(9000, 2), "tokenizer.json": b"{}",
                 "pytorch_model.bin": noise(9000, 3), "onnx/model.onnx": noise(9000, 4), "README.md": b"x"}
        self.hub.add("org/weights", files)
        folder = Path(self.pull("hf:org/weights"))
        self.assertEqual(sorted(p.name for p in folder.iterdir()),
                         ["config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                          "tokenizer.json"])
        self.assertEqual((folder / "model-00002-of-00002.safetensors").read_bytes(), weights(9000, 2))

    def test_all_parts_of_a_split_file_come(self):
        files = {f"Q8_0/big-Q8_0-0000{i}-of-00003.gguf": noise(9000, i) for i in (1, 2, 3)}
        self.hub.add("org/big", {**files, "big-Q2_K.gguf": noise(5000, 9)})
        path = Path(self.pull("hf:org/big:Q8_0"))
        self.assertEqual(path.name, "big-Q8_0-00001-of-00003.gguf")
        self.assertEqual(len(list(path.parent.iterdir())), 3)

    def test_a_mirror_without_hashes_is_asked_for_each_file(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data})
        self.hub.has_blobs = False
        path = self.pull("hf:org/m")
        self.assertEqual(Path(path).resolve().name, digest(self.data))

    def test_a_server_without_ranges_gives_the_whole_file(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data})
        self.hub.has_ranges = False
        self.assertEqual(Path(self.pull("hf:org/m")).read_bytes(), self.data)
        self.assertLess(self.hub.sent, 2 * len(self.data))

    def test_files_at_addresses(self):
        self.hub.plain["a/m.gguf"] = self.data
        url = self.hub.url + "/plain/a/m.gguf"
        self.frit("pull", url, "--sha256", "0" * 64, code=1, says="expected 0000")
        self.assertEqual(self.leftovers(), [])
        path = self.pull(url, "--sha256", digest(self.data))
        self.assertEqual(Path(path).read_bytes(), self.data)
        self.assertIn(url, self.frit("list"))
        self.frit("rm", url, says="is removed")
        self.assertFalse(Path(path).exists())

    def test_an_address_of_the_hub_is_its_file(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data})
        path = self.pull(self.hub.url + "/org/m/resolve/main/m-Q4_0.gguf?download=true")
        self.assertIn("models--org--m", path)

    def test_pages_of_the_hub_and_of_ollama_are_its_models(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data, "more/m-Q8_0.gguf": noise(9000, 3)})
        self.hub.add_ollama("library/tale", "1b", noise(9000, 4))
        for name, file in (("https://huggingface.co/org/m", "m-Q4_0.gguf"), ("hf.co/org/m", "m-Q4_0.gguf"),
                           ("huggingface.co/org/m:Q8_0", "m-Q8_0.gguf"),
                           ("https://hf.co/org/m/tree/main", "m-Q4_0.gguf"),
                           ("https://huggingface.co/org/m/tree/main/more", "m-Q8_0.gguf"),
                           ("https://huggingface.co/org/m/blob/main/more/m-Q8_0.gguf", "m-Q8_0.gguf"),
                           ("hf.co/org/m/resolve/main/m-Q4_0.gguf?download=true", "m-Q4_0.gguf")):
            self.assertEqual(Path(self.pull(name)).name, file, name)
        self.pull("org/m:Q8_0", says="org/m:Q8_0 is taken as hf:org/m:Q8_0")
        self.pull("-hf", "org/m:Q8_0")
        self.pull("https://ollama.com/library/tale:1b")
        self.pull("tale:1b", says="tale:1b is taken as ollama:tale:1b")
        self.frit("pull", "https://huggingface.co/datasets/org/m", code=2, says="names no model")
        self.frit("info", "org/m", code=3, says="the repository of the Hugging Face hub is called hf:org/m")
        self.frit("info", "tale:1b", code=3, says="the model of ollama is called ollama:tale:1b")
        self.frit("org/m", code=2, says="it is run by 'frit run hf:org/m'")
        table = Path(self.home, ".config/frit/names.conf")
        table.parent.mkdir(parents=True)
        table.write_text("small = https://huggingface.co/org/m/blob/main/m-Q4_0.gguf\n")
        self.assertEqual(Path(self.pull("small")).name, "m-Q4_0.gguf")
        self.assertEqual(Path(self.pull("small:Q8_0")).name, "m-Q8_0.gguf")

    def test_a_repository_is_named_as_to_llama_cpp(self):
        self.hub.add("org/tale", {"fable-Q4_K_M.gguf": FABLE.read_bytes()})
        tale = ["-p", "Tell me the tale of Rapunzel.", "-n", "5"]
        for name in (["run", "-hf", "org/tale"], ["run", "--hf-repo", "org/tale:Q4_K_M"], ["run", "-hf", "hf:org/tale"],
                     ["-hf", "org/tale"], ["hf.co/org/tale"], ["run", "https://huggingface.co/org/tale"]):
            self.assertIn("There were once", self.frit(*name, *tale))
        self.frit("run", "-hf", "org/tale", "-m", str(FABLE), *tale, code=2, says="named twice")
        self.env["FRIT_MODEL"] = "hf:org/tale"
        self.frit("rm", code=2, says="expected the name of a model")

    def test_programs_are_told_what_happens(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data})
        events = [json.loads(line) for line in self.pull("hf:org/m:Q4_0", "--json").splitlines()]
        path = events[-1]["path"]
        self.assertEqual(Path(path).read_bytes(), self.data)
        last = [e for e in events if e.get("name") == "m-Q4_0.gguf" and not e["checks"]][-1]
        self.assertEqual((last["done"], last["total"]), (len(self.data), len(self.data)))
        n = len(self.hub.requests)
        self.assertEqual(json.loads(self.pull("hf:org/m:Q4_0", "--json", "--missing")), {"path": path})
        self.assertEqual(self.pull("hf:org/m:Q4_0", "--missing"), path)
        self.assertEqual(len(self.hub.requests), n)   # no request for files that are on this machine
        said = json.loads(self.pull("hf:org/none", "--json", code=3).splitlines()[-1])
        self.assertEqual(said["kind"], "not found")
        self.assertIn("org/none", said["error"])
        self.frit("pull", "org/m", "--missing", code=3, says="is called hf:org/m")
        self.frit("pull", "lmstudio:org/none:x.gguf", "--missing", code=3, says="is not among the models of LM Studio")

    def test_adapters_are_files_too(self):
        self.hub.add("org/tale", {"fable-Q4_K_M.gguf": FABLE.read_bytes()})
        self.hub.add("org/peft", {"adapter_config.json": b"{}", "adapter_model.safetensors": weights(9000, 1), "README.md": b"x"})
        tale = ["-p", "Tell me the tale of Rapunzel.", "-n", "5"]
        # Each file is fetched and found. The first is not an adapter, and the second is an empty one.
        self.frit("run", *tale, "--lora", "hf:org/tale:Q4_K_M:0.5", code=3, says="fable-Q4_K_M.gguf: ")
        self.frit("run", *tale, "--lora", "hf:org/peft", code=3, says="adapter_config.json")
        self.assertEqual(len(list(self.cache.glob("models--org--peft/snapshots/*/adapter_*"))), 2)
        self.frit("run", *tale, "--control-vector", "hf:org/none", code=3, says="has no such thing (404)")
        self.frit("quantize", str(FABLE), "--plan", "--importance", "hf:org/none", code=3, says="(404)")

    def test_short_names(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data, "m-Q8_0.gguf": noise(9000, 3)})
        table = Path(self.home, ".config/frit/names.conf")
        table.parent.mkdir(parents=True)
        table.write_text("# mine\nsmall = hf:org/m:Q4_0\nbad = org/m\n")
        self.assertTrue(self.pull("small").endswith("m-Q4_0.gguf"))
        self.assertTrue(self.pull("small:Q8_0").endswith("m-Q8_0.gguf"))
        self.frit("pull", "bad", code=2, says="names.conf, line 3: 'org/m' is not a name")
        self.frit("pull", "other", code=2, says="'other' is no name of a model")
        self.frit("info", "other", code=3, says="other")


class Memory(Case):
    def setUp(self):
        super().setUp()
        sizes = {"Q2_K": 100, "Q4_K_M": 200, "Q8_0": 400}
        repo = self.hub.add("org/m", {f"m-{quant}.gguf": b"x" for quant in sizes})
        for quant, mib in sizes.items():   # sizes are requested, but no files
            repo.files[f"m-{quant}.gguf"].data = _Sized(mib << 20)

    def choice(self, memory):
        process = self.start("pull", "hf:org/m", "--memory", memory)
        self.hub.faults = [("/resolve/", 404, {})]
        return " ".join(process.communicate(timeout=60)[1].split())

    def test_a_quantization_is_chosen_that_fits(self):
        self.assertIn("Q4_K_M of 3 quantizations: needs 1.0 GiB of the 2.0 GiB", self.choice("2G"))
        self.assertIn("Q2_K of 3 quantizations", self.choice("900M"))
        self.assertIn("no quantization fits: the smallest one, Q2_K, needs", self.choice("500M"))

    def test_what_is_named_is_not_asked_to_fit(self):
        process = self.start("pull", "hf:org/m:Q8_0", "--memory", "1M")
        self.hub.faults = [("/resolve/", 404, {})]
        self.assertIn("m-Q8_0.gguf: 400.0 MiB in 1 file", " ".join(process.communicate(timeout=60)[1].split()))


class _Sized(bytes):
    """Bytes with another length."""

    def __new__(cls, n):
        return super().__new__(cls)

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


class Stoppable(Case):
    def setUp(self):
        super().setUp()
        self.data = noise(1_800_000, 8)   # four chunks
        self.repo = self.hub.add("org/m", {"m-Q4_0.gguf": self.data})

    def kill_at(self, n_bytes, number=signal.SIGKILL, waits=True, name="hf:org/m:Q4_0"):
        """Starts a pull, and stops it when the server has sent n_bytes. waits: the server then sends no more."""
        hub = self.hub
        hub.sent, hub.block, hub.pause, hub.hold_after = 0, 16384, 0.0005, n_bytes if waits else None
        hub.released.clear()
        process = self.start("pull", name)
        while hub.sent < n_bytes and process.poll() is None:
            time.sleep(0.0005)
        process.send_signal(number)
        err = process.communicate(timeout=60)[1]
        hub.pause, hub.hold_after = 0, None
        hub.released.set()
        return process.returncode, " ".join(err.split())


class Stopped(Stoppable):
    def test_killed_anywhere_it_continues(self):
        chance = random.Random(20)
        n_saved = 0
        for i in range(KILLS):
            shutil.rmtree(self.cache, ignore_errors=True)
            at = chance.randrange(len(self.data))
            self.kill_at(at, waits=i % 2 == 0)
            self.hub.sent = 0
            path = self.pull("hf:org/m:Q4_0")
            self.assertEqual(hashlib.sha256(Path(path).read_bytes()).hexdigest(), digest(self.data), f"killed at {at}")
            self.assertEqual(self.parts(), [])
            n_saved += len(self.data) - min(self.hub.sent, len(self.data))
        self.assertGreater(n_saved, KILLS * len(self.data) // 5)   # bytes of a partial file were not fetched again

    def test_killed_often_it_comes_to_an_end(self):
        for i in range(6):
            self.kill_at(250_000)
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)

    def test_ctrl_c_keeps_the_part_and_says_how_to_continue(self):
        code, err = self.kill_at(900_000, signal.SIGINT)
        self.assertEqual(code, 130)
        self.assertRegex(err, r"stopped; \d\.\d of 1\.7 MiB of m-Q4_0\.gguf are kept: 'frit pull hf:org/m:Q4_0' continues")
        self.assertEqual(len(self.parts()), 1)
        self.assertEqual(self.leftovers(), [])
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)

    def test_a_changed_etag_begins_anew(self):
        self.kill_at(900_000)
        self.hub.storage_etag, self.hub.sent = '"other"', 0
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)
        self.assertGreaterEqual(self.hub.sent, len(self.data))

    def test_an_address_whose_file_changed_begins_anew(self):
        self.hub.plain["m.gguf"] = self.data
        url = self.hub.url + "/plain/m.gguf"
        self.kill_at(800_000, name=url)
        self.hub.plain["m.gguf"] = noise(len(self.data), 99)
        self.assertEqual(Path(self.pull(url)).read_bytes(), noise(len(self.data), 99))


class Broken(Stoppable):
    def test_ranges_come_at_once(self):
        self.hub.hold_after = 65536   # no download ends before all have begun
        process = self.start("pull", "hf:org/m:Q4_0")
        while len(self.hub.asked("^/storage/")) < 4 and process.poll() is None:
            time.sleep(0.001)
        self.hub.released.set()
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(Path(out.strip()).read_bytes(), self.data)
        self.assertEqual(len({headers["Range"] for _, _, _, headers in self.hub.asked("^/storage/")}), 4)

    def test_a_terminal_shows_rate_and_time_left(self):
        self.hub.block, self.hub.pause = 8192, 0.02
        mine, its = pty.openpty()
        process = subprocess.Popen([FRIT, "pull", "hf:org/m:Q4_0"], env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=its)
        os.close(its)
        said = b""
        try:
            while piece := os.read(mine, 4096):
                said += piece
        except OSError:   # the other end has closed the connection
            pass
        os.close(mine)
        self.assertEqual(process.wait(60), 0, said)
        self.assertRegex(said.decode(), r"\d+% .*of 1\.7 MiB, +[\d.]+ [KM]iB/s, \d:\d\d left")

    def test_a_wrong_hash_leaves_nothing(self):
        wrong = bytearray(self.data)
        wrong[1_234_567] ^= 1
        self.hub.replaced[digest(self.data)] = bytes(wrong)
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="its SHA-256 is")
        self.assertEqual(self.leftovers(), [])
        self.assertEqual(self.parts(), [])
        self.assertEqual(self.frit("list"), "")
        self.hub.replaced.clear()
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)

    def test_answers_that_are_not_the_file_leave_nothing(self):
        for body in (b"", b"<html><body>Please sign in.</body></html>", self.data[:-1], self.data + b"x"):
            self.hub.replaced[digest(self.data)] = body
            self.frit("pull", "hf:org/m:Q4_0", code=1, says="frit: m-Q4_0.gguf: ")
            self.assertEqual(self.leftovers(), [], body[:20])
        self.hub.replaced.clear()
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)

    def test_what_is_no_model_is_not_kept(self):
        page = b"<!DOCTYPE html>\n<html><body>Sign in</body></html>" + b" " * 5000
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1\n"
        for name, body, says in (("x.gguf", page, "is a web page (HTML); expected a GGUF file"),
                                 ("x.gguf", b"\xef\xbb\xbf \n<HTML>", "is a web page"),
                                 ("x.gguf", b'{"error": "gone"}', "is JSON; expected a GGUF file"),
                                 ("x.gguf", pointer, "is a pointer of Git LFS"),
                                 ("x.gguf", b"", "is empty"),
                                 ("x.gguf", b"PK\x03\x04" + bytes(900), "is a zip archive"),
                                 ("x.gguf", bytes(900), "does not begin as one"),
                                 ("x.safetensors", noise(900, 1), "is a GGUF file; expected a safetensors file"),
                                 ("tokenizer.json", page, "is a web page"),
                                 ("tokenizer.model", page, "is a web page"),
                                 ("a/x", page, "is a web page"), ("a/x", b"no such file", "is plain text"),
                                 ("x.bin", b"PK\x03\x04" + bytes(900), "is a zip archive")):
            self.hub.plain[name] = body
            for knows_length in (True, False):
                self.hub.is_chunked = not knows_length
                self.frit("pull", self.hub.url + "/plain/" + name, code=1, says=says)
                self.assertEqual(self.leftovers(), [], name)
                self.assertEqual(self.parts(), [], name)
                self.assertEqual(self.frit("list"), "")
        self.hub.is_chunked = True
        for name, body in (("x.gguf", self.data), ("a/x", self.data), ("x.safetensors", weights(900, 1)),
                           ("tokenizer.json", b'{"version": "1.0"}'), ("x.tiktoken", b"IQ== 0\nIg== 1\n")):
            self.hub.plain[name] = body
            self.assertEqual(Path(self.pull(self.hub.url + "/plain/" + name)).read_bytes(), body)

    def test_a_page_in_a_repository_is_not_kept(self):
        page = b"<html>" + bytes(9000)
        self.hub.add("org/page", {"x.gguf": page})
        self.frit("pull", "hf:org/page", code=1, says="x.gguf: what the server sends is a web page")
        self.hub.add_ollama("library/page", "latest", page)
        self.frit("pull", "ollama:page", code=1, says="is a web page")
        self.assertEqual(self.frit("list"), "")

    def test_a_download_without_end_leaves_room_on_the_disk(self):
        cache = Path(self.home, "disk")
        cache.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m", "none", cache], capture_output=True).returncode != 0:
            self.skipTest("no disk can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", cache], check=True)
        self.env["FRIT_CACHE"] = str(cache)
        self.hub.plain["x.gguf"], self.hub.is_endless = self.data, True
        self.frit("pull", self.hub.url + "/plain/x.gguf", code=1, says="does not say how many follow")
        self.assertEqual(self.parts(), [])
        self.assertLess(self.hub.sent, 110 << 20)

    def test_other_bytes_than_those_that_were_asked_for_are_not_taken(self):
        self.hub.range_shift = 7
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="the server sends bytes from 7 on, expected 0")
        self.assertEqual(self.leftovers(), [])
        self.hub.range_shift = 0
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)

    def test_a_server_without_tls_is_not_spoken_to(self):
        self.env["HF_ENDPOINT"] = self.hub.url.replace("http:", "https:")
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="frit: 127.0.0.1:")
        self.assertEqual(self.leftovers(), [])

    def test_a_small_file_is_compared_with_its_name_in_git(self):
        files = {"config.json": b'{"a": 1}', "empty.json": b"", "model.safetensors": weights(9000, 2)}
        repo = self.hub.add("org/w", files)
        path = self.pull("hf:org/w")
        self.assertEqual({p.name: p.read_bytes() for p in Path(path).iterdir()}, files)
        shutil.rmtree(self.cache)
        repo.files["config.json"].sent = b'{"a": 2}'   # the wrong file has the length of the right one
        self.frit("pull", "hf:org/w", code=1, says="config.json: its SHA-1 in git is " + git_hash(b'{"a": 2}'))
        self.assertEqual([p for p in self.leftovers() if p.read_bytes() == b'{"a": 2}'], [])
        self.assertEqual(self.frit("list"), "")

    def test_a_part_that_was_damaged_is_found_out(self):
        self.kill_at(1_200_000)
        part = self.parts()[0]
        with open(part, "r+b") as file:
            file.seek(100)
            file.write(b"damage")
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="its SHA-256 is")
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)

    def test_a_lost_connection_is_taken_up_again(self):
        self.hub.cut_after = 800_000
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)
        self.assertLess(self.hub.sent, 2 * len(self.data))

    def test_eight_processes_fetch_once(self):
        self.hub.hold_after = 65536   # the server waits until all have connected
        processes = [self.start("pull", "hf:org/m:Q4_0") for _ in range(8)]
        while len(self.hub.asked("/api/")) < 8 and all(process.poll() is None for process in processes):
            time.sleep(0.001)
        self.hub.released.set()
        outs = [process.communicate(timeout=120) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * 8, outs)
        self.assertEqual(len({out for out, _ in outs}), 1)
        self.assertEqual(Path(outs[0][0].strip()).read_bytes(), self.data)
        self.assertEqual(self.hub.sent, len(self.data))

    def test_a_full_disk_keeps_the_part(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="larger than allowed", preexec_fn=limit)
        self.assertEqual(self.leftovers(), [])
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)

    def test_a_disk_that_fills_meanwhile_keeps_the_part(self):
        cache = Path(self.home, "disk")
        cache.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", cache], capture_output=True).returncode != 0:
            self.skipTest("no disk can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", cache], check=True)
        self.env["HF_HOME"] = str(cache)
        self.hub.hold_after = 600_000
        process = self.start("pull", "hf:org/m:Q4_0")
        while self.hub.sent < self.hub.hold_after and process.poll() is None:
            time.sleep(0.001)
        filler = cache / "filler"
        with self.assertRaises(OSError), open(filler, "wb", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass
        self.hub.hold_after = None
        self.hub.released.set()
        err = " ".join(process.communicate(timeout=120)[1].split())
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("the disk is full; what is there is kept, and the same command continues it", err)
        filler.unlink()
        self.hub.sent = 0
        self.assertEqual(Path(self.pull("hf:org/m:Q4_0")).read_bytes(), self.data)
        self.assertLess(self.hub.sent, len(self.data))

    def test_room_is_looked_at_before(self):
        self.repo.files["m-Q4_0.gguf"].data = _Sized(1 << 49)
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="needs 524288.00 GiB more")
        self.assertEqual(self.hub.asked("/resolve/"), [])


class Refused(Case):
    def setUp(self):
        super().setUp()
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data}, gated="auto", license_name="gemma")

    def test_what_the_servers_say_is_explained(self):
        for code, headers, says in (
                (401, {}, "asks for a token (401); the name may be wrong"),
                (403, {}, "its terms may have to be accepted"),
                (404, {}, "has no such thing (404); is the name right"),
                (429, {"Retry_After": "3000"}, "too many requests (429); try again in 3000 s; with a token (HF_TOKEN)"),
                (503, {}, "answers with status 503; it has a fault")):
            self.hub.faults = [("/api/", code, headers)]
            self.frit("pull", "hf:org/m", code=3 if code == 404 else 1, says=says)
        self.hub.faults = [("/resolve/", 429, {"Retry_After": "3000"})]
        self.frit("pull", "hf:org/m", code=1, says="(429); try again in 3000 s")

    def test_what_may_pass_is_tried_again(self):
        self.hub.faults = [("/api/", None, {}), ("/resolve/", None, {}), ("/resolve/", 429, {"Retry_After": "0"}),
                           ("/resolve/", 503, {}), ("/storage/", 0, {}), ("/storage/", 403, {})]
        self.assertEqual(Path(self.pull("hf:org/m")).read_bytes(), self.data)

    def test_names_of_nothing(self):
        self.frit("pull", "hf:org/none", code=3, says="has no such thing (404)")
        self.frit("pull", "hf:org/m:Q9", code=3, says="has no 'Q9'; it has Q4_0")
        self.frit("pull", "hf:../m", code=2, says="is not the name of a repository")
        self.frit("pull", "ollama:none", code=3, says="(404)")
        self.frit("pull", "lmstudio:a/b", code=2, says="fetched by that program")
        self.frit("rm", "hf:org/m", code=3, says="is not in the cache")

    def test_a_token_goes_to_its_server_only(self):
        self.hub.token = "hf_secret"
        self.frit("pull", "hf:org/m", code=1, says="asks for a token (401)")
        self.env["HF_TOKEN"] = "hf_secret"
        self.pull("hf:org/m", says="license: gemma (its terms must be accepted on its page)")
        stored = self.hub.asked("^/storage/")
        self.assertTrue(stored)
        for _, host, path, headers in stored:
            self.assertTrue(host.startswith("localhost:"))
            self.assertNotIn("Authorization", headers)
        self.assertTrue(all(r[3].get("Authorization") == "Bearer hf_secret" for r in self.hub.asked("/resolve/")[1:]))

    def test_a_token_may_lie_in_its_file(self):
        self.hub.token = "hf_secret"
        path = Path(self.home, ".cache/huggingface/token")
        path.parent.mkdir(parents=True)
        path.write_text("hf_secret\n")
        self.pull("hf:org/m")

    def test_redirects_without_end(self):
        self.hub.faults = [("/resolve/", 302, {"Location": self.hub.url + "/org/m/resolve/main/m-Q4_0.gguf"})] * 20
        self.frit("pull", "hf:org/m", code=1, says="redirects more than 8 times")
        self.hub.faults = [("/resolve/", 302, {"Location": "file:///etc/passwd"})]
        self.frit("pull", "hf:org/m", code=1, says="it is not followed")

    def test_a_proxy_is_asked(self):
        self.env.update(http_proxy=self.hub.url, HF_ENDPOINT="http://hub.example")
        self.hub.storage_url = "http://storage.example"
        self.assertEqual(Path(self.pull("hf:org/m")).read_bytes(), self.data)
        self.assertEqual({host for _, host, _, _ in self.hub.requests}, {"hub.example", "storage.example"})

    def test_offline(self):
        self.env["HF_HUB_OFFLINE"] = "1"
        self.frit("pull", "hf:org/m", code=1, says="HF_HUB_OFFLINE forbids to fetch it")
        del self.env["HF_HUB_OFFLINE"]
        self.env["HF_ENDPOINT"] = "http://127.0.0.1:9"
        self.frit("run", "hf:org/m", "-p", "x", code=1, says="127.0.0.1:9 cannot be reached")

    def test_lists_that_lie(self):
        for answer, says in (({"sha": "../../x", "siblings": []}, "has no commit"),
                             ({"sha": "0" * 40, "siblings": [{"rfilename": "../x.gguf", "size": 1}]}, "outside of the cache"),
                             ({"sha": "0" * 40, "siblings": [{"rfilename": "\u202efug.gguf", "size": 1}]},
                              "names a file '\ufffdfug.gguf', which may lie outside of the cache or has control characters"),
                             ({"sha": "0" * 40, "siblings": [{"rfilename": "a\u009b31m.gguf", "size": 1}]}, "has control characters"),
                             ({"sha": "0" * 40, "siblings": [{"rfilename": "x.gguf", "size": -1}]}, "not a number of bytes")):
            self.hub.server.RequestHandlerClass = _answering(json.dumps(answer).encode())
            self.frit("pull", "hf:org/m", code=1, says=says)
        self.assertEqual(self.leftovers(), [])


def _answering(body):
    from replay import Handler

    class Always(Handler):
        def do_GET(self):
            self.answer(200, body)
    return Always


class Ollama(Case):
    def test_a_model_of_the_registry(self):
        self.hub.add_ollama("library/tale", "latest", FABLE.read_bytes(), license=b"MIT License\nmore", params=b"{}")
        self.hub.add_ollama("library/tale", "other", noise(9000, 1), license=b"MIT License\nmore")
        path = self.pull("ollama:tale", says="license: MIT License")
        self.assertEqual(Path(path).read_bytes(), FABLE.read_bytes())
        store = Path(self.home, ".ollama/models")
        self.assertEqual(Path(path), store / "blobs" / ("sha256-" + digest(FABLE.read_bytes())))
        manifest = store / "manifests/registry.ollama.ai/library/tale/latest"
        self.assertEqual(manifest.read_bytes(), self.hub.manifests["library/tale", "latest"])
        self.assertIn("fable-30m", self.frit("info", "ollama:tale"))
        self.pull("ollama:tale:other")
        self.frit("rm", "ollama:tale:latest")
        self.assertFalse(Path(path).exists())
        kept = {p.name for p in (store / "blobs").iterdir()}
        self.assertIn("sha256-" + digest(b"MIT License\nmore"), kept)   # the other repository's file is kept too
        self.assertEqual(self.frit("list").count("ollama:"), 1)

    def test_a_wrong_blob_is_refused(self):
        self.hub.add_ollama("library/tale", "latest", self.data)
        self.hub.replaced[digest(self.data)] = noise(len(self.data), 5)
        self.frit("pull", "ollama:tale", code=1, says="its SHA-256 is")
        self.assertEqual(self.frit("list"), "")

    def test_a_store_of_ollama_and_folders_of_lm_studio_are_found_in_place(self):
        store = Path(self.home, "elsewhere")
        blob = store / "blobs" / ("sha256-" + digest(FABLE.read_bytes()))
        blob.parent.mkdir(parents=True)
        shutil.copy(FABLE, blob)
        self.hub.add_ollama("me/tale", "8b", FABLE.read_bytes())
        manifest = store / "manifests/registry.ollama.ai/me/tale/8b"
        manifest.parent.mkdir(parents=True)
        manifest.write_bytes(self.hub.manifests["me/tale", "8b"])
        studio = Path(self.home, ".lmstudio/models/org/tale-GGUF")
        studio.mkdir(parents=True)
        shutil.copy(FABLE, studio / "tale-Q4_K_M.gguf")
        self.env.update(OLLAMA_MODELS=str(store), HF_HUB_OFFLINE="1")
        listed = json.loads(self.frit("list", "--json"))
        self.assertEqual([m["name"] for m in listed], ["ollama:me/tale:8b", "lmstudio:org/tale-GGUF:tale-Q4_K_M.gguf"])
        for name in [m["name"] for m in listed] + ["hf:org/tale-GGUF:Q4_K_M", "lmstudio:org/tale-GGUF"]:
            self.assertIn("fable-30m", self.frit("info", name))
        self.frit("rm", "lmstudio:org/tale-GGUF", code=2, says="removed by that program")
        self.assertEqual(self.hub.requests, [])


class Show(Case):
    def test_what_there_is_is_shown(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data, "m-Q8_0.gguf": noise(9000, 1)})
        self.pull("hf:org/m:Q8_0")
        shown = json.loads(self.frit("show", "hf:org/m", "--json"))
        self.assertEqual([(v["quantization"], v["here"]) for v in shown["variants"]], [("Q4_0", False), ("Q8_0", True)])
        self.assertEqual(shown["license"], "apache-2.0")
        self.assertIn("Q4_0 of 2 quantizations", shown["choice"])
        self.env["HF_ENDPOINT"] = "http://127.0.0.1:9"
        self.assertIn("cannot be reached", self.frit("show", "hf:org/m:Q8_0"))

    def test_one_quantization_goes_and_the_other_stays(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data, "m-Q8_0.gguf": noise(9000, 1)})
        self.pull("hf:org/m:Q4_0")
        path = self.pull("hf:org/m:Q8_0")
        self.frit("rm", "hf:org/m:Q4_0", says="2.9 MiB are free again")
        self.assertTrue(Path(path).exists())
        self.frit("rm", "hf:org/m:Q8_0")
        self.assertEqual(self.leftovers(), [])

    def test_where_there_are_no_links_a_file_has_two_names(self):
        self.hub.add("org/m", {"m-Q4_0.gguf": self.data, "m-Q8_0.gguf": noise(9000, 1)})
        paths = [Path(self.pull("hf:org/m:Q4_0")), Path(self.pull("hf:org/m:Q8_0"))]
        for path in paths:
            blob = path.resolve()
            path.unlink()
            os.link(blob, path)
        self.frit("rm", "hf:org/m:Q4_0", says="2.9 MiB are free again")
        self.assertEqual([p.name for p in (self.cache / "models--org--m/blobs").iterdir()], [digest(noise(9000, 1))])
        n = self.hub.sent
        self.assertEqual(self.pull("hf:org/m:Q8_0"), str(paths[1]))
        self.assertEqual(self.hub.sent, n)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: pull_test.py FRIT [--kills N] [TEST...]")
    FRIT = os.path.realpath(sys.argv.pop(1))
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    signal.signal(signal.SIGINT, signal.default_int_handler)   # a background job ignores SIGINT
    unittest.main()
