// SPDX-License-Identifier: MIT
// The tool calls of an answer, with boxes in which the user writes the results.
import { useState } from "preact/hooks";

import { sendResults } from "../generate.js";
import { running } from "../store.js";
import { Icon } from "./icon.jsx";

function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;   // it is still being written
    }
}

function Call({ call, result, setResult }) {
    return (
        <div class="call">
            <p class="call-name"><Icon name="tool" /><code>{call.name}</code></p>
            <pre tabIndex={0} role="region" aria-label={`Arguments of ${call.name}`}>{pretty(call.arguments)}</pre>
            {setResult && (
                <label>Result
                    <textarea rows={2} value={result ?? ""} onInput={(event) => setResult(event.target.value)} />
                </label>
            )}
        </div>
    );
}

export function Calls({ node, isOpen }) {
    const [results, setResults] = useState({});
    const submit = (event) => {
        event.preventDefault();
        sendResults(node, node.calls.map((call) => [call.id, results[call.id] ?? ""]));
    };
    return (
        <form class="calls" onSubmit={submit} aria-label="Calls of tools">
            {node.calls.map((call) => (
                <Call key={call.id} call={call} result={results[call.id]}
                    setResult={isOpen ? (text) => setResults({ ...results, [call.id]: text }) : null} />
            ))}
            {isOpen && (
                <button type="submit" class="primary" disabled={running.value !== null}>
                    {node.calls.length > 1 ? "Send the results" : "Send the result"}
                </button>
            )}
        </form>
    );
}
