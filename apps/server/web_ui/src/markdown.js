// SPDX-License-Identifier: MIT
// Markdown to HTML, in the worker (worker.js). The HTML is unsafe until sanitize.js has cleaned it.
import { Lexer, Marked } from "marked";

import { escape } from "./escape.js";
import { highlight } from "./highlight.js";
import { BARE, FULL, PLAIN } from "./levels.js";
import { mathExtensions } from "./math.js";

const MAX_DEPTH = 40;         // of quotes, lists and their items within each other; browsers nest 512 elements at most
const MAX_HTML = 1000000;     // characters that one block may become
const MANY = 100, SMALL = 4000;   // after so many blocks those with fewer characters are joined: each costs the page time

// Keeps bare tags such as <sub>, and escapes all other HTML.
const BARE_TAGS = /&lt;(\/?(?:b|br|del|details|em|i|ins|kbd|mark|q|s|samp|small|strong|sub|summary|sup|u|var)) ?\/?&gt;/gi;

const rendererWith = (color) => ({
    html({ text }) {
        return escape(text).replace(BARE_TAGS, "<$1>");
    },
    code({ text, lang }) {
        const language = /^[\w+#-]{0,40}/.exec(lang ?? "")[0].toLowerCase();
        const html = color(text, language) ?? escape(text);
        return `<pre data-language="${escape(language)}"><code>${html}</code></pre>\n`;
    },
    image({ href, title, text }) {
        const name = escape(text || title || href);
        return href.startsWith("data:image/") ? `<img src="${escape(href)}" alt="${name}">`
                                              : `<a href="${escape(href)}">${name}</a>`;
    },
});

const writers = {
    [FULL]: new Marked({ gfm: true, breaks: false, renderer: rendererWith(highlight), extensions: mathExtensions }),
    [BARE]: new Marked({ gfm: true, breaks: false, renderer: rendererWith(() => null) }),
};

function isDeep(tokens, left = MAX_DEPTH) {
    return left === 0 || tokens.some(({ tokens: within = [], items = [] }) => isDeep(within, left - 1) || isDeep(items, left - 1));
}

// Splits a text into blocks. While a text grows, only its last block changes.
export function blocksOf(text) {
    const lexer = new Lexer(writers[FULL].defaults), blocks = [];
    for (const token of lexer.blockTokens(text.replace(/\r\n?/g, "\n"), lexer.tokens)) {
        if (token.type === "def") return [text];   // a link's address may be used in any block
        const isJoined = blocks.length > MANY && blocks.at(-1).length < SMALL;
        if (blocks.length > 0 && (token.type === "space" || isJoined)) blocks[blocks.length - 1] += token.raw;
        else blocks.push(token.raw);
    }
    return blocks;
}

// null: the source is shown instead.
export function htmlOf(source, level) {
    if (level >= PLAIN) return null;
    const tokens = writers[level].lexer(source);
    if (isDeep(tokens)) return null;
    const html = writers[level].parser(tokens);
    return html.length > MAX_HTML ? null : html;
}
