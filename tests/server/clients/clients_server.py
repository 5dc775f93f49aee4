# SPDX-License-Identifier: MIT
"""Starts `frit serve` for the tests of clients. The program's path is the first argument."""
import atexit
import os
import signal
import subprocess
import sys
import tempfile
import unittest

FRIT = sys.argv.pop(1)
KEY = "secret-key"


class Server:
    """A server with 8 sessions, a key and a free port."""

    def __init__(self, *arguments, key=KEY):
        command = [FRIT, "serve", "--port", "0", "--parallel", "8", "--max-queue", "2", "-c", "512", *arguments]
        command += ["--api-key", key] if key else []
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)   # a skipped test does not stop its server
        said = []
        for line in self.process.stderr:
            said.append(line)
            if "http://" in line:
                self.url = line.split(" at ")[1].split()[0]
                return
        raise RuntimeError(f"frit serve ended with {self.process.wait()}: {''.join(said)}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self.process.stderr.close()
        if code != 0:
            raise RuntimeError(f"frit serve ended with {code}")


class ToolServer(Server):
    """A server with the model of tests/support/tool_model.h, named scripted."""

    def __init__(self, *arguments, key=KEY):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, "scripted.gguf")
        maker = os.path.join(os.path.dirname(FRIT), "tests", "test_server_tools")
        if not os.path.exists(maker):
            raise unittest.SkipTest(f"{maker} is not built")
        subprocess.run([maker, "--model", path], check=True)
        super().__init__(path, "--temp", "0", *arguments, key=key)

    def stop(self):
        super().stop()
        self.folder.cleanup()
