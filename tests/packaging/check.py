# SPDX-License-Identifier: MIT
"""Checks the files of make dist: hashes, archives and wheels (which are run, if needed with an emulator), the symbols
that libraries export and need, SBOMs, recipes, and CI's workflows (tests/packaging/check.sh). A test that needs a
missing program is skipped with a message."""
import glob
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.request
import zipfile

import lief
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

FOLDER = sys.argv.pop(1)
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
from sbom import web_ui_table, table  # noqa: E402

PYTHONS = os.path.join(ROOT, "build", "check-packages", "python")
PLATFORMS = {row["name"]: row for row in table("platforms.tsv")}
HERE = f"{'macos' if sys.platform == 'darwin' else sys.platform}-{platform.machine()}"
# Commands that run programs of another system, and the Python that foreign_python unpacks for it. macOS has neither.
EMULATORS = {"linux-x86_64": ["qemu-x86_64"], "linux-aarch64": ["qemu-aarch64", "-L", f"{PYTHONS}/linux-aarch64"],
             "windows-x86_64": ["wine"]}
FOREIGN = {"linux-aarch64": "usr/bin/python3.[0-9]*", "windows-x86_64": "python.exe"}
TALE = "There were once a man and a woman who had long in"
TELL = ["run", "-q", "--temp", "0", "-n", "12", "-p", "Tell me the tale of Rapunzel."]
MODEL = os.path.join(ROOT, "models", "fable.gguf")
# The limits of what libraries and commands may need: the oldest glibc, the oldest macOS, and the system libraries.
GLIBC, MACOS = (2, 17), (11, 0)
NEEDED = {"linux": r"(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux-.*)", "macos": r"/usr/lib/libSystem\.B\.dylib",
          "windows": r"(?i)(kernel32|advapi32|shell32|bcrypt|crypt32|ws2_32|api-ms-win-crt-.*)\.dll"}
PROCESSORS = {"x86_64": {"X86_64", "AMD64"}, "aarch64": {"AARCH64", "ARM64"}}


def version():
    with open(os.path.join(ROOT, "include", "frit.h"), encoding="utf-8") as file:
        return ".".join(re.findall(r"#define FRIT_VERSION_[A-Z]+ (\d+)", file.read()))


def archives(part):
    return [name for name in sorted(os.listdir(FOLDER)) if name.startswith("frit-" + version()) and part in name
            and name.endswith((".tar.gz", ".zip"))]


def wheels(part=""):
    """Yields the wheels of a system as (name of the platform, path)."""
    return [(name, path) for name, row in PLATFORMS.items() if part in name
            for path in glob.glob(os.path.join(FOLDER, f"frit-{version()}-py3-none-{row['wheel']}.whl"))]


def unpack(name, folder):
    path = os.path.join(FOLDER, name)
    if name.endswith((".zip", ".whl")):
        with zipfile.ZipFile(path) as packed:
            packed.extractall(folder)
    else:
        with tarfile.open(path) as packed:
            packed.extractall(folder, filter="data")
    return os.path.join(folder, re.sub(r"\.(tar\.gz|zip)$", "", name))


