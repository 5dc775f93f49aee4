// SPDX-License-Identifier: MIT
// Turns the HTML of Markdown into nodes of the document. The text of a model may be hostile: only listed tags are allowed,
// pictures of other hosts become links, and no other code makes HTML of texts.
import createSanitizer from "dompurify";

import { copyText } from "./clipboard.js";

// ------------------------------------------------------------------------------------ the sanitizer


const TAGS = ["a", "abbr", "b", "blockquote", "br", "code", "del", "details", "div", "em", "h1", "h2", "h3", "h4", "h5", "h6",
              "hr", "i", "img", "input", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span",
              "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "u", "ul", "var"];
const MATH = ["math", "menclose", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom",
              "mprescripts", "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd",
              "mtext", "mtr", "munder", "munderover", "none", "semantics"];
const ATTRIBUTES = ["align", "alt", "checked", "class", "colspan", "data-language", "data-style", "disabled", "href", "open", "rowspan", "src",
                    "start", "title", "type", "accent", "accentunder", "columnalign", "columnlines", "columnspacing", "depth",
                    "display", "displaystyle", "encoding", "fence", "form", "height", "linethickness", "lspace", "mathvariant",
                    "maxsize", "minsize", "movablelimits", "notation", "rowlines", "rowspacing", "rspace", "scriptlevel",
                    "separator", "stretchy", "symmetric", "voffset", "width", "xmlns"];
const OPTIONS = {
    ALLOWED_TAGS: [...TAGS, ...MATH, "#text"],
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ADD_URI_SAFE_ATTR: ATTRIBUTES.filter((name) => name !== "href" && name !== "src"),   // which are no addresses
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/(?:png|jpeg|gif|webp);)/i,
    RETURN_DOM_FRAGMENT: true,
};
const CLASSES = /^(?:hljs(?:-[\w-]+)?|tml-[\w-]+|mathcal|mathscr)$/;

const sanitizer = createSanitizer(window);

// Only listed classes are allowed, so that a text cannot look like a part of the UI.
function cleanClass(node) {
    const classes = [...node.classList].filter((name) => CLASSES.test(name));
    if (classes.length > 0) node.setAttribute("class", classes.join(" "));
    else node.removeAttribute("class");
}

sanitizer.addHook("afterSanitizeAttributes", (node) => {
    if (node.hasAttribute("class")) cleanClass(node);
    switch (node.localName) {
    case "a":
        node.setAttribute("rel", "noopener noreferrer nofollow");
        node.setAttribute("target", "_blank");
        break;
    case "img":
        if (!node.getAttribute("src")?.startsWith("data:image/")) node.removeAttribute("src");
        break;
    case "input":   // of a list of tasks, and nothing else
        node.setAttribute("type", "checkbox");
        node.setAttribute("disabled", "");
        node.setAttribute("aria-label", "done");
        break;
    }
});

// ------------------------------------------------------------------------------------ what the UI adds

function copyButton(code) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
        button.textContent = (await copyText(code.textContent)) ? "Copied" : "Not copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    return button;
}

// A wide block scrolls by itself, also by keys.
function scrollable(node, name, child) {
    node.className = name;
    child.tabIndex = 0;
    child.setAttribute("role", "region");
    return node;
}

function frameCode(pre) {
    const frame = scrollable(document.createElement("div"), "code-block", pre);
    const bar = document.createElement("div");
    const language = pre.getAttribute("data-language") || "text";
    bar.className = "code-bar";
    bar.append(Object.assign(document.createElement("span"), { textContent: language }), copyButton(pre));
    pre.setAttribute("aria-label", `Code, ${language}`);
    pre.replaceWith(frame);
    frame.append(bar, pre);
}

function frameTable(table) {
    const frame = document.createElement("div");
    table.replaceWith(frame);
    frame.append(table);
    frame.className = "table-frame";
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Table");
}

// Sets harmless styles of formulas by script, as the policy forbids styles within HTML.
const PROPERTIES = /^(?:border|border-(?:bottom|left|right|top)|color|background-color|font-weight|math-depth|padding|padding-(?:bottom|left|right|top)|text-align|width)$/;

function applyStyle(node) {
    for (const [, name, value] of node.getAttribute("data-style").matchAll(/([\w-]+)\s*:\s*([^;]+)/g))
        if (PROPERTIES.test(name) && !value.includes("url")) node.style.setProperty(name, value);
    node.removeAttribute("data-style");
}

// ------------------------------------------------------------------------------------ both

export function sanitize(html) {
    const fragment = sanitizer.sanitize(html, OPTIONS);
    fragment.querySelectorAll("[data-style]").forEach(applyStyle);
    fragment.querySelectorAll("pre").forEach(frameCode);
    fragment.querySelectorAll("table").forEach(frameTable);
    return fragment;
}
