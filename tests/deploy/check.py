# SPDX-License-Identifier: MIT
"""Checks deploy/ with the validators of each format, and compares its options, metrics, paths and times with those of
the built frit (tests/deploy/check.sh). Tests that need a missing program (systemd-analyze, promtool) are skipped with a
message."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import kubernetes_validate
import yaml

FRIT = sys.argv.pop(1)
DEPLOY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy")
KUBERNETES = ["1.28.0", "1.32.0", "1.37.0"]
KEY = "secret-key"


def path(*names):
    return os.path.join(DEPLOY, *names)


def text(*names):
    with open(path(*names)) as file:
        return file.read()


def setUpModule():
    global server, url
    server = subprocess.Popen([FRIT, "serve", "--port", "0", "-c", "512", "--api-key", KEY], stderr=subprocess.PIPE,
                              text=True)
    line = next(line for line in server.stderr if "http://" in line)
    url = line.split(" at ")[1].split()[0]


def tearDownModule():
    server.send_signal(signal.SIGTERM)
    server.wait(60)
    server.stderr.close()


def get(at, key=KEY, body=None):
    request = urllib.request.Request(url + at, body, {"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def run(test, program, *arguments, **options):
    if not shutil.which(program):
        test.skipTest(f"{program} is not installed")
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    test.assertEqual(done.returncode, 0, done.stdout)
    return done.stdout


def seconds(value):
    number, unit = re.fullmatch(r"(\d+)(m?s?|min)", str(value)).groups()
    return int(number) * (60 if unit.startswith("m") else 1)


def drain():
    """Returns the seconds for which the server finishes requests after SIGTERM by default."""
    about = subprocess.run([FRIT, "help", "serve", "--all"], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"--drain SECONDS .*?\((\d+)\)", about, re.S)[1])


class Images(unittest.TestCase):
    def test_compose_is_valid(self):
        program = os.path.join(os.path.dirname(sys.executable), "check-jsonschema")
        run(self, program, "--builtin-schema", "vendor.compose-spec", path("compose.yaml"))

    def test_it_stops_when_answers_are_over(self):
        service = yaml.safe_load(text("compose.yaml"))["services"]["frit"]
        self.assertGreater(seconds(service["stop_grace_period"]), drain())

    def test_the_health_check_of_compose_is_answered(self):
        command = yaml.safe_load(text("compose.yaml"))["services"]["frit"]["healthcheck"]["test"]
        port = url.rsplit(":", 1)[1]
        self.assertEqual(command[:3], ["CMD", "bash", "-c"])
        run(self, "bash", "-c", command[3].replace("8080", port))

    def test_each_stage_is_there(self):
        stages = re.findall(r"^FROM \S+ AS (\S+)", text("Containerfile"), re.M)
        service = yaml.safe_load(text("compose.yaml"))["services"]["frit"]
        self.assertIn(service["build"]["target"], stages)
        for used in re.findall(r"^(?:COPY --from=|FROM )([a-z]+)", text("Containerfile"), re.M):
            self.assertIn(used, stages)
        self.assertRegex(text("Containerfile"), r"(?m)^USER [1-9]")


class Options(unittest.TestCase):
    def test_variables_are_options(self):
        about = subprocess.run([FRIT, "help", "serve", "--all"], capture_output=True, text=True, check=True).stdout
        known = {name.upper().replace("-", "_") for name in re.findall(r"--([a-z][a-z0-9-]*)", about)}
        for names in (("Containerfile",), ("compose.yaml",), ("systemd", "frit.environment"), ("systemd", "gpu.conf"), ("systemd", "tls.conf"),
                      ("kubernetes", "frit.yaml")):
            for name in re.findall(r"\bFRIT_([A-Z_]+)", text(*names)):
                self.assertIn(name, known | {"MODELS"}, names)


class Systemd(unittest.TestCase):
    def test_units_are_valid_and_confined(self):
        with tempfile.TemporaryDirectory() as folder:
            units = [shutil.copy(path("systemd", name), folder) for name in sorted(os.listdir(path("systemd")))
                     if name.endswith((".service", ".socket"))]
            for unit in units:
                with open(unit) as file:
                    lines = file.read().replace("/usr/bin/frit", FRIT)
                with open(unit, "w") as file:
                    file.write(re.sub("^Documentation=.*\n", "", lines, flags=re.M))   # the manual is not installed here
            output = run(self, "systemd-analyze", "verify", *units)
            self.assertEqual(output.strip(), "")
            # The scale of exposure goes from 0, the best confinement, to 100.
            service = next(unit for unit in units if unit.endswith(".service"))
            run(self, "systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", service)

    def test_a_socket_is_taken_and_the_start_is_told(self):
        """Tests frit.socket and Type=notify with systemd's own program for socket activation."""
        if not shutil.which("systemd-socket-activate"):
            self.skipTest("systemd-socket-activate is not installed")
        with tempfile.TemporaryDirectory() as folder, socket.socket() as free, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notes:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
            free.close()
            notes.bind(os.path.join(folder, "notes"))
            notes.settimeout(60)
            activated = subprocess.Popen(["systemd-socket-activate", "-l", address, "-E", "NOTIFY_SOCKET", FRIT, "serve",
                                          "-c", "512"], env={**os.environ, "NOTIFY_SOCKET": notes.getsockname()},
                                         stderr=subprocess.PIPE, text=True)
            next(activated.stderr)   # "Listening on ..."
            with urllib.request.urlopen(f"http://{address}/readyz", timeout=60) as reply:   # starts the server
                self.assertEqual(reply.status, 200)
            self.assertIn(b"READY=1", notes.recv(4096))
            activated.send_signal(signal.SIGTERM)
            self.assertEqual(activated.wait(60), 0)
            activated.stderr.close()

    def test_it_stops_when_answers_are_over(self):
        self.assertGreater(seconds(re.search("TimeoutStopSec=(.*)", text("systemd", "frit.service"))[1]), drain())


