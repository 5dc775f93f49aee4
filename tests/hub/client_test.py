#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the cache with that of the unmodified package huggingface-hub: each finds the files that the other has
fetched from a replayed hub. The script runs itself with the Python of build/clients/hub, which `make test-pull` makes,
and is skipped without it.

    tests/hub/client_test.py build/release/frit
"""
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
PYTHON = ROOT / "build/clients/hub/bin/python"

if __name__ == "__main__" and Path(sys.prefix) != PYTHON.parents[1]:
    if not PYTHON.exists():
        print("skipped: huggingface-hub is not in build/clients/hub; 'make test-pull' installs it")
        sys.exit(77)
    os.execv(PYTHON, [str(PYTHON), *sys.argv])

import pull_test  # noqa: E402
from replay import digest, noise  # noqa: E402

FILES = {"m-Q4_0.gguf": noise(700_000, 1), "m-Q8_0.gguf": noise(9000, 2), "config.json": b"{}", "sub/a b.txt": b"x"}

CLIENT = """
import sys
from huggingface_hub import hf_hub_download, snapshot_download, scan_cache_dir
{}
"""


class Client(pull_test.Case):
    def setUp(self):
        super().setUp()
        self.env.update(HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_UPDATE_CHECK="1")
        self.hub.add("org/m", FILES)

    def client(self, line):
        process = subprocess.run([sys.executable, "-c", CLIENT.format(line)], env=self.env, capture_output=True, text=True,
                                 timeout=120)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stdout.strip()

    def tree(self):
        """Returns every file of the repository in the cache and the targets of links, without clients' temporary
        files."""
        root = self.cache / "models--org--m"
        found = {}
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            if path.is_symlink():
                found[name] = "-> " + os.readlink(path)
            elif path.is_file() and name.startswith(("blobs", "refs", "snapshots")):
                found[name] = digest(path.read_bytes())
        return found

    def test_what_frit_fetched_the_client_finds(self):
        path = self.pull("hf:org/m:Q4_0")
        self.hub.sent = 0
        find = "print(hf_hub_download('org/m', 'm-Q4_0.gguf'{}))"
        self.assertEqual(self.client(find.format(", local_files_only=True")), path)
        self.assertEqual(self.client(find.format("")), path)
        self.assertEqual(self.hub.sent, 0)   # no request was sent, although the client may send some
        scanned = self.client("i = scan_cache_dir(); r = list(i.repos)[0]\n"
                              "print(len(i.warnings), r.repo_id, r.size_on_disk, [list(v.refs) for v in r.revisions])")
        self.assertEqual(scanned, "0 org/m 700000 [['main']]")

    def test_what_the_client_fetched_frit_finds(self):
        path = self.client("print(hf_hub_download('org/m', 'm-Q4_0.gguf'))")
        n = len(self.hub.requests)
        self.assertIn("hf:org/m:Q4_0", self.frit("list"))
        self.assertIn(path, self.frit("list", "--paths"))
        self.frit("info", "hf:org/m:Q4_0", code=3, says="m-Q4_0.gguf")   # the file is found, but its bytes are noise
        self.assertEqual(len(self.hub.requests), n)
        self.hub.sent = 0
        self.assertEqual(self.pull("hf:org/m:Q4_0"), path)
        self.assertEqual(self.hub.sent, 0)

    def test_both_lay_the_cache_out_alike(self):
        self.pull("hf:org/m:Q4_0")
        self.pull("hf:org/m:config.json")
        self.pull("hf:org/m:sub/a b.txt")
        of_frit = self.tree()
        self.frit("rm", "hf:org/m")
        for name in ("m-Q4_0.gguf", "config.json", "sub/a b.txt"):
            self.client(f"hf_hub_download('org/m', '{name}')")
        self.assertEqual(of_frit, self.tree())
        self.assertGreaterEqual(len(of_frit), 7)

    def test_what_the_client_fetched_whole_frit_removes_in_part(self):
        self.client("snapshot_download('org/m')")
        self.frit("rm", "hf:org/m:Q4_0")
        self.assertNotIn("Q4_0", self.frit("list"))
        self.assertEqual(self.client("print(open(hf_hub_download('org/m', 'config.json', local_files_only=True)).read())"),
                         "{}")
        self.pull("hf:org/m:Q4_0")
        self.assertEqual(self.client("print(len(scan_cache_dir().warnings))"), "0")

    def test_without_links_the_client_keeps_copies_which_frit_finds(self):
        path = self.client("import huggingface_hub.file_download as f; f.are_symlinks_supported = lambda *_: False\n"
                           "print(hf_hub_download('org/m', 'm-Q4_0.gguf'))")
        self.assertFalse(os.path.islink(path))
        self.hub.sent = 0
        self.assertIn("hf:org/m:Q4_0", self.frit("list"))
        self.assertEqual(self.pull("hf:org/m:Q4_0"), path)
        self.assertEqual(self.hub.sent, 0)
        self.frit("rm", "hf:org/m:Q4_0", says="free again")
        self.assertEqual(self.leftovers(), [])

    def test_a_client_waits_for_the_lock_of_frit(self):
        self.hub.pause, self.hub.block = 0.02, 16384
        process = self.start("pull", "hf:org/m:Q4_0")
        while self.hub.sent == 0 and process.poll() is None:
            pass
        self.client("hf_hub_download('org/m', 'm-Q4_0.gguf')")
        self.assertEqual(process.wait(60), 0)
        process.communicate()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: client_test.py FRIT [TEST...]")
    pull_test.FRIT = os.path.realpath(sys.argv.pop(1))
    unittest.main()
