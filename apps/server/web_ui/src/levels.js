// SPDX-License-Identifier: MIT
// What is made of a text: everything, no colours and formulas, or nothing: it is shown as it was written.
export const FULL = 0, BARE = 1, PLAIN = 2;
