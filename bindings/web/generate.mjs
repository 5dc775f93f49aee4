// SPDX-License-Identifier: MIT
// Writes src/options.ts: the types of options from the tables of the library, which a built module has, and the numbers of
// enumerations from the headers.
//
//     node generate.mjs MODULE.js [--check]      --check: only says if the file is up to date
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [moduleFile, mode] = process.argv.slice(2);
const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const target = `${here}/src/options.ts`;
const { default: create } = await import(pathToFileURL(resolve(moduleFile)).href);
const frit = await create({ threads: 0 });

const TYPES = ["boolean", "number", "number", "number", "string", "choice", "list"];   // by frit_option_type
const KINDS = { model: "ModelOptionValues", engine: "EngineOptionValues", sampler: "SamplerOptionValues", embed: "EmbedOptionValues" };
// Options that a browser has no use for: files, other devices, other machines.
const ABSENT = ["type", "mmap", "no-mmap", "mmproj", "log", "numa", "device", "weights-cache", "prefix-cache-ram", "prefix-cache-disk", "gpu-layers", "split", "override-tensor",
                "chat-template-file", "vocab-only"];

function textOf(string) {
    const bytes = new TextEncoder().encode(string), at = frit._malloc(bytes.length + 1);
    frit.stringToUTF8(string, at, bytes.length + 1);
    return at;
}

function* rowsOf(kind) {
    const row = frit._malloc(40), name = textOf(kind);
    for (let i = 0; frit._frit_web_get_option(name, i, row); i++) {
        const data = new DataView(frit.HEAPU8.buffer, row, 40);
        const text = (at) => (data.getUint32(at, true) ? frit.UTF8ToString(data.getUint32(at, true)) : null);
        yield { name: text(0), choices: text(4), fallback: text(8), help: text(12), type: TYPES[data.getInt32(16, true)],
                min: data.getFloat64(24, true), max: data.getFloat64(32, true) };
    }
}

function commentOf({ help, min, max, fallback, type }) {
    const range = type === "number" && (min !== 0 || max !== 0) ? `; ${min} to ${max}` : "";
    return `${help[0].toUpperCase()}${help.slice(1)}${range}.${fallback === null ? "" : ` Default: ${fallback}.`}`;
}

const typeOf = ({ type, choices }) =>
    type === "choice" ? choices.split("|").map((each) => JSON.stringify(each)).join(" | ") : type === "list" ? "string[]" : type;

function wrapped(comment, indent) {
    const words = comment.split(/\s+/), lines = [""];
    for (const word of words) {
        if (lines.at(-1).length + word.length + indent.length + 4 > 118) lines.push("");
        lines[lines.length - 1] += (lines.at(-1) ? " " : "") + word;
    }
    if (lines.length === 1) return `${indent}/** ${lines[0]} */`;
    return [`${indent}/**`, ...lines.map((line) => `${indent} * ${line}`), `${indent} */`].join("\n");
}

const header = (name) => readFileSync(`${here}/../../include/frit/${name}.h`, "utf8");
const enumOf = (text, prefix) => [...text.matchAll(new RegExp(`^    ${prefix}(\\w+)`, "gm"))].map(([, name], i) => `${name}: ${i}`);
const statuses = [...header("status").matchAll(/X\((\w+), (-?\d+), /g)].map(([, name, value]) => ({ name, value }));
const parts = [...header("turn").match(/enum frit_part_kind \{([^}]*)\}/)[1].matchAll(/FRIT_PART_(\w+)/g)].map(([, name], i) => `${name}: ${i}`);

const lines = ["// SPDX-License-Identifier: MIT", "// Made by generate.mjs from the tables of the library: do not edit.", "",
    `/** Kinds of failures. */`, `export type Status = ${statuses.map(({ name }) => `"${name}"`).join(" | ")};`, "",
    `export const STATUSES: Record<string, Status> = {`, ...statuses.map(({ name, value }) => `    "${value}": "${name}",`), `};`, "",
    `export const GRAMMARS = { ${enumOf(header("grammar"), "FRIT_GRAMMAR_").join(", ")} } as const;`,
    `export const PARTS = { ${parts.join(", ")} } as const;`, ""];
const tables = [];
for (const [kind, type] of Object.entries(KINDS)) {
    lines.push(`/** Options of the ${kind}, by their names on the command line with "_" for "-". */`, `export interface ${type} {`);
    const table = [];
    for (const row of rowsOf(kind)) {
        if (ABSENT.includes(row.name)) continue;
        lines.push(wrapped(commentOf(row), "    "), `    ${row.name.replaceAll("-", "_")}?: ${typeOf(row)};`);
        table.push(`        "${row.name}": { fallback: ${JSON.stringify(row.fallback)} },`);
    }
    lines.push("}", "");
    tables.push(`    ${kind}: {`, ...table, "    },");
}
lines.push("/** The options that there are, with the command's defaults; null: the value 0, false or none. */",
           "export const OPTIONS: Record<\"model\" | \"engine\" | \"sampler\" | \"embed\", Record<string, { fallback: string | null }>> = {", ...tables, "};", "");
const text = lines.join("\n");
if (mode !== "--check") writeFileSync(target, text);
else if (readFileSync(target, "utf8") !== text) {
    console.error("generate: src/options.ts is out of date: run node bindings/web/generate.mjs build/web/frit.js");
    process.exit(1);
}
process.exit(0);
