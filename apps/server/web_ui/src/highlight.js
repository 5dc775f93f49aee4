// SPDX-License-Identifier: MIT
// Colours code, in the most frequent languages.
import highlighter from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import haskell from "highlight.js/lib/languages/haskell";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import latex from "highlight.js/lib/languages/latex";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import perl from "highlight.js/lib/languages/perl";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import r from "highlight.js/lib/languages/r";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import scala from "highlight.js/lib/languages/scala";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

// The Markdown grammar of highlight.js takes minutes for a repeated "[a](", so it is replaced.
function markdown() {
    return {
        name: "Markdown",
        aliases: ["md"],
        contains: [
            { scope: "section", begin: /^ {0,3}#{1,6}[ \t].{0,200}/ },
            { scope: "quote", begin: /^ {0,3}>.{0,200}/ },
            { scope: "code", begin: /^ {0,3}(`{3,9}|~{3,9})/, end: /^ {0,3}(`{3,9}|~{3,9})[ \t]*$/ },
            { scope: "code", begin: /`[^`\n]{1,200}`/ },
            { scope: "bullet", begin: /^[ \t]{0,20}(?:[*+-]|\d{1,9}[.)])(?=[ \t])/ },
            { scope: "strong", begin: /\*\*[^*\n]{1,200}\*\*|__[^_\n]{1,200}__/ },
            { scope: "emphasis", begin: /\*[^*\n]{1,200}\*|\b_[^_\n]{1,200}_\b/ },
            { scope: "link", begin: /\[[^\]\n]{1,200}\]\([^)\n]{1,200}\)/ },
        ],
    };
}

const languages = { bash, c, cpp, csharp, css, diff, dockerfile, go, haskell, ini, java, javascript, json, kotlin, latex,
                    lua, makefile, markdown, perl, php, python, r, ruby, rust, scala, sql, swift, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) highlighter.registerLanguage(name, language);

// Longer code and longer lines stay plain: the time of some grammars is quadratic.
const MAX_LENGTH = 50000, LONG_LINE = /.{501}/;

// Gives HTML, or null for an unknown language.
export function highlight(code, language) {
    if (!highlighter.getLanguage(language) || code.length > MAX_LENGTH || LONG_LINE.test(code)) return null;
    return highlighter.highlight(code, { language, ignoreIllegals: true }).value;
}
