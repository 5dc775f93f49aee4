// SPDX-License-Identifier: MIT
// Text of a model, a file or a title must not be run, must load nothing, and must not look like a part of the page.
import assert from "node:assert/strict";

import { ask, button, lastAnswer, pretend, rendered, send } from "./browser.mjs";

const ATTACKS = [
    "<img src=x onerror=alert(1)>", "<script>alert(1)</script>", "<svg onload=alert(1)><a/></svg>",
    "[click](javascript:alert(1))", "[click](data:text/html,<script>alert(1)</script>)", "<a href=\"JaVaScRiPt:alert(1)\">x</a>",
    "![pixel](http://evil.example/pixel.png)", "<img src=\"http://evil.example/pixel.png\">",
    "<iframe src=\"http://evil.example\"></iframe>", "<link rel=stylesheet href=http://evil.example/a.css>",
    "<style>body{display:none}</style>", "<div style=\"position:fixed;inset:0;background:url(http://evil.example/b)\">over</div>",
    "<form action=http://evil.example><input name=q><button>Sign in</button></form>", "<base href=http://evil.example/>",
    "<meta http-equiv=refresh content=\"0;url=http://evil.example\">", "<video src=http://evil.example/v poster=http://evil.example/p>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "<math href=\"javascript:alert(1)\"><mi>x</mi></math>", "$\\href{javascript:alert(1)}{x}$", "$\\includegraphics{http://evil.example/x.png}$",
    "$\\class{notice}{x}$", "$$\\def\\a{\\a\\a}\\a$$", "```\"><img src=x onerror=alert(1)>\n<script>alert(1)</script>\n```",
    "```html\n<img src=x onerror=alert(1)>\n```", "<span class=\"notice backdrop\" id=prompt>fake</span>", "<x-a onclick=alert(1)>y</x-a>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\"></noscript>", "<details open ontoggle=alert(1)>z</details>",
    "[a]: javascript:alert(1)\n\n[a]", "<input autofocus onfocus=alert(1)>", "<a href=\"http://evil.example\" target=_self>link</a>",
    "[the last link](http://evil.example \"<img src=x onerror=alert(1)>\")",
];

