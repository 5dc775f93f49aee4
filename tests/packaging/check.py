# SPDX-License-Identifier: MIT
"""What make dist wrote: sums, archives that run here (by an emulator too), symbols, SBOMs, recipes, and CI's workflows
(tests/packaging/check.sh). A program that is not installed skips its test, and that is said."""
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

FOLDER = sys.argv.pop(1)
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TALE = "There once lived a man and his wife, who had long"
TELL = ["run", "-q", "--temp", "0", "-n", "12", "-p", "Tell me the tale of Rapunzel."]
# The oldest glibc that archives for Linux run with.
GLIBC = (2, 17)


def version():
    with open(os.path.join(ROOT, "include", "frit.h"), encoding="utf-8") as file:
        return ".".join(re.findall(r"#define FRIT_VERSION_[A-Z]+ (\d+)", file.read()))


def archives(part):
    return [name for name in sorted(os.listdir(FOLDER)) if name.startswith("frit-" + version()) and part in name
            and name.endswith((".tar.gz", ".zip"))]


def unpack(name, folder):
    path = os.path.join(FOLDER, name)
    if name.endswith(".zip"):
        with zipfile.ZipFile(path) as packed:
            packed.extractall(folder)
    else:
        with tarfile.open(path) as packed:
            packed.extractall(folder, filter="data")
    return os.path.join(folder, re.sub(r"\.(tar\.gz|zip)$", "", name))


