// SPDX-License-Identifier: MIT
// Text files of a message.
const MAX_BYTES = 512 * 1024, MAX_ALL = 2 * 1024 * 1024, MAX_COUNT = 20;

export function sizeOf(text) {
    const bytes = new Blob([text]).size;
    return bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

// The text of a file in UTF-8, or in UTF-16 with a byte order mark; null: not a text file.
function decode(bytes) {
    const mark = bytes.length >= 2 ? (bytes[0] << 8) | bytes[1] : 0;
    try {
        const text = new TextDecoder(mark === 0xfffe ? "utf-16le" : mark === 0xfeff ? "utf-16be" : "utf-8", { fatal: true }).decode(bytes);
        return text.includes("\0") ? null : text;
    } catch {
        return null;
    }
}

const total = (files) => files.reduce((sum, { text }) => sum + text.length, 0);

// The files that a message accepts beside its present ones, and a sentence for each refused file.
export async function readFiles(list, there) {
    const files = [], problems = [];
    for (const file of list) {
        const all = [...there, ...files];
        if (all.length >= MAX_COUNT) problems.push(`${file.name}: a message takes ${MAX_COUNT} files.`);
        else if (file.size > MAX_BYTES) problems.push(`${file.name} has ${sizeOfBytes(file.size)}; a file may have ${sizeOfBytes(MAX_BYTES)}.`);
        else {
            const bytes = await file.arrayBuffer().then((buffer) => new Uint8Array(buffer), () => null);
            const text = bytes && decode(bytes);
            if (bytes === null) problems.push(`${file.name} cannot be read.`);
            else if (text === null) problems.push(`${file.name} is not a text.`);
            else if (total(all) + text.length > MAX_ALL) problems.push(`${file.name}: all files may have ${sizeOfBytes(MAX_ALL)} together.`);
            else files.push({ name: file.name, text });
        }
    }
    return { files, problems };
}

export function sizeOfBytes(n) {
    return n < 1024 * 1024 ? `${Math.round(n / 1024)} KiB` : `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

// The message as the model reads it: each file under its name, in a code block that its text cannot end, then the text.
export function withFiles(content, files) {
    const blocks = files.map(({ name, text }) => {
        const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
        const fence = "`".repeat(longest + 1), ending = /\.([\w+-]{1,12})$/.exec(name)?.[1] ?? "";
        return `File ${name.replace(/\s+/g, " ")}:\n\n${fence}${ending.toLowerCase()}\n${text.replace(/\n$/, "")}\n${fence}`;
    });
    return [...blocks, content].filter(Boolean).join("\n\n");
}
