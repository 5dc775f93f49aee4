// SPDX-License-Identifier: MIT
// Bundles the web UI: node build.mjs TOOLS OUT. TOOLS has the libraries of package.json in node_modules. OUT gets each file
// compressed with gzip, and licenses.txt and libraries.tsv also uncompressed. index.html.gz is written last, so that it is
// newer than all other files.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const [tools, out] = process.argv.slice(2).map((path) => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));
const { build } = createRequire(join(tools, "package.json"))("esbuild");

function write(name, bytes) {
    writeFileSync(join(out, `${name}.gz`), gzipSync(bytes, { level: 9 }));
}

const common = {
    absWorkingDir: here,
    bundle: true,
    minify: true,
    write: false,
    outdir: out,
    target: "es2022",
    nodePaths: [join(tools, "node_modules")],
    legalComments: "none",   // licenses.txt has all of them
    logLevel: "warning",
};

// Names, versions and licences of the bundled libraries.
const libraries = [...Object.keys(JSON.parse(readFileSync(join(here, "package.json"))).dependencies), "@preact/signals-core"]
    .map((name) => {
        const folder = join(tools, "node_modules", name);
        const { version, license } = JSON.parse(readFileSync(join(folder, "package.json")));
        const text = readFileSync(join(folder, "LICENSE"), "utf8");
        const holders = [...text.matchAll(/^ *(Copyright (?:\(c\)|©|\d).*?)\.? *$/gmi)].map(([, line]) => line);
        return { name, version, license: license.replace(/^\((.*)\)$/, "$1"), holders: holders.join("; ") || `The authors of ${name}`, text };
    });

// The licences are part of the bundle.
const licenses = libraries.map(({ name, version, text }) => `${name} ${version}\n\n${text}`).join(`\n${"-".repeat(80)}\n\n`);

// The table of the libraries, in the form of packaging/libraries.tsv.
const table = libraries.map(({ name, version, license, holders }) => [name, version, license, holders].join("\t") + "\n").join("");

const page = await build({
    ...common,
    entryPoints: { app: "src/app.jsx", "app-style": "style/app.css" },
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
});
const others = await build({
    ...common,
    entryPoints: { theme: "src/theme_early.js", worker: "src/worker.js", docs: "docs/docs.js", "docs-style": "docs/docs.css" },
});

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const { path, contents } of [...page.outputFiles, ...others.outputFiles])
    write(path.slice(out.length + 1).replace("-style.css", ".css"), contents);
write("licenses.txt", licenses);
writeFileSync(join(out, "licenses.txt"), licenses);
writeFileSync(join(out, "libraries.tsv"), table);
write("docs.html", readFileSync(join(here, "docs/docs.html")));
write("index.html", readFileSync(join(here, "index.html")));