class Kubernetes(unittest.TestCase):
    def test_manifests_are_valid(self):
        for manifest in yaml.safe_load_all(text("kubernetes", "frit.yaml")):
            for version in KUBERNETES:
                kubernetes_validate.validate(manifest, version, strict=True)

    def deployment(self):
        found = [m for m in yaml.safe_load_all(text("kubernetes", "frit.yaml")) if m["kind"] == "Deployment"]
        return found[0]["spec"]["template"]["spec"]

    def test_probes_are_answered_without_a_key(self):
        container = self.deployment()["containers"][0]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            self.assertEqual(get(container[probe]["httpGet"]["path"], key=None)[0], 200, probe)

    def test_it_stops_when_answers_are_over(self):
        pod = self.deployment()
        container = pod["containers"][0]
        given = int(container["args"][container["args"].index("--drain") + 1])
        before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        self.assertGreater(pod["terminationGracePeriodSeconds"], given + before)

    def test_the_patch_fits(self):
        patch = yaml.safe_load(text("kubernetes", "gpu.yaml"))
        names = [c["name"] for c in patch["spec"]["template"]["spec"]["containers"]]
        self.assertEqual(names, [c["name"] for c in self.deployment()["containers"]])


class Operations(unittest.TestCase):
    """Tests the messages at the server's start that docs/troubleshooting.md explains."""

    def refused(self, *arguments):
        done = subprocess.run([FRIT, "serve", "--port", "0", *arguments], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0, arguments)
        return done.stderr

    def test_sentences_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            empty, page, cut = (os.path.join(folder, name) for name in ("empty", "page", "cut.gguf"))
            with open(empty, "w"), open(page, "w") as html, open(cut, "wb") as model:
                html.write("<html> a b c d e f g h i j k l m n o p q r s </html>")
                with open(os.path.join(DEPLOY, "..", "models", "fable.gguf"), "rb") as whole:
                    model.write(whole.read(1 << 20))
            for arguments, sentence in (
                    (["--host", "0.0.0.0"], "lets the whole network use the model: set --api-key"),
                    (["--port", url.rsplit(":", 1)[1]], "Address already in use"),
                    (["--host", "nowhere.invalid"], "Name or service not known"),
                    (["--api-key-file", empty], "has no key"),
                    (["--api-key-file", page], "line 1: "),
                    ([page], "is not a GGUF file"),
                    ([cut], "it is truncated"),
                    (["-c", "100000000"], "does not fit into the memory of")):
                self.assertIn(sentence, self.refused(*arguments))


class Metrics(unittest.TestCase):
    def test_what_is_asked_for_exists(self):
        get("/v1/completions", body=b'{"prompt": "a", "max_tokens": 4}')
        there = set(re.findall(r"^([a-zA-Z0-9_:]+)[ {]", get("/metrics")[1], re.M)) | {"up"}
        board = json.loads(text("grafana", "frit.json"))
        asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        asked += [note["expr"] for note in board["annotations"]["list"] if "expr" in note]
        asked += [v["query"]["query"] for v in board["templating"]["list"] if v["type"] == "query"]
        self.assertGreater(len(asked), 20)
        rules = [rule for group in yaml.safe_load(text("prometheus", "alerts.yml"))["groups"] for rule in group["rules"]]
        asked += [rule["expr"] for rule in rules]
        for expression in asked:
            names = re.findall(r"\b((?:vllm:|frit_|process_)[a-z0-9_]+|up)\b", expression)
            self.assertTrue(names, expression)
            for name in names:
                self.assertIn(name, there, expression)

    def test_panels_do_not_overlap(self):
        taken = set()
        board = json.loads(text("grafana", "frit.json"))
        for panel in board["panels"]:
            at = panel["gridPos"]
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(at["x"] + at["w"], 24)
            taken |= cells
        ids = [panel["id"] for panel in board["panels"]]
        self.assertEqual(len(ids), len(set(ids)))

    def test_prometheus_reads_its_files(self):
        run(self, "promtool", "check", "rules", path("prometheus", "alerts.yml"))
        run(self, "promtool", "check", "config", "--syntax-only", path("prometheus", "prometheus.yml"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
