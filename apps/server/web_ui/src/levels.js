// SPDX-License-Identifier: MIT
// How much of a text is rendered: everything, all but colours and formulas, or nothing (the source is shown).
export const FULL = 0, BARE = 1, PLAIN = 2;
