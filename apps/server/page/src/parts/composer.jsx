// SPDX-License-Identifier: MIT
// The box for the next message, and the meters below it.
import { useEffect, useRef, useState } from "preact/hooks";

import { openCalls } from "../conversation.js";
import { send, stop } from "../generate.js";
import { chosenModel, current, path, running } from "../store.js";
import { IconButton } from "./icon.jsx";

// Speed and context of the last answer.
function Meters() {
    const last = path.value.findLast((node) => node.stats)?.stats;
    const size = chosenModel()?.meta?.n_ctx;
    if (!last) return <p class="meters">Enter sends, Shift+Enter begins a line</p>;
    const used = last.n_prompt === null ? null : last.n_prompt + last.n_answer;
    return (
        <p class="meters" id="meters">
            {last.per_second !== null && <span title="Tokens of the answer per second">{last.per_second.toFixed(1)} tokens/s</span>}
            {last.first_ms !== null && <span title="Time to the first token">{(last.first_ms / 1000).toFixed(2)} s to first</span>}
            <span title="Tokens of the answer">{last.n_answer} tokens</span>
            {used !== null && size && (
                <span title={last.n_cached ? `${last.n_cached} of the prompt were still there` : undefined}>
                    <meter min={0} max={size} high={size * 0.9} value={used} aria-label="Context used" />
                    {used} of {size}
                </span>
            )}
        </p>
    );
}

export function Composer() {
    const [text, setText] = useState("");
    const box = useRef();
    const isRunning = running.value !== null;
    const last = path.value.at(-1);
    const waits = last?.role === "assistant" && openCalls(current.value, last).length > 0;
    useEffect(() => {
        box.current.style.height = "auto";
        box.current.style.height = `${box.current.scrollHeight}px`;
    }, [text]);
    useEffect(() => {
        if (matchMedia("(pointer: fine)").matches) box.current.focus();   // a phone would open its keyboard
    }, [current.value.id]);
    const submit = (event) => {
        event?.preventDefault();
        if (isRunning || !text.trim()) return;
        setText("");
        send(text, last?.id);
    };
    const onKeyDown = (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    };
    return (
        <form class="composer" onSubmit={submit}>
            <div class="composer-box">
                <textarea id="prompt" ref={box} rows={1} value={text} aria-label="Message"
                    placeholder={waits ? "The model waits for the results above" : "Write a message"}
                    onInput={(event) => setText(event.target.value)} onKeyDown={onKeyDown} />
                {isRunning ? <IconButton icon="stop" label="Stop the answer" class="send" onClick={stop} />
                           : <IconButton icon="send" label="Send" class="send" type="submit" disabled={!text.trim()} />}
            </div>
            <Meters />
        </form>
    );
}
