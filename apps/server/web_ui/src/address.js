// SPDX-License-Identifier: MIT
// The address names the conversation that is shown: #ID. So back, forward, links and reloads work.
import { effect } from "@preact/signals";

import { current, openConversation, say, startConversation } from "./store.js";

const named = () => location.hash.slice(1);
const isEmpty = (conversation) => Object.keys(conversation.nodes).length === 0;
let shown;   // the conversation that the address stands for

// Shows the conversation that the address names.
async function follow() {
    const id = named();
    if (id === "") {
        if (!isEmpty(current.value)) startConversation();
    } else if (id !== current.value.id && !(await openConversation(id)) && named() === id) {
        say("This browser has no conversation of that address.");
        history.replaceState(null, "", location.pathname + location.search);
        if (!isEmpty(current.value)) startConversation();
    }
}

// Sets the address; a conversation has one once it has a message.
function write() {
    const { id } = current.value, wanted = isEmpty(current.value) ? "" : id;
    const isOther = shown !== undefined && shown !== id;
    shown = id;
    if (wanted === named()) return;
    const address = wanted ? `#${wanted}` : location.pathname + location.search;
    if (isOther) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
}

export async function startAddresses() {
    await follow();
    effect(write);
    addEventListener("popstate", follow);
}
