# SPDX-License-Identifier: MIT
"""Checks that /openapi.json of `frit serve` is valid, and that requests generated from it get the answers that it
describes (tests/server/clients/clients.sh)."""
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
        # The server checks more than the document says: a request may match the document and be refused for another
        # reason. Fields that change nothing are not checked.
        program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
        command = [program, "run", server.url + "/openapi.json", "-H", f"Authorization: Bearer {KEY}", "--checks", "all",
                   "--exclude-checks", "positive_data_acceptance,negative_data_rejection", "--phases",
                   "coverage,fuzzing", "--max-examples", "30", "--continue-on-failure", "--request-timeout", "120",
                   "--max-response-time", "100", "--no-color"]
        with tempfile.TemporaryDirectory() as folder:   # the program writes failing examples into its folder
            run = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        self.assertEqual(run.returncode, 0, run.stdout[-6000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
