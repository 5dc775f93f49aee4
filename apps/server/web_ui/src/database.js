// SPDX-License-Identifier: MIT
// Conversations in IndexedDB: a store of whole conversations, and an index for the list. Without storage (a private window,
// a full disk), the conversations of this visit are in memory.
const NAME = "frit";
const STORES = ["conversations", "index"];

let opened;

function done(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

function open() {
    opened ??= new Promise((resolve, reject) => {
        const request = indexedDB.open(NAME, 1);
        request.onupgradeneeded = () => STORES.forEach((store) => request.result.createObjectStore(store, { keyPath: "id" }));
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    return opened;
}

// Runs `use` on both stores within one transaction, and waits until the transaction is on disk.
async function change(use) {
    const transaction = (await open()).transaction(STORES, "readwrite");
    use(...STORES.map((store) => transaction.objectStore(store)));
    await new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
}

export async function listConversations() {
    return done((await open()).transaction("index").objectStore("index").getAll());
}

export async function readConversation(id) {
    return done((await open()).transaction("conversations").objectStore("conversations").get(id));
}

// Finds conversations with the words, in lower case, in a message: id, title, and the text around the words.
export async function searchConversations(words, limit) {
    const found = [], request = (await open()).transaction("conversations").objectStore("conversations").openCursor();
    return new Promise((resolve, reject) => {
        request.onerror = () => reject(request.error);
        request.onsuccess = () => {
            const cursor = request.result;
            if (!cursor || found.length >= limit) {
                resolve(found);
                return;
            }
            const { id, title, nodes } = cursor.value;
            for (const { content } of Object.values(nodes)) {
                const at = content.toLowerCase().indexOf(words);
                if (at < 0) continue;
                found.push({ id, title, text: content.slice(Math.max(0, at - 30), at + words.length + 60).replace(/\s+/g, " ") });
                break;
            }
            cursor.continue();
        };
    });
}

export function writeConversations(list) {
    return change((conversations, index) => {
        for (const one of list) {
            conversations.put(one);
            index.put({ id: one.id, title: one.title, updated: one.updated });
        }
    });
}

export function removeConversation(id) {
    return change((conversations, index) => {
        conversations.delete(id);
        index.delete(id);
    });
}
