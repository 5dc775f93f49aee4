# SPDX-License-Identifier: MIT
"""/openapi.json of a running `frit serve`: valid, and requests that are made of it are answered as it says
(tests/server/clients/clients.sh)."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from openapi_spec_validator import validate

from clients_server import KEY, ToolServer


def setUpModule():
    global server
    server = ToolServer()


def tearDownModule():
    server.stop()


class Document(unittest.TestCase):
    def test_it_is_openapi(self):
        request = urllib.request.Request(server.url + "/openapi.json", headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request) as reply:
            validate(json.load(reply))

    def test_requests_made_of_it_are_answered_as_it_says(self):
        # The document says less than the server checks: a request may obey it and be refused for another reason; and
        # fields that change nothing are not checked.
        program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
        command = [program, "run", server.url + "/openapi.json", "-H", f"Authorization: Bearer {KEY}", "--checks", "all",
                   "--exclude-checks", "positive_data_acceptance,negative_data_rejection", "--phases",
                   "coverage,fuzzing", "--max-examples", "30", "--continue-on-failure", "--request-timeout", "120",
                   "--max-response-time", "100", "--no-color"]
        with tempfile.TemporaryDirectory() as folder:   # it keeps what failed where it runs
            run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        self.assertEqual(run.returncode, 0, run.stdout[-6000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
