// SPDX-License-Identifier: MIT
// Explains errors, by the codes of the server and of api.js: what to do. The server's sentence is shown as a detail, and
// alone for unknown codes.
const WORDS = {
    offline: "This device has no network.",
    unreachable: "The server cannot be reached: it has ended, or the network between is down.",
    broken_off: "The connection ended before the answer was whole.",
    invalid_api_key: "The server asks for its key. Load the page again and give the key as the password.",
    body_too_large: "The message is larger than the server takes. The pictures of the whole conversation go along with it.",
    queue_full: "The server is busy with other requests.",
    rate_limit_exceeded: "The key has reached its limit of requests.",
    token_limit_exceeded: "The key has reached its limit of tokens.",
    concurrency_limit_exceeded: "The key answers as many requests at once as it may.",
    shutting_down: "The server is about to end, or to start again.",
    too_many_connections: "The server has as many connections as it takes.",
    too_many_pictures: "The server holds as many pictures as it can.",
    too_many_bodies: "The server reads as many requests as it can.",
    context_length_exceeded: "This turn alone is longer than the model's context. A shorter message, fewer files, smaller pictures or a new conversation fit.",
    failed: "The server failed.",
    unfinished: "This answer is not whole: the page was closed while it was written, or another tab writes it.",
};

export function describe({ code, message, seconds }) {
    if (!WORDS[code]) return { text: message, code };
    const wait = seconds ? ` It may take ${seconds} second${seconds === 1 ? "" : "s"}.` : "";
    const isOwn = ["offline", "unreachable", "broken_off", "unfinished"].includes(code);   // a browser's words say less
    return { text: WORDS[code] + wait, detail: isOwn ? "" : message, code };
}