async function nothingOfAnAnswerRuns({ page, url }) {
    await pretend(page, ATTACKS.join("\n\n"));
    await ask(page, "<img src=x onerror=alert(1)> ${alert(1)} {{constructor.constructor('alert(1)')()}}");
    const prose = lastAnswer(page).locator(".prose");
    await prose.locator("a", { hasText: "the last link" }).waitFor();
    assert.equal(page.url().replace(/\/#\w*$/, ""), url);
    const found = await prose.evaluate((root) => ({
        tags: [...root.querySelectorAll("script,style,iframe,link,meta,base,form,video,object,embed,svg,x-a,button:not(.copy)")].map((one) => one.outerHTML),
        handlers: [...root.querySelectorAll("*")].flatMap((one) => one.getAttributeNames()
            .filter((name) => /^on|^(?:style|id|srcdoc|action|formaction|poster)$/.test(name)).map((name) => `${one.localName} ${name}`)),
        links: [...root.querySelectorAll("a")].map((one) => [one.getAttribute("href") ?? "", one.rel, one.target]),
        pictures: [...root.querySelectorAll("img[src]")].map((one) => one.src),
        classes: [...root.querySelectorAll(".notice, .backdrop")].length,
        inputs: [...root.querySelectorAll("input:not([disabled])")].length,
    }));
    assert.deepEqual([found.tags, found.handlers, found.pictures, found.classes, found.inputs], [[], [], [], 0, 0]);
    for (const [href, rel, target] of found.links) {
        assert.match(href, /^(https?:|mailto:|$)/);
        assert.match(rel, /noopener/);
        assert.equal(target, "_blank");
    }
    assert.equal(await page.locator(".message.user .said img").count(), 0);
}

async function markdownShowsAsItShould({ page }) {
    const text = ["# Title", "A **bold** word, `code` and $e^{i\\pi} + 1 = 0$ within, \\(x\\) too; 5$ and 6$ are prices.", "$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$",
                  "\\[\\begin{pmatrix}a&b\\\\c&d\\end{pmatrix}\\]", "| a | b |\n|---|--:|\n| 1 | 2 |", "- [x] done\n- [ ] open",
                  "```python\ndef f(x):\n    return \"a\"  # why\n```", "<sub>below</sub>"].join("\n\n");
    await pretend(page, text);
    await ask(page, "Show me.");
    const prose = lastAnswer(page).locator(".prose");
    assert.equal(await prose.locator("h1").innerText(), "Title");
    assert.equal(await prose.locator("math").count(), 4);
    assert.equal(await prose.locator("mfrac").count(), 1);
    assert.match(await prose.innerText(), /5\$ and 6\$ are prices/);
    assert.equal(await prose.locator("td[align=right]").innerText(), "2");
    assert.equal(await prose.locator("input[type=checkbox]:checked").count(), 1);
    assert.equal(await prose.locator(".hljs-keyword").first().innerText(), "def");
    assert.equal(await prose.locator("sub").innerText(), "below");
    assert.equal(await prose.locator(".code-bar span").innerText(), "python");
}

// Texts that could exhaust a parser, a highlighter or the stack, and the text that must be visible in the end.
const LANGUAGES = "bash c cpp csharp css diff dockerfile go haskell ini java javascript json kotlin latex lua makefile markdown perl php python r ruby rust scala sql swift typescript xml yaml".split(" ");
const fence = (language, code) => `\`\`\`${language}\n${code}\n\`\`\``;
const HEAVY = [
    ["links in a markdown block", fence("markdown", "[a](".repeat(10000)), "[a]([a]("],
    ["lines of links in a markdown block", fence("md", "[a](\n".repeat(8000)), "[a]("],
    ["C# that takes highlight.js a minute", fence("csharp", "SELECT \n".repeat(6000)), "SELECT"],
    ["an address of e-mail", "a.".repeat(30000) + "@", "a.a.a."],
    ["deep quotes", "> ".repeat(3000) + "deep", "> > deep"],
    ["quotes that a browser would nest", "> ".repeat(200) + "deep", "> > deep"],
    ["deep lists", Array.from({ length: 800 }, (_, i) => `${" ".repeat(i)}- deep`).join("\n"), "- deep"],
    ["deep numbers", "1. ".repeat(3000) + "deep", "1. deep"],
    ["deep emphasis", "*".repeat(4000) + "deep" + "*".repeat(4000), "*deep*"],
    ["deep formulas", `$$${"{".repeat(5000)}${"}".repeat(5000)}$$`, "{{{"],
    ["formulas that are not closed", "\\(\\(".repeat(20000), "(((("],
    ["very many blocks", "# a\n".repeat(20000), "a"],
    ["very many blocks of code", "```\na\n```\n".repeat(6000), "a"],
    ["pictures that are not closed", "![".repeat(20000), "![!["],
    ...LANGUAGES.map((language) => [`${language} of one long line`, fence(language, "aA a_0x(\"<[".repeat(4500)), "aA a_0x"]),
];

const LONG_MS = 10000;   // for busy machines; a page that hung took minutes

// The page must respond while it renders a text, and show the text in the end.
async function heavyTextsDoNotStopThePage({ page, url }) {
    for (const [name, text, seen] of HEAVY) {
        await pretend(page, [{ content: text }, { content: "\n\nThe *end*." }]);
        await send(page, name);
        const answers = page.locator(".message.assistant:not(.writing)");
        await answers.first().waitFor();
        for (let i = 0; i < 4; i++) {
            const start = Date.now();
            await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 50)));
            assert.ok(Date.now() - start < LONG_MS, `${name}: the page stood still for ${Date.now() - start} ms`);
        }
        await rendered(page);
        const found = await lastAnswer(page).locator(".prose").textContent();
        assert.ok(found.includes(seen), `${name}: ${found.slice(0, 200)}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
        await page.goto("about:blank");
        await page.goto(url);
        await page.waitForFunction(() => document.querySelector(".model select")?.options.length > 0);
    }
}

async function whatIsNestedFitsAPhone({ page }) {
    const lists = Array.from({ length: 15 }, (_, i) => `${"  ".repeat(i)}- deep`).join("\n");
    await pretend(page, [{ content: `${lists}\n\n${"> ".repeat(30)}deep` }]);
    await ask(page, "Show me.");
    assert.equal(await lastAnswer(page).locator("li").count(), 15);
    assert.equal(await lastAnswer(page).locator("blockquote").count(), 30);
    assert.ok(await page.locator(".thread").evaluate((one) => one.scrollWidth <= one.clientWidth));
    assert.ok((await lastAnswer(page).locator("li").last().boundingBox()).width > 40);
}

async function oneHeavyBlockLeavesTheOthersAsTheyAre({ page }) {
    const heavy = fence("csharp", "SELECT \n".repeat(6000));
    await pretend(page, [{ content: `A **bold** word.\n\n${heavy}\n\n${"> ".repeat(100)}deep\n\n` }, { content: "- a *list*" }]);
    await ask(page, "Show me.");
    const prose = lastAnswer(page).locator(".prose");
    assert.equal(await prose.locator("strong").innerText(), "bold");
    assert.equal(await prose.locator("li em").innerText(), "list");
    assert.equal(await prose.locator(".code-bar span").innerText(), "csharp");
    assert.equal(await prose.locator("pre span").count(), 0);
    assert.match(await prose.locator(".as-written").innerText(), /^> > .* deep$/);
}

async function hostileTitlesAndFilesAreTexts({ page }) {
    const evil = "<img src=x onerror=alert(1)>";
    const node = { id: "a", parent: "root", role: "user", content: evil };
    const good = { format: "frit conversations", version: 1,
                   conversations: [{ id: "x", title: evil, nodes: { a: node }, chosen: { root: "a" }, settings: { system: evil } }] };
    const input = page.getByLabel("File to import");
    const give = (json) => input.setInputFiles({ name: "a.json", mimeType: "application/json",
                                                 buffer: Buffer.from(typeof json === "string" ? json : JSON.stringify(json)) });
    await give(good);
    await page.locator(".entry-open", { hasText: evil }).waitFor();
    assert.equal(await page.locator(".message.user .said").innerText(), evil);
    assert.equal(await page.title(), `${evil} – frit`);
    const broken = [
        "{", "[]", { format: "other", conversations: [] }, { ...good, conversations: [{}] },
        { ...good, conversations: [{ nodes: { a: { ...node, role: "system" } } }] },
        { ...good, conversations: [{ nodes: { a: { ...node, parent: "a" } } }] },
        { ...good, conversations: [{ nodes: { a: { ...node, parent: "b" }, b: { ...node, parent: "a" } } }] },
        "{\"format\": \"frit conversations\", \"conversations\": [{\"nodes\": {\"a\": {\"role\": \"user\", \"parent\": \"__proto__\"}}}]}",
    ];
    for (const json of broken) {
        await give(json);
        await page.locator(".notice", { hasText: "Nothing was imported" }).waitFor();
        await button(page, "Close this notice").click();
    }
    assert.equal(await page.locator(".entry").count(), 1);

    const n = 30000, many = {};   // the branches of a long conversation
    for (let i = 0; i < n; i++)
        many[`a${i}`] = { id: `a${i}`, parent: i < 40 || i > n - 40 ? (i === 0 ? "root" : "a0") : `a${i - 1}`, role: "tool", content: "x" };
    const start = Date.now();
    await give({ ...good, conversations: [{ title: "many", nodes: many, chosen: { a0: "a1" }, settings: {} }] });
    await page.locator(".entry-open", { hasText: "many" }).waitFor();
    assert.ok(Date.now() - start < 20000, `${n} messages take ${Date.now() - start} ms`);
}

export const tests = [
    { name: "nothing of an answer runs, loads or leaves", run: nothingOfAnAnswerRuns },
    { name: "Markdown, code and math show as they should", run: markdownShowsAsItShould },
    { name: "texts that are heavy to render do not stop the page", run: heavyTextsDoNotStopThePage },
    { name: "what is nested fits a phone", options: { viewport: { width: 360, height: 740 } }, run: whatIsNestedFitsAPhone },
    { name: "one heavy block leaves the others as they are", run: oneHeavyBlockLeavesTheOthersAsTheyAre },
    { name: "hostile titles and files are texts", run: hostileTitlesAndFilesAreTexts },
];
