# SPDX-License-Identifier: MIT
"""/openapi.json of a running `frit serve`: valid, and no request that is made of it is answered with a server error
(tests/server/clients.sh)."""
import json
import os
import subprocess
import sys
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

    def test_requests_made_of_it_meet_no_server_error(self):
        program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
        command = [program, "run", server.url + "/openapi.json", "-H", f"Authorization: Bearer {KEY}", "--checks",
                   "not_a_server_error", "--phases", "coverage,fuzzing", "--max-examples", "10", "--request-timeout",
                   "60"]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout[-3000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