def output(test, *command, **options):
    if not shutil.which(command[0]):
        test.skipTest(f"{command[0]} is not installed")
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          timeout=600, env={**os.environ, "WINEDEBUG": "-all"}, **options)
    test.assertEqual(done.returncode, 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def foreign_python(test, name):
    """Unpacks a Python of another system for an emulator."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "foreign_python")
    made = subprocess.run([script, name, os.path.join(PYTHONS, name)], stderr=subprocess.PIPE, text=True)
    if made.returncode:
        test.skipTest(made.stderr.strip() or f"no Python for {name}")
    return sorted(glob.glob(os.path.join(PYTHONS, name, FOREIGN[name])))[-1]


def emulator(test, name):
    """Returns the command that runs programs of the platform."""
    if name == HERE:
        return []
    if name not in EMULATORS:
        test.skipTest(f"nothing here runs programs for {name}")
    if name in FOREIGN and name.startswith("linux"):
        foreign_python(test, name)   # programs use the C library of this Python
    return EMULATORS[name]


class Sums(unittest.TestCase):
    def test_sums_are_those_of_the_files(self):
        with open(os.path.join(FOLDER, "SHA256SUMS"), encoding="utf-8") as file:
            rows = [line.split() for line in file]
        for digest, name in rows:
            with open(os.path.join(FOLDER, name), "rb") as content:
                self.assertEqual(hashlib.sha256(content.read()).hexdigest(), digest, name)
        made = archives("") + [os.path.basename(path) for _, path in wheels()]
        self.assertLessEqual(set(made), {name for _, name in rows})


class Archives(unittest.TestCase):
    """Unpacks each archive in another folder. The command must find the model beside itself."""

    def runs(self, name):
        found = archives("-" + name)
        if not found:
            self.skipTest(f"no archive for {name}")
        with tempfile.TemporaryDirectory() as folder:
            top = unpack(found[0], folder)
            command = os.path.join(top, "frit.exe" if name.startswith("windows") else "bin/frit")
            told = output(self, *emulator(self, name), command, *TELL)
            self.assertEqual(told.strip(), TALE)
            said = output(self, *emulator(self, name), command, "--version")
            self.assertEqual(said.strip(), "frit " + version())

    def test_linux_x86_64(self):
        self.runs("linux-x86_64")

    def test_linux_aarch64(self):
        self.runs("linux-aarch64")

    def test_windows_x86_64(self):
        self.runs("windows-x86_64")

    def test_the_one_for_windows_fetches_models(self):
        found = archives("-windows-x86_64")
        if not found or not shutil.which("wine"):
            self.skipTest("no archive for windows-x86_64, or no wine")
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(unpack(found[0], folder), "frit.exe")
            output(self, sys.executable, os.path.join(ROOT, "tests", "hub", "wine_test.py"), program,
                   os.path.join(ROOT, "build", "check-packages", "wine"))

    def test_macos(self):
        for name in PLATFORMS:
            if name.startswith("macos"):
                with self.subTest(name):
                    self.runs(name)

    def test_no_path_of_this_machine_is_inside(self):
        names = set(archives("")) - {f"frit-{version()}.tar.gz"}
        for name in [*names, *[os.path.basename(path) for _, path in wheels()]]:
            with tempfile.TemporaryDirectory() as folder:
                unpack(name, folder)
                for at, _, files in os.walk(folder):
                    for file in files:
                        with open(os.path.join(at, file), "rb") as content:
                            self.assertNotIn(ROOT.encode(), content.read(), f"{name}: {file}")

    def test_licences_of_the_libraries_come_along(self):
        made = [(name, archive) for name in PLATFORMS for archive in archives("-" + name)]
        for name, path in made + wheels():
            with tempfile.TemporaryDirectory() as folder:
                unpack(os.path.basename(path), folder)
                found = {file for _, _, files in os.walk(folder) for file in files}
            self.assertTrue(found & {"LICENSE", "frit.txt"}, path)
            for row in table("libraries.tsv"):
                if name.split("-")[0] in row["systems"].split():
                    self.assertIn(row["name"] + ".txt", found, path)

    def test_archives_for_unix_have_manual_and_completions_of_every_command(self):
        with open(os.path.join(ROOT, "apps", "frit", "commands.c"), encoding="utf-8") as file:
            commands = set(re.findall(r"&cli_command_(\w+),", file.read()))
        self.assertLess({"run", "pull", "list", "show", "rm", "kl"}, commands)
        for name in archives("linux-") + archives("macos-"):
            with tarfile.open(os.path.join(FOLDER, name)) as packed:
                names = packed.getnames()
                for ending in ("include/frit.h", "frit.pc"):
                    self.assertTrue([n for n in names if n.endswith(ending)], f"{name}: {ending}")
                for ending in ("man1/frit.1", "completions/frit", "_frit", "frit.fish"):
                    found = [n for n in names if n.endswith(ending)]
                    self.assertEqual(len(found), 1, f"{name}: {ending}")
                    words = set(re.findall(r"\w+", packed.extractfile(found[0]).read().decode()))
                    self.assertLessEqual(commands, words, f"{name}: {ending}")


def served(command, *arguments):
    """Starts a server of this command and returns the decompressed text at each of its paths: {path: text}."""
    server = subprocess.Popen([*command, "serve", "--port", "0", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    try:
        url = next(filter(None, (re.search(r"http://\S+", line) for line in server.stderr)))[0]
        texts = {}
        for path in ("/", "/assets/app.js", "/assets/worker.js", "/assets/licenses.txt"):
            request = urllib.request.Request(url.rstrip("/") + path, headers={"Accept-Encoding": "gzip"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                texts[path] = gzip.decompress(answer.read()).decode()
        return texts
    finally:
        server.terminate()
        server.communicate()


class Page(unittest.TestCase):
    """Every package with a server has the web UI, with the licences of its libraries."""

    def whole(self, texts):
        self.assertIn("assets/app.js", texts["/"])
        self.assertGreater(len(texts["/assets/app.js"]), 50_000)
        self.assertGreater(len(texts["/assets/worker.js"]), 100_000)
        for row in web_ui_table():
            self.assertIn(f"{row['name']} {row['version']}", texts["/assets/licenses.txt"])

    def test_the_source_tarball_has_it_built(self):
        name = f"frit-{version()}"
        with tarfile.open(os.path.join(FOLDER, name + ".tar.gz")) as packed:
            found = {os.path.basename(path) for path in packed.getnames() if path.startswith(f"{name}/apps/server/web_ui/built/")}
        self.assertLessEqual({"index.html.gz", "app.js.gz", "app.css.gz", "worker.js.gz", "licenses.txt", "libraries.tsv"}, found)

    def test_archives_serve_it(self):
        found = [(name, archive) for name in PLATFORMS if name.startswith("linux") for archive in archives("-" + name)]
        if not found:
            self.skipTest("no archive for Linux")
        for name, archive in found:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                top = unpack(archive, folder)
                self.assertTrue(os.path.exists(os.path.join(top, "share/doc/frit/web-ui-notices.txt")))
                self.whole(served([*emulator(self, name), os.path.join(top, "bin/frit")]))

    def test_wheels_serve_it(self):
        if not wheels("linux"):
            self.skipTest("no wheel for Linux")
        for name, path in wheels("linux"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                unpack(os.path.basename(path), folder)
                self.assertTrue(os.path.exists(os.path.join(folder, "frit/licences/web-ui.txt")))
                command = os.path.join(folder, "frit/bin/frit")
                os.chmod(command, 0o755)
                self.whole(served([*emulator(self, name), command], MODEL))

    def test_debian_packages_serve_it(self):
        found = glob.glob(os.path.join(FOLDER, f"frit_{version()}*.deb"))
        if not found or not shutil.which("dpkg-deb"):
            self.skipTest("no Debian package, or no dpkg-deb")
        with tempfile.TemporaryDirectory() as folder:
            output(self, "dpkg-deb", "-x", found[0], folder)
            self.assertTrue(glob.glob(os.path.join(folder, "usr/share/doc/frit/web-ui-notices.txt*")))
            self.whole(served([os.path.join(folder, "usr/bin/frit")]))


class Wheels(unittest.TestCase):
    """pip installs each wheel for its platform. If an emulator and a Python are available, the wheel generates text."""

    def installed(self, name, path, folder):
        """Installs a wheel with this machine's pip, which reads the wheel's tag."""
        tags = PLATFORMS[name]["wheel"].split(".")
        output(self, sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
               "--only-binary=:all:", "--platform", tags[0], "--target", folder, path)
        return os.path.join(folder, "frit")

    def test_pip_takes_each_for_its_platform(self):
        for name, path in wheels():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                top = self.installed(name, path, folder)
                self.assertEqual(len(glob.glob(os.path.join(top, "lib", "libfrit.*"))), 1)
                self.assertEqual(len(glob.glob(os.path.join(top, "bin", "frit*"))), 1)
                self.assertLessEqual(os.path.getsize(path), 5_000_000)

    def test_auditwheel_agrees(self):
        if not wheels("linux"):
            self.skipTest("no wheel for Linux")
        program = os.path.join(os.path.dirname(sys.executable), "auditwheel")
        for name, path in wheels("linux"):
            with self.subTest(name):
                said = " ".join(output(self, program, "show", path).split())
                self.assertIn(f'consistent with the following platform tag: "{PLATFORMS[name]["wheel"].split(".")[0]}"', said)

    def test_it_is_all_that_an_empty_environment_needs(self):
        found = wheels(HERE)
        if not found:
            self.skipTest("no wheel for this machine")
        with tempfile.TemporaryDirectory() as folder:
            output(self, sys.executable, "-m", "venv", folder)
            output(self, f"{folder}/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", found[0][1])
            self.assertEqual(output(self, f"{folder}/bin/frit", *TELL, "-m", MODEL).strip(), TALE)
            self.assertEqual(self.told(f"{folder}/bin/python", "-I"), TALE)

    def told(self, *python, folder=""):
        program = ("import sys; sys.path[:0] = filter(None, [sys.argv[2]]); import frit; "
                   "print(frit.load(sys.argv[1]).chat('Tell me the tale of Rapunzel.', max_tokens=12, temperature=0))")
        return output(self, *python, "-c", program, MODEL, folder).strip()

    def foreign(self, name):
        """Runs the wheel's package and command in a Python of its system."""
        if name == HERE:
            self.skipTest("this machine's own wheel is installed by another test")
        found = wheels(name)
        if not found:
            self.skipTest(f"no wheel for {name}")
        runs = emulator(self, name)
        python = foreign_python(self, name)
        with tempfile.TemporaryDirectory() as folder:
            top = self.installed(name, found[0][1], folder)
            self.assertEqual(self.told(*runs, python, folder=folder), TALE)
            command = glob.glob(os.path.join(top, "bin", "frit*"))[0]
            self.assertEqual(output(self, *runs, command, *TELL, "-m", MODEL).strip(), TALE)

    def test_linux_aarch64(self):
        self.foreign("linux-aarch64")

    def test_windows_x86_64(self):
        self.foreign("windows-x86_64")


class Binaries(unittest.TestCase):
    """Compares the symbols that libraries and commands export and need with the expected ones, read from the files
    themselves."""

    def files(self, part=""):
        if not [name for name in PLATFORMS if part in name and (archives("-" + name) or wheels(name))]:
            self.skipTest(f"nothing for {part} was built")
        for name in PLATFORMS:
            paths = [path for _, path in wheels(name)] + archives("-" + name) if part in name else []
            for path in paths:
                with tempfile.TemporaryDirectory() as folder:
                    unpack(os.path.basename(path), folder)
                    inside = [os.path.join(at, file) for at, _, files in os.walk(folder) for file in files]
                    programs = [f for f in inside if not os.path.islink(f) and
                                re.search(r"(?<!completions)/(frit|frit\.exe|libfrit(\.[\d.]+)?\.(so|dll|dylib)(\.[\d.]+)?)$", f)]
                    self.assertEqual(len(programs), 2, f"{path}: {programs}")
                    for file in programs:
                        with self.subTest(f"{os.path.basename(path)}: {os.path.basename(file)}"):
                            self.path = file
                            yield name, "lib" in os.path.basename(file), lief.parse(file)

    def test_libraries_export_the_functions_of_the_headers_alone(self):
        text = ""
        for header in glob.glob(os.path.join(ROOT, "include", "**", "*.h"), recursive=True):
            with open(header, encoding="utf-8") as file:
                text += file.read()
        declared = set(re.findall(r"^FRIT_API [^;]*?\b(frit_\w+)\(", text, re.M))
        self.assertGreater(len(declared), 100)
        for name, is_library, binary in self.files():
            if is_library:
                found = {f.name.removeprefix("_") for f in binary.exported_functions}
                self.assertEqual(found - {"_mh_dylib_header", "__dso_handle"}, declared)   # defined by the linker

    def test_only_libraries_of_the_system_are_needed(self):
        for name, is_library, binary in self.files():
            needed = {str(getattr(library, "name", library)) for library in binary.libraries}
            if is_library:   # Mach-O lists the library's own name
                needed = {n for n in needed if "libfrit" not in n}
            self.assertTrue(needed)
            self.assertFalse({n for n in needed if not re.fullmatch(NEEDED[name.split("-")[0]], n)})

    def test_they_are_for_the_processor(self):
        for name, _, binary in self.files():
            header = binary.header
            kind = next(getattr(header, key) for key in ("machine_type", "cpu_type", "machine") if hasattr(header, key))
            self.assertIn(kind.name, PROCESSORS[name.split("-")[1]])

    def test_linux_wants_an_old_libc_only(self):
        for _, _, binary in self.files("linux"):
            wanted = [tuple(map(int, aux.name.removeprefix("GLIBC_").split("."))) for need in binary.symbols_version_requirement
                      for aux in need.get_auxiliary_symbols() if aux.name.startswith("GLIBC_")]
            self.assertTrue(wanted)
            self.assertLessEqual(max(wanted), GLIBC)

    def test_macos_is_an_old_one_and_the_code_is_signed(self):
        for name, _, binary in self.files("macos"):
            oldest = binary.build_version.minos if binary.has_build_version else binary.version_min.version
            self.assertEqual(tuple(oldest[:2]), MACOS)
            if name.endswith("aarch64"):   # macOS on ARM starts no program without a signature
                with open(self.path, "rb") as file:
                    self.signature_fits(file.read(), binary.code_signature)

    def signature_fits(self, program, signature):
        """Checks an ad hoc signature: Apple's code directory has the hash of each page (numbers are big-endian)."""
        blob = program[signature.data_offset:signature.data_offset + signature.data_size]
        magic, _, n_parts = struct.unpack_from(">III", blob)
        self.assertEqual(magic, 0xFADE0CC0)
        at = next(offset for kind, offset in struct.iter_unpack(">II", blob[12:12 + 8 * n_parts]) if kind == 0)
        magic, _, _, flags, hashes, _, _, n_pages, limit, size, kind, _, log2 = struct.unpack_from(">9I4B", blob, at)
        self.assertEqual((magic, flags & 2, size, kind, limit), (0xFADE0C02, 2, 32, 2, signature.data_offset))
        page = 1 << log2
        self.assertEqual(n_pages, -(-limit // page))
        for i in range(n_pages):
            digest = hashlib.sha256(program[i * page:min((i + 1) * page, limit)]).digest()
            self.assertEqual(digest, blob[at + hashes + 32 * i:at + hashes + 32 * (i + 1)], f"page {i}")


class Materials(unittest.TestCase):
    def test_each_archive_and_wheel_has_a_valid_sbom(self):
        validator = JsonStrictValidator(SchemaVersion.V1_5)
        for name in archives("") + [os.path.basename(path) for _, path in wheels()]:
            with open(os.path.join(FOLDER, name + ".cdx.json"), encoding="utf-8") as file:
                text = file.read()
            self.assertIsNone(validator.validate_str(text), name)
            parts = [part["name"] for part in json.loads(text)["components"]]
            if name != f"frit-{version()}.tar.gz":
                self.assertIn("pcre2", parts)
            if "win" not in name:
                self.assertLessEqual({row["name"] for row in web_ui_table()}, set(parts), name)
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
        """Checks the fields that each of the three schemas (1.6.0) requires."""
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

    def test_every_platform_is_tried_on_its_own_system(self):
        with open(os.path.join(self.folder, "packages.yml"), encoding="utf-8") as file:
            rows = yaml.load(file, yaml.BaseLoader)["jobs"]["archive"]["strategy"]["matrix"]["include"]
        self.assertEqual({row["name"] for row in rows}, set(PLATFORMS))

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
    unittest.main(verbosity=2)
