// SPDX-License-Identifier: MIT
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

// A text as HTML that shows it.
export const escape = (text) => text.replace(/[&<>"']/g, (c) => escapes[c]);
