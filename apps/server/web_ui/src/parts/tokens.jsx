// SPDX-License-Identifier: MIT
// The tokens of an answer, coloured by their probabilities, with their alternatives.
import { useState } from "preact/hooks";

const percent = (logprob) => {
    const p = 100 * Math.exp(logprob);
    return p >= 0.1 ? `${p.toFixed(1)} %` : "< 0.1 %";
};
const level = (logprob) => Math.min(4, Math.floor(5 * Math.exp(logprob)));   // 4: nearly certain
const visible = (text) => text.replaceAll("\n", "⏎\n").replaceAll("\t", "⇥\t");

function Alternatives({ token }) {
    const others = token.top_logprobs ?? [];
    return (
        <table class="alternatives">
            <caption>“{visible(token.token)}” had {percent(token.logprob)}</caption>
            <thead><tr><th scope="col">Token</th><th scope="col">Probability</th></tr></thead>
            <tbody>
                {others.map((one, i) => (
                    <tr key={i} class={one.token === token.token ? "taken" : ""}>
                        <td><code>{visible(one.token)}</code></td>
                        <td><meter min={0} max={1} value={Math.exp(one.logprob)} aria-label={percent(one.logprob)} />
                            {percent(one.logprob)}</td>
                    </tr>
                ))}
            </tbody>
        </table>
    );
}

export function Tokens({ tokens }) {
    const [at, setAt] = useState(0);
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10, Home: -tokens.length, End: tokens.length };
    const onKeyDown = (event) => {
        if (!(event.key in steps)) return;
        event.preventDefault();
        setAt(Math.max(0, Math.min(tokens.length - 1, at + steps[event.key])));
    };
    const onPick = (event) => {
        const picked = event.target.dataset?.index;
        if (picked !== undefined) setAt(Number(picked));
    };
    const shown = tokens[Math.min(at, tokens.length - 1)];
    const id = (i) => `token-${i}`;
    return (
        <div class="tokens">
            <div class="token-text" role="listbox" tabIndex={0} aria-label="Tokens; arrow keys move" aria-activedescendant={id(at)}
                onKeyDown={onKeyDown} onMouseOver={onPick} onClick={onPick}>
                {tokens.map((one, i) => (
                    <span key={i} id={i === at ? id(at) : undefined} role="option" aria-selected={i === at} data-index={i}
                        class={`token p${level(one.logprob)}`}>{visible(one.token)}</span>
                ))}
            </div>
            <Alternatives token={shown} />
        </div>
    );
}
