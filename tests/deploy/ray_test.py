# SPDX-License-Identifier: MIT
"""Tests deploy/ray under Ray Serve from PyPI (tests/deploy/ray.sh): answers are equal to the server's, streams arrive
token by token, a client that leaves ends its request, and the replica's server ends with the replica.

    python3 tests/deploy/ray_test.py build/release/frit
"""
import json
import os
import socket
import subprocess
import sys
import time
import unittest
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FRIT = os.path.realpath(sys.argv.pop(1))
APP = os.path.join(ROOT, "deploy", "ray")
sys.path.insert(0, APP)

BODY = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 12}


def servers():
    """Returns the process ids of the replica's servers."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as line:
                if line.read().split(b"\0")[:2] == [FRIT.encode(), b"serve"] and MARK in environ.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


MARK = b"FRIT_RAY_TEST=%d" % os.getpid()


class Replica(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import ray
        from ray import serve
        with socket.socket() as probe:   # finds a free port
            probe.bind(("127.0.0.1", 0))
            cls.port = probe.getsockname()[1]
        name, value = MARK.decode().split("=")
        options = {"FRIT": FRIT, "FRIT_PARALLEL": "2", "FRIT_CTX": "512", "FRIT_CONTEXT_SHIFT": "true", name: value}
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
                 runtime_env={"env_vars": {**options, "PYTHONPATH": APP}})
        serve.start(http_options={"host": "127.0.0.1", "port": cls.port})
        from serve_frit import app
        serve.run(app, name="frit")
        cls.serve, cls.ray = serve, ray

    @classmethod
    def tearDownClass(cls):
        cls.serve.shutdown()
        cls.ray.shutdown()

    def open(self, path, body=None):
        data = json.dumps(body).encode() if body else None
        return urllib.request.urlopen(
            urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, {"Content-Type": "application/json"}), timeout=120)

    def health(self):
        with self.open("/health") as reply:
            return json.load(reply)

    def test_an_answer_is_the_servers(self):
        with self.open("/v1/completions", BODY) as reply:
            self.assertEqual(reply.headers["Content-Type"], "application/json")
            through = json.load(reply)["choices"][0]["text"]
        alone = subprocess.run([FRIT, "run", "--raw", "-p", BODY["prompt"], "-n", "12", "--temp", "0"], capture_output=True,
                               stdin=subprocess.DEVNULL, text=True, check=True).stdout
        self.assertIn(through.strip(), alone)

    def test_a_stream_comes_in_pieces_and_a_client_that_leaves_ends_it(self):
        body = dict(BODY, stream=True, max_tokens=100000000, ignore_eos=True)
        reply = self.open("/v1/completions", body)
        self.assertEqual(reply.headers["Content-Type"], "text/event-stream")
        for _ in range(5):   # the answer has no end, so these lines arrive before it
            event = reply.readline()
            self.assertTrue(event.startswith(b"data: {"), event)
            reply.readline()
        self.assertEqual(self.health()["running"], 1)
        reply.close()
        for _ in range(600):
            if self.health()["running"] == 0:
                return
            time.sleep(0.05)
        self.fail("the request still runs 30 s after its client has left")

    def test_errors_pass_as_they_are(self):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            self.open("/v1/completions", {"temperature": -1, "prompt": "a"})
        self.assertEqual(raised.exception.code, 400)
        self.assertEqual(json.load(raised.exception)["error"]["param"], "temperature")

    def test_the_replica_ends_its_server(self):
        self.assertEqual(len(servers()), 1)
        self.serve.delete("frit")
        for _ in range(600):
            if not servers():
                break
            time.sleep(0.1)
        self.assertEqual(servers(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
