#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests `frit pull` of a build for Windows, with wine and a replayed hub. The build has libcurl inside and uses
Windows' own TLS. The test is skipped without wine. tests/packaging/check.py runs it with the program of the archive.

    tests/hub/wine_test.py frit.exe FOLDER [TEST...]      FOLDER: of wine's own files
"""
import os
import shutil
import signal
import ssl
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import pull_test  # noqa: E402
from replay import digest, noise  # noqa: E402

PROGRAM, PREFIX = "", ""


def foreign(path):
    return "Z:" + str(path).replace("/", "\\")


class OnWindows(pull_test.Stoppable):
    def setUp(self):
        super().setUp()
        # Wine has a USERPROFILE of its own, so every folder is given by name.
        self.env.update(WINEPREFIX=PREFIX, WINEDEBUG="-all", WINEDLLOVERRIDES="mscoree,mshtml=", DISPLAY="",
                        HF_HOME=foreign(self.home) + "\\hf", OLLAMA_MODELS=foreign(self.home) + "\\ollama",
                        FRIT_CACHE=foreign(self.home) + "\\frit", FRIT_NAMES=foreign(self.home) + "\\names.conf")

    def start(self, *arguments, **more):
        return subprocess.Popen(["wine", PROGRAM, *arguments], env=self.env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def pull(self, *arguments, **more):
        path = super().pull(*arguments, **more)
        self.assertRegex(path, "^Z:")
        return Path(path[2:].replace("\\", "/"))

    def test_a_model_comes_by_name_and_answers(self):
        self.hub.add("org/tale", {"fable-Q4_K_M.gguf": pull_test.FABLE.read_bytes()}, license_name="mit")
        out = self.frit("run", "-q", "hf:org/tale", "-p", "Tell me the tale of Rapunzel.", "-n", "5", "--temp", "0")
        self.assertIn("There were once", out)
        self.assertIn("hf:org/tale:Q4_K_M", self.frit("list"))
        n = len(self.hub.requests)
        self.frit("info", "hf:org/tale")
        self.assertEqual(len(self.hub.requests), n)   # no request for files that are on this machine

    def test_other_sources(self):
        self.hub.add_ollama("library/m", "latest", self.data)
        self.assertEqual(self.pull("ollama:m").read_bytes(), self.data)
        self.hub.plain["m.gguf"] = self.data
        url = self.hub.url + "/plain/m.gguf"
        self.assertEqual(self.pull(url, "--sha256", digest(self.data)).read_bytes(), self.data)

    def test_killed_anywhere_it_continues(self):
        for at in (100_000, 900_000, 1_500_000):
            shutil.rmtree(Path(self.home, "hf"), ignore_errors=True)
            self.kill_at(at, signal.SIGKILL)
            self.assertEqual([p for p in self.leftovers() if p.read_bytes() == self.data], [])
            self.hub.sent = 0
            self.assertEqual(self.pull("hf:org/m:Q4_0").read_bytes(), self.data, f"killed at {at}")
            self.assertEqual(self.parts(), [])

    def test_a_wrong_hash_leaves_nothing(self):
        self.hub.replaced[digest(self.data)] = noise(len(self.data), 99)
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="its SHA-256 is")
        self.assertEqual((self.leftovers(), self.parts()), ([], []))

    def test_a_lost_connection_is_taken_up_again(self):
        self.hub.cut_after = 800_000
        self.assertEqual(self.pull("hf:org/m:Q4_0").read_bytes(), self.data)
        self.assertLess(self.hub.sent, 2 * len(self.data))

    def test_four_processes_fetch_once(self):
        self.hub.hold_after = 65536   # the server waits until all have connected
        processes = [self.start("pull", "hf:org/m:Q4_0") for _ in range(4)]
        while len(self.hub.asked("/api/")) < 4 and all(process.poll() is None for process in processes):
            pass
        self.hub.released.set()
        outs = [process.communicate(timeout=120) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * 4, outs)
        self.assertEqual(self.hub.sent, len(self.data))

    def test_what_servers_say_is_explained(self):
        self.frit("pull", "hf:org/none", code=3, says="has no such thing (404)")
        self.hub.token = "hf_secret"
        self.frit("pull", "hf:org/m", code=1, says="asks for a token (401)")
        self.env["HF_TOKEN"] = "hf_secret"
        self.pull("hf:org/m")
        self.assertFalse([r for r in self.hub.asked("^/storage/") if "Authorization" in r[3]])
        self.env["HF_ENDPOINT"] = "http://127.0.0.1:9"
        self.frit("pull", "hf:org/other", code=1, says="127.0.0.1:9 cannot be reached")

    def encrypt(self):
        """Lets the hub use TLS, with a certificate that only CURL_CA_BUNDLE names."""
        key, certificate = Path(self.home, "key.pem"), Path(self.home, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.hub.server.socket = context.wrap_socket(self.hub.server.socket, server_side=True, do_handshake_on_connect=False)
        self.hub.url, self.hub.storage_url = [url.replace("http:", "https:") for url in (self.hub.url, self.hub.storage_url)]
        self.env["HF_ENDPOINT"] = self.hub.storage_url
        return certificate

    def test_certificates_are_compared(self):
        certificate = self.encrypt()
        self.frit("pull", "hf:org/m:Q4_0", code=1, says="frit: localhost:")
        self.assertFalse(list(Path(self.home, "hf").rglob("*.gguf")))
        self.env["CURL_CA_BUNDLE"] = foreign(certificate)
        self.assertEqual(self.pull("hf:org/m:Q4_0").read_bytes(), self.data)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: wine_test.py FRIT.EXE FOLDER [TEST...]")
    if not shutil.which("wine"):
        print("skipped: there is no wine")
        sys.exit(77)
    PROGRAM, PREFIX = os.path.realpath(sys.argv.pop(1)), os.path.realpath(sys.argv.pop(1))
    unittest.main()
