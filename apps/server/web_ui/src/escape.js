// SPDX-License-Identifier: MIT
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

// Escapes a text for HTML.
export const escape = (text) => text.replace(/[&<>"']/g, (c) => escapes[c]);
