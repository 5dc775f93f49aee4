// SPDX-License-Identifier: MIT
// How much of the context the shown messages take: from the usage of the last answer, or counted by the server if there is
// none: after an import, an edit, a change of branch.
import { computed, effect, signal } from "@preact/signals";

import { messageOf, saidTo, systemOf } from "./conversation.js";
import { countOf } from "./fit.js";
import { requestOf } from "./generate.js";
import { chosenModel, contextSize, current, path, running } from "./store.js";

const WAIT_MS = 300;

const counted = signal(null);   // key, and n

function keyOf(conversation, last) {
    return last ? `${last.id} ${last.content.length} ${conversation.settings.system.length} ${chosenModel()?.id}` : null;
}

export const gauge = computed(() => {
    const last = path.value.at(-1), size = contextSize(current.value);
    if (!size || !last) return null;
    const { n_prompt: n, n_answer } = last.stats ?? {};
    if (typeof n === "number") return { n: n + n_answer, size };
    return counted.value?.key === keyOf(current.value, last) ? { n: counted.value.n, size } : null;
});

let timer, controller;

export function startGauge() {
    effect(() => {
        clearTimeout(timer);
        controller?.abort();
        const conversation = current.value, last = path.value.at(-1), key = keyOf(conversation, last);
        if (gauge.value || running.value || !contextSize(conversation) || key === null) return;
        timer = setTimeout(async () => {
            controller = new AbortController();
            const messages = [...systemOf(conversation), ...saidTo(conversation, last.id).map(messageOf)];
            try {
                counted.value = { key, n: await countOf(requestOf(conversation.settings), messages, controller.signal) };
            } catch {
                // no gauge is shown
            }
        }, WAIT_MS);
    });
}
