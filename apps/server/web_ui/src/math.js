// SPDX-License-Identifier: MIT
// Math in Markdown: $x$, $$x$$, \(x\), \[x\], as MathML, which needs no fonts of its own.
import temml from "temml";

import { escape } from "./escape.js";

// Limits the expansion of macros, which may be endless.
const OPTIONS = { throwOnError: true, maxExpand: 1000, maxSize: [50, 50], trust: false, strict: false };

const INLINE = [/^\$(?![\s$])((?:\\[^\n]|[^\\$\n])*?[^\s\\$]|(?:\\[^\n]))\$(?!\d)/, /^\\\(((?:[^\\]|\\(?!\)))+?)\\\)/];
const BLOCK = [/^ {0,3}\$\$((?:[^$]|\$(?!\$))+?)\$\$[ \t]*(?:\n|$)/, /^ {0,3}\\\[((?:[^\\]|\\(?!\]))+?)\\\][ \t]*(?:\n|$)/];
const DISPLAY_INLINE = [/^\$\$((?:[^$]|\$(?!\$))+?)\$\$/, /^\\\[((?:[^\\]|\\(?!\]))+?)\\\]/];

function match(patterns, source) {
    for (const pattern of patterns) {
        const found = pattern.exec(source);
        if (found) return found;
    }
    return null;
}

// A text that is not a formula, or not yet, is shown as it is.
function renderMath({ raw, tex, display }) {
    try {
        return temml.renderToString(tex, { ...OPTIONS, displayMode: display }).replaceAll(' style="', ' data-style="');
    } catch {
        return `<code>${escape(raw.trim())}</code>`;
    }
}

function extension(name, level, patterns, display, start) {
    return {
        name, level, start,
        tokenizer(source) {
            const found = match(patterns, source);
            return found ? { type: name, raw: found[0], tex: found[1].trim(), display } : undefined;
        },
        renderer: renderMath,
    };
}

const startOf = (source) => {
    const at = source.search(/\$|\\[([]/);
    return at < 0 ? undefined : at;
};

export const mathExtensions = [
    extension("mathBlock", "block", BLOCK, true, (source) => {
        const at = source.search(/(?:^|\n) {0,3}(?:\$\$|\\\[)/);
        return at < 0 ? undefined : at;
    }),
    extension("mathDisplay", "inline", DISPLAY_INLINE, true, startOf),
    extension("mathInline", "inline", INLINE, false, startOf),
];
