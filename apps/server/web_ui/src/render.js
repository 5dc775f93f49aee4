// SPDX-License-Identifier: MIT
// Renders texts in the worker (worker.js), one after the other. If a block takes too long, the worker is ended, and the
// block is tried without colours and formulas; if that fails too, its source is shown.
import { FULL, PLAIN } from "./levels.js";

const LIMIT_MS = 2000;     // for one block
const N_LIMITS = 4;        // of one text, which is shown as it was written then
const N_SLOW = 16;         // blocks of a text that are remembered

const waiting = [];
let worker = null, isReady = false, job = null, timer;

// With trusted types, only this script may be loaded as a worker.
const policy = globalThis.trustedTypes?.createPolicy("frit", { createScriptURL: () => "assets/worker.js" });

function start() {
    isReady = false;
    worker = new Worker(policy?.createScriptURL("") ?? "assets/worker.js");
    worker.onmessage = ({ data }) => take(data);
    worker.onerror = fail;   // it could not be loaded, or has no memory
}

function fail() {
    clearTimeout(timer);
    worker = null;
    if (job) finish([{ source: job.text, html: null }]);
}

function ask() {
    if (!worker) start();
    if (!isReady) return;
    job.sources = null;
    job.made = [];
    worker.postMessage({ text: job.text, shown: job.shown.map((one) => one.source), slow: job.slow });
    timer = setTimeout(giveUp, LIMIT_MS);
}

function take({ isReady: began, sources, at, isShown, html }) {
    clearTimeout(timer);
    if (began) {
        isReady = true;
        if (job) ask();
        return;
    }
    if (sources) job.sources = sources;
    else job.made.push(isShown ? job.shown[at] : { source: job.sources[at], html });
    if (job.made.length === job.sources.length) finish(job.made);
    else timer = setTimeout(giveUp, LIMIT_MS);
}

function giveUp() {
    worker.terminate();
    worker = null;
    job.n_limits++;
    const whole = job.sources === null || job.n_limits >= N_LIMITS;
    const source = whole ? job.text : job.sources[job.made.length];
    const before = job.slow.filter((one) => one.whole === whole && source.startsWith(one.source));
    const level = job.n_limits >= N_LIMITS ? PLAIN : 1 + Math.max(FULL, ...before.map((one) => one.level));
    job.slow = [...job.slow, { source, whole, level }].slice(-N_SLOW);
    job.shown = job.made.length > 0 ? job.made : job.shown;
    ask();
}

function finish(blocks) {
    const { resolve, slow } = job;
    job = null;
    resolve({ blocks, slow });
    next();
}

function next() {
    if (job || waiting.length === 0) return;
    job = waiting.shift();
    ask();
}

// The blocks of a text: `source`, and `html`, or null if the source is shown. `before`: the blocks of a shorter text; those
// that did not change are used again.
export function render(text, before) {
    return new Promise((resolve) => {
        waiting.push({ text, shown: before?.blocks ?? [], slow: before?.slow ?? [], n_limits: 0, resolve });
        next();
    });
}

// Starts the worker at once, so that it is ready for the first text.
start();
