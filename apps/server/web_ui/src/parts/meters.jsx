// SPDX-License-Identifier: MIT
// Below the box for the next message: speed of the last answer, and how full the context is.
import { gauge } from "../gauge.js";
import { path } from "../store.js";

function Gauge() {
    if (!gauge.value) return null;
    const { n, size } = gauge.value, cached = path.value.at(-1)?.stats?.n_cached;
    return (
        <span class={n > 0.9 * size ? "nearly-full" : ""} title={cached ? `${cached} tokens of the prompt were still there` : undefined}>
            <meter min={0} max={size} high={size * 0.9} value={n} aria-label="Context used" />
            {n} of {size} tokens
        </span>
    );
}

export function Meters() {
    const last = path.value.findLast((node) => node.stats)?.stats;
    if (!last && !gauge.value) {
        return (
            <p class="meters">
                <span>Enter sends, Shift+Enter begins a line</span>
                <span class="wide-only"><kbd>Ctrl</kbd> <kbd>K</kbd> finds conversations</span>
            </p>
        );
    }
    return (
        <p class="meters" id="meters">
            {last && last.per_second !== null && <span title="Tokens of the answer per second">{last.per_second.toFixed(1)} tokens/s</span>}
            {last && last.first_ms !== null && <span title="Time to the first token">{(last.first_ms / 1000).toFixed(2)} s to first</span>}
            {last?.n_answer > 0 && <span title="Length of the answer">{last.n_answer} {last.n_answer === 1 ? "token" : "tokens"}</span>}
            <Gauge />
        </p>
    );
}
