// SPDX-License-Identifier: MIT
// The worker that renders texts. Some texts take a parser or a highlighter minutes, or more stack than there is. In a worker
// they do not block the UI, which ends a slow worker (render.js).
import { BARE, FULL } from "./levels.js";
import { blocksOf, htmlOf } from "./markdown.js";

// A text that was slow before, or begins with a slow one, gets a lower level. `whole`: a whole text, not one block.
function levelOf(source, slow, whole) {
    const found = slow.filter((one) => one.whole === whole && source.startsWith(one.source));
    return Math.max(FULL, ...found.map((one) => one.level));
}

// such as a stack overflow
function attempt(make, otherwise) {
    try {
        return make();
    } catch {
        return otherwise;
    }
}

onmessage = ({ data: { text, shown, slow } }) => {
    const level = levelOf(text, slow, true);
    const sources = (level === FULL && attempt(() => blocksOf(text), null)) || [text];
    postMessage({ sources });
    sources.forEach((source, at) => {
        if (shown[at] === source) {
            postMessage({ at, isShown: true });
            return;
        }
        const least = Math.max(level, levelOf(source, slow, false));
        const html = attempt(() => htmlOf(source, least), null) ?? (least < BARE ? attempt(() => htmlOf(source, BARE), null) : null);
        postMessage({ at, html });
    });
};
postMessage({ isReady: true });