def output(test, *command, **options):
    if not shutil.which(command[0]):
        test.skipTest(f"{command[0]} is not installed")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=600, **options)
    test.assertEqual(done.returncode, 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Sums(unittest.TestCase):
    def test_sums_are_those_of_the_files(self):
        with open(os.path.join(FOLDER, "SHA256SUMS"), encoding="utf-8") as file:
            rows = [line.split() for line in file]
        for digest, name in rows:
            with open(os.path.join(FOLDER, name), "rb") as content:
                self.assertEqual(hashlib.sha256(content.read()).hexdigest(), digest, name)
        self.assertLessEqual(set(archives("")), {name for _, name in rows})


class Archives(unittest.TestCase):
    """Each is unpacked elsewhere; its command finds the model beside itself."""

    def runs(self, part, *emulator):
        names = archives(part)
        if not names:
            self.skipTest(f"no archive for {part}")
        with tempfile.TemporaryDirectory() as folder:
            top = unpack(names[0], folder)
            command = os.path.join(top, "frit.exe" if "windows" in part else "bin/frit")
            told = output(self, *emulator, command, *TELL, env={**os.environ, "WINEDEBUG": "-all"})
            self.assertEqual(told.strip(), TALE)
            said = output(self, *emulator, command, "--version", env={**os.environ, "WINEDEBUG": "-all"})
            self.assertEqual(said.strip(), "frit " + version())

    def test_linux_x86_64(self):
        self.runs("linux-x86_64", *([] if platform.machine() == "x86_64" else ["qemu-x86_64"]))

    def test_linux_aarch64(self):
        libc = "/usr/aarch64-linux-gnu"
        if platform.machine() != "aarch64" and not os.path.exists(libc):
            self.skipTest(f"{libc} (libc6-arm64-cross) is not installed")
        self.runs("linux-aarch64", *([] if platform.machine() == "aarch64" else ["qemu-aarch64", "-L", libc]))

    def test_windows_x86_64(self):
        self.runs("windows-x86_64", "wine")

    def test_linux_wants_an_old_libc_only(self):
        for name in archives("linux-"):
            with tempfile.TemporaryDirectory() as folder:
                top = unpack(name, folder)
                libraries = [os.path.join(top, "lib", n) for n in os.listdir(os.path.join(top, "lib")) if ".so" in n]
                for path in [os.path.join(top, "bin", "frit"), *libraries]:
                    said = output(self, "readelf", "-VdW", path)
                    wanted = [tuple(map(int, n.split("."))) for n in re.findall(r"Name: GLIBC_([\d.]+)", said)]
                    self.assertTrue(wanted, path)
                    self.assertLessEqual(max(wanted), GLIBC, path)
                    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
                    self.assertFalse({n for n in needed if not re.match(r"(lib(c|m|dl|pthread|rt)\.so|ld-linux)", n)}, needed)

    def test_no_path_of_this_machine_is_inside(self):
        for name in archives("-" + version()):
            if name == f"frit-{version()}.tar.gz":
                continue
            with tempfile.TemporaryDirectory() as folder:
                for at, _, names in os.walk(unpack(name, folder)):
                    for file in names:
                        with open(os.path.join(at, file), "rb") as content:
                            self.assertNotIn(ROOT.encode(), content.read(), f"{name}: {file}")

    def test_licences_of_the_libraries_come_along(self):
        with open(os.path.join(ROOT, "packaging", "libraries.tsv"), encoding="utf-8") as file:
            rows = [line.split("\t") for line in file if not line.startswith("#")]
        for name in archives("-"):
            system = next((s for s in ("linux", "macos", "windows") if f"-{s}-" in name), None)
            if not system:
                continue
            with tempfile.TemporaryDirectory() as folder:
                unpack(name, folder)
                found = {file for _, _, files in os.walk(folder) for file in files}
                self.assertIn("LICENSE", found)
                for row in rows:
                    if system in row[5].split():
                        self.assertIn(row[0] + ".txt", found, name)

    def test_the_manual_and_completions_are_in_archives_for_unix(self):
        for name in archives("linux-") + archives("macos-"):
            with tarfile.open(os.path.join(FOLDER, name)) as packed:
                names = packed.getnames()
            for ending in ("man1/frit.1", "completions/frit", "_frit", "frit.fish", "include/frit.h", "frit.pc"):
                self.assertTrue([n for n in names if n.endswith(ending)], f"{name}: {ending}")


class Materials(unittest.TestCase):
    def test_each_archive_has_a_valid_sbom(self):
        validator = JsonStrictValidator(SchemaVersion.V1_5)
        for name in archives(""):
            with open(os.path.join(FOLDER, name + ".cdx.json"), encoding="utf-8") as file:
                text = file.read()
            self.assertIsNone(validator.validate_str(text), name)
            with open(os.path.join(FOLDER, name), "rb") as content:
                digest = hashlib.sha256(content.read()).hexdigest()
            self.assertEqual(json.loads(text)["metadata"]["component"]["hashes"][0]["content"], digest)


class Recipes(unittest.TestCase):
    def path(self, *names):
        path = os.path.join(FOLDER, "recipes", *names)
        if not os.path.exists(path):
            self.skipTest(f"no {'/'.join(names)}: its archive was not built")
        with open(path, encoding="utf-8") as file:
            self.assertNotRegex(file.read(), r"@[A-Z0-9_]+@")
        return path

    def digest(self, name):
        with open(os.path.join(FOLDER, name), "rb") as content:
            return hashlib.sha256(content.read()).hexdigest()

    def test_the_formula_is_ruby(self):
        path = self.path("homebrew", "frit.rb")
        with open(path, encoding="utf-8") as file:
            self.assertIn(self.digest(f"frit-{version()}.tar.gz"), file.read())
        self.assertIn("Syntax OK", output(self, "ruby", "-c", path))

    def test_pkgbuild_is_bash_and_srcinfo_says_the_same(self):
        path = self.path("aur", "PKGBUILD")
        output(self, "bash", "-n", path)
        said = output(self, "bash", "-c", '. "$1"; echo "$pkgver ${source[0]} ${sha256sums[0]}"; type build package', "-", path)
        self.assertIn(self.digest(f"frit-{version()}.tar.gz"), said)
        with open(self.path("aur", ".SRCINFO"), encoding="utf-8") as file:
            info = file.read()
        self.assertIn(f"pkgver = {version()}\n", info)
        self.assertIn(said.split()[1], info)
        self.assertIn(f"sha256sums = {said.split()[2]}\n", info)

    def test_winget_manifests_name_the_archive(self):
        """The fields that each of the three schemas (1.6.0) requires."""
        required = {
            "frit.frit.yaml": "DefaultLocale",
            "frit.frit.locale.en-US.yaml": "PackageLocale Publisher PackageName License ShortDescription",
            "frit.frit.installer.yaml": "Installers",
        }
        kinds = ["version", "defaultLocale", "installer"]
        for (name, fields), kind in zip(required.items(), kinds):
            with open(self.path("winget", name), encoding="utf-8") as file:
                manifest = yaml.load(file, yaml.BaseLoader)
            for field in [*fields.split(), "PackageIdentifier", "PackageVersion", "ManifestType", "ManifestVersion"]:
                self.assertTrue(manifest.get(field), f"{name}: {field}")
            self.assertEqual((manifest["ManifestType"], manifest["PackageVersion"]), (kind, version()))
        archive = f"frit-{version()}-windows-x86_64.zip"
        self.assertEqual(manifest["Installers"][0]["InstallerSha256"], self.digest(archive).upper())
        inside = manifest["NestedInstallerFiles"][0]["RelativeFilePath"].replace("\\", "/")
        with zipfile.ZipFile(os.path.join(FOLDER, archive)) as packed:
            self.assertIn(inside, packed.namelist())


class Workflows(unittest.TestCase):
    folder = os.path.join(ROOT, ".github", "workflows")

    def test_workflows_follow_the_schema(self):
        program = os.path.join(os.path.dirname(sys.executable), "check-jsonschema")
        output(self, program, "--builtin-schema", "vendor.github-workflows",
               *[os.path.join(self.folder, name) for name in os.listdir(self.folder)])

    def test_workflows_call_targets_of_the_makefile(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
            targets = re.findall(r"^([a-z][a-z0-9-]*):", file.read(), re.M)
        for name in os.listdir(self.folder):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                jobs = yaml.load(file, yaml.BaseLoader)["jobs"]
            for job, content in jobs.items():
                for step in content["steps"]:
                    for target in re.findall(r"^make (?:-C \S+ )?([a-z-]+)", step.get("run", ""), re.M):
                        self.assertIn(target, targets, f"{name}: {job}")


if __name__ == "__main__":
    unittest.main()
