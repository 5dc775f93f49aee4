// SPDX-License-Identifier: MIT
// Bundles the page: the web UI of frit serve with the engine in the browser instead of a server.
//
//     node build.mjs WEB_UI_TOOLS WEB OUT      WEB_UI_TOOLS: libraries of the web UI; WEB: the built modules
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { copyModules } from "../copy_modules.mjs";

const [tools, web, out] = process.argv.slice(2).map((path) => resolve(path));
const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const ui = resolve(here, "../../../apps/server/web_ui");
const { build } = createRequire(join(tools, "package.json"))("esbuild");

// Sampling options with ranges, as frit serve lists them, from the module's own table.
async function listSampling() {
    const { default: create } = await import(pathToFileURL(join(web, "frit.js")).href);
    const frit = await create({ threads: 0 }), row = frit._malloc(40), kind = frit._malloc(8), rows = [];
    frit.stringToUTF8("sampler", kind, 8);
    for (let i = 0; frit._frit_web_get_option(kind, i, row); i++) {
        const data = new DataView(frit.HEAPU8.buffer, row, 40), text = (at) => (data.getUint32(at, true) ? frit.UTF8ToString(data.getUint32(at, true)) : null);
        const name = text(0), fallback = text(8), type = data.getInt32(16, true), [min, max] = [data.getFloat64(24, true), data.getFloat64(32, true)];
        if ((type !== 1 && type !== 3) || name === "seed") continue;   // whole numbers and others
        rows.push({ name: name === "temp" ? "temperature" : name.replaceAll("-", "_"), type: type === 1 ? "integer" : "number", default: Number(fallback ?? 0),
                    help: text(12), ...(min || max ? { min, max } : {}) });
    }
    return rows;
}

const sampling = await listSampling();
const local = {
    name: "local",
    setup({ onResolve, onLoad }) {
        onResolve({ filter: /\/api\.js$/ }, () => ({ path: join(here, "api_local.js") }));
        onResolve({ filter: /\/model_picker\.jsx$/ }, () => ({ path: join(ui, "src/parts/model_picker.jsx") }));
        onLoad({ filter: /model_picker\.jsx$/ }, () => ({ contents: readFileSync(join(here, "model_picker.jsx"), "utf8"), loader: "jsx", resolveDir: join(ui, "src/parts") }));
        onResolve({ filter: /^sampling$/ }, () => ({ path: "sampling", namespace: "made" }));
        onLoad({ filter: /.*/, namespace: "made" }, () => ({ contents: JSON.stringify(sampling), loader: "json" }));
    },
};
const common = { bundle: true, minify: true, outdir: out, target: "es2022", nodePaths: [join(tools, "node_modules")], legalComments: "none", logLevel: "warning" };
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await build({ ...common, absWorkingDir: ui, entryPoints: { app: "src/app.jsx" }, format: "esm", jsx: "automatic", jsxImportSource: "preact", plugins: [local] });
await build({ ...common, absWorkingDir: ui, entryPoints: { theme: "src/theme_early.js" } });
await build({ ...common, absWorkingDir: here, entryPoints: { worker: "../src/worker.ts" }, format: "esm" });
// The web UI's own worker renders texts.
await build({ ...common, absWorkingDir: ui, entryPoints: { "assets/worker": "src/worker.js" } });
const style = await build({ ...common, absWorkingDir: ui, entryPoints: ["style/app.css"], write: false });
writeFileSync(join(out, "app.css"), style.outputFiles[0].text + readFileSync(join(here, "page.css"), "utf8"));
for (const name of ["index.html", "manifest.webmanifest", "icon.svg", "models.json"]) cpSync(join(here, name), join(out, name));
copyModules(web, out);
const files = ["app.css", "app.js", "frit-relaxed.js", "frit-relaxed.wasm", "frit.js", "frit.wasm", "assets/worker.js", "icon.svg", "index.html", "manifest.webmanifest",
               "models.json", "theme.js", "worker.js"];
const sum = createHash("sha256");
for (const file of files) sum.update(readFileSync(join(out, file)));
const head = `const VERSION = "${sum.digest("hex").slice(0, 16)}";\nconst FILES = ${JSON.stringify(["./", ...files])};\n`;
const [licence, ...rest] = readFileSync(join(here, "service_worker.js"), "utf8").split("\n");
writeFileSync(join(out, "service_worker.js"), `${licence}\n${head}${rest.join("\n")}`);
process.exit(0);
