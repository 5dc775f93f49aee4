// SPDX-License-Identifier: MIT
// Builds the npm package: checks types, bundles the scripts, and copies the modules.
//
//     node build.mjs TOOLS WEB OUT      TOOLS: a folder with node_modules; WEB: the built modules; OUT: the package's folder
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

import { copyModules } from "./copy_modules.mjs";

const [tools, web, out] = process.argv.slice(2).map((path) => resolve(path));
const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const dist = join(out, "dist");
const { buildSync } = createRequire(join(tools, "package.json"))("esbuild");

function run(command, ...args) {
    if (spawnSync(command, args, { stdio: "inherit" }).status !== 0) process.exit(1);
}

run(process.execPath, `${here}/generate.mjs`, `${web}/frit.js`, "--check");
rmSync(out, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
run(join(tools, "node_modules/.bin/tsc"), "--project", `${here}/tsconfig.json`, "--outDir", dist, "--emitDeclarationOnly", "--stripInternal",
    "--typeRoots", join(tools, "node_modules/@types"));
for (const name of ["index", "worker", "isolate"])
    buildSync({ entryPoints: [`${here}/src/${name}.ts`], outfile: `${dist}/${name}.js`, bundle: true, minifySyntax: true, format: name === "isolate" ? "iife" : "esm",
                target: "es2022", legalComments: "none", logLevel: "warning", banner: { js: "// SPDX-License-Identifier: MIT" } });
for (const name of ["worker", "engine", "generate", "sources", "remote", "platform", "sha256", "isolate"]) rmSync(`${dist}/${name}.d.ts`, { force: true });
copyModules(web, dist);
const { devDependencies, ...manifest } = JSON.parse(readFileSync(`${here}/package.json`, "utf8"));
writeFileSync(`${out}/package.json`, JSON.stringify(manifest, null, 4) + "\n");
cpSync(`${here}/README.md`, `${out}/README.md`);
cpSync(`${here}/../../LICENSE`, `${out}/LICENSE`);
