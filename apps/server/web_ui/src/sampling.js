// SPDX-License-Identifier: MIT
// Names and descriptions of sampling options. The server (/sampling) has the list of options with ranges and defaults; an
// option that is missing here is shown with the server's help.
const WORDS = {
    temperature: ["Temperature", "Higher answers are more varied; 0 always takes the likeliest word."],
    top_p: ["Top p", "Leaves out unlikely words: those that are kept have this share of the probability."],
    top_k: ["Top k", "Keeps this many of the likeliest words; 0 keeps all."],
    min_p: ["Min p", "Leaves out words less likely than this share of the likeliest one's probability."],
    repeat_penalty: ["Repetition penalty", "Above 1, words of the last while become less likely."],
    repeat_last_n: ["Length of that while", "How many tokens the penalties look back; −1: all."],
    frequency_penalty: ["Frequency penalty", "Words become less likely with each time they came."],
    presence_penalty: ["Presence penalty", "Words that came at all become less likely."],
    dry_multiplier: ["DRY: strength", "Makes the repetition of whole phrases unlikely; 0 turns it off."],
    dry_base: ["DRY: growth", "How much more with each word of the phrase."],
    dry_allowed_length: ["DRY: free length", "Shorter phrases may be repeated."],
    dry_penalty_last_n: ["DRY: look back", "How many tokens are searched for phrases; −1: all."],
    xtc_probability: ["XTC: probability", "How often the likeliest words are left out, for surprise; 0: never."],
    xtc_threshold: ["XTC: threshold", "Words above this probability may be left out."],
    typical_p: ["Typical p", "Keeps the words that surprise as much as is typical; 1 turns it off."],
    top_n_sigma: ["Top n sigma", "Leaves out words this many deviations below the best; 0 turns it off."],
    tfs_z: ["Tail-free z", "Cuts the flat tail of unlikely words; 1 turns it off."],
    dynatemp_range: ["Dynamic temperature: range", "Where the model is unsure, the temperature rises by as much; 0 turns it off."],
    dynatemp_exponent: ["Dynamic temperature: exponent", "How its unsureness counts."],
    adaptive_target: ["Adaptive p: target", "Prefers words of this probability; 0 turns it off."],
    adaptive_decay: ["Adaptive p: memory", "How long earlier words count."],
    mirostat: ["Mirostat", "1 or 2 keep the surprise of the text steady, in place of the options above; 0 turns it off."],
    mirostat_tau: ["Mirostat: surprise", "In bits for each word."],
    mirostat_eta: ["Mirostat: speed", "How fast it adapts."],
};

export const FIRST = ["temperature", "top_p", "top_k", "min_p"];

function rangeOf({ min, max }) {
    const isKnown = (value) => value !== undefined && Math.abs(value) < 1e6;
    if (!isKnown(min)) return "";
    return isKnown(max) ? ` ${min} … ${max}.` : ` From ${min}.`;
}

export function labelOf(row) {
    const words = row.name.replaceAll("_", " ");
    return WORDS[row.name]?.[0] ?? words[0].toUpperCase() + words.slice(1);
}

export const helpOf = (row) => `${WORDS[row.name]?.[1] ?? row.help}${rangeOf(row)}`;
