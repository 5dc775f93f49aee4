# SPDX-License-Identifier: MIT
"""Runs packages from npm with `frit serve`: starts the servers for clients_*.mjs (tests/server/clients/clients.sh)."""
import glob
import os
import shutil
import subprocess
import sys
import unittest

from clients_server import KEY, Server, ToolServer

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = sys.prefix   # the virtual environment also has the packages from npm


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tales, cls.tools = Server(), ToolServer()

    @classmethod
    def tearDownClass(cls):
        cls.tales.stop()
        cls.tools.stop()

    def test_each_file(self):
        for path in sorted(glob.glob(os.path.join(HERE, "clients_*.mjs"))):
            with self.subTest(file=os.path.basename(path)):
                copy = shutil.copy(path, PACKAGES)   # node looks for packages beside the file
                environment = {**os.environ, "FRIT_TALES": self.tales.url, "FRIT_TOOLS": self.tools.url, "FRIT_KEY": KEY}
                run = subprocess.run(["node", "--test-timeout=120000", "--test", copy], env=environment, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertEqual(run.returncode, 0, run.stdout[-4000:])


if __name__ == "__main__":
    unittest.main(verbosity=2)
