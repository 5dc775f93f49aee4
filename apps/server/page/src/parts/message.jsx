// SPDX-License-Identifier: MIT
// One message: its text, its branches, and what can be done with it.
import { useState } from "preact/hooks";

import { copyText } from "../clipboard.js";
import { addNode, changeNode, childrenOf, choose, openCalls, removeNode } from "../conversation.js";
import { answerTo, continueAnswer, regenerate, send } from "../generate.js";
import { current, put, running, say } from "../store.js";
import { Calls } from "./calls.jsx";
import { IconButton } from "./icon.jsx";
import { Markdown } from "./markdown.jsx";
import { Tokens } from "./tokens.jsx";

const NAMES = { user: "You", assistant: "Model", tool: "Result of a tool" };

function Branches({ node }) {
    const siblings = childrenOf(current.value, node.parent);
    const at = siblings.findIndex((one) => one.id === node.id);
    if (siblings.length < 2) return null;
    const go = (step) => put(choose(current.value, siblings[at + step]), false);
    const isRunning = running.value !== null;
    return (
        <span class="branches">
            <IconButton icon="left" label="Branch before" disabled={at === 0 || isRunning} onClick={() => go(-1)} />
            <span aria-label={`Branch ${at + 1} of ${siblings.length}`} role="img">{at + 1}/{siblings.length}</span>
            <IconButton icon="right" label="Branch after" disabled={at === siblings.length - 1 || isRunning}
                onClick={() => go(1)} />
        </span>
    );
}

// A user's message is sent again as a branch; an answer is kept as a branch with the new text.
function Editor({ node, end }) {
    const [text, setText] = useState(node.content);
    const isUser = node.role === "user";
    const save = () => {
        end();
        if (isUser) send(text, node.parent);
        else put(addNode(current.value, branchFields(node, text))[0]);
    };
    const onKeyDown = (event) => {
        if (event.key === "Escape") {
            event.preventDefault();
            end();
        } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            save();
        }
    };
    return (
        <div class="editor">
            <textarea aria-label="Text of the message" value={text} rows={Math.min(20, text.split("\n").length + 2)}
                ref={(area) => area && !area.dataset.seen && (area.dataset.seen = "1", area.focus())}
                onInput={(event) => setText(event.target.value)} onKeyDown={onKeyDown} />
            <div class="editor-actions">
                <button type="button" class="primary" disabled={running.value !== null || (isUser && !text.trim())}
                    onClick={save}>{isUser ? "Send as a branch" : "Keep as a branch"}</button>
                <button type="button" onClick={end}>Cancel</button>
            </div>
        </div>
    );
}

function branchFields({ parent, role, model, reasoning, calls, call_id }, content) {
    return { parent, role, model, reasoning, calls, call_id, content };
}

function Actions({ node, isLast, edit, showsTokens, setShowsTokens }) {
    const isRunning = running.value !== null;
    const isAnswer = node.role === "assistant";
    const copy = async () => say((await copyText(node.content)) ? "Copied." : "The browser did not copy it.");
    return (
        <div class="actions" role="group" aria-label={`${NAMES[node.role]}: actions`}>
            <Branches node={node} />
            <IconButton icon="copy" label="Copy the text" onClick={copy} />
            <IconButton icon="edit" label="Edit" disabled={isRunning} onClick={edit} />
            {isAnswer && <IconButton icon="again" label="Answer again" disabled={isRunning} onClick={() => regenerate(node)} />}
            {isAnswer && isLast && !node.calls?.length && node.content && (
                <IconButton icon="forward" label="Continue the answer" disabled={isRunning} onClick={() => continueAnswer(node)} />
            )}
            {!isAnswer && isLast && (
                <IconButton icon="forward" label="Answer this" disabled={isRunning} onClick={() => answerTo(node)} />
            )}
            {node.tokens?.length > 0 && (
                <IconButton icon="tokens" label="Probabilities of tokens" aria-pressed={showsTokens}
                    onClick={() => setShowsTokens(!showsTokens)} />
            )}
            <IconButton icon="trash" label="Delete from here" disabled={isRunning}
                onClick={() => removeWithUndo(node)} />
        </div>
    );
}

function removeWithUndo(node) {
    const before = current.value;
    put(removeNode(before, node.id));
    say("Deleted.", { label: "Undo", run: () => put(before) });
}

function Text({ node, isWriting }) {
    if (node.role === "user") return <p class="said">{node.content}</p>;
    if (node.role === "tool") return <pre class="result" tabIndex={0}>{node.content}</pre>;
    if (!node.content && isWriting && !node.reasoning) return <p class="waiting"><span class="hidden">Waiting</span></p>;
    return <Markdown text={node.content} />;
}

function Reasoning({ node, isWriting }) {
    if (!node.reasoning) return null;
    return (
        <details class="reasoning" open={isWriting && !node.content}>
            <summary>Reasoning</summary>
            <Markdown text={node.reasoning} />
        </details>
    );
}

const ENDS = { length: "The answer ended at its limit of tokens.", content_filter: "The answer was filtered." };

function End({ node }) {
    if (node.error) return <p class="problem" role="alert">{node.error}</p>;
    if (node.stopped) return <p class="end">Stopped.</p>;
    return ENDS[node.finish] ? <p class="end">{ENDS[node.finish]}</p> : null;
}

export function Message({ node, isLast }) {
    const [edits, setEdits] = useState(false);
    const [showsTokens, setShowsTokens] = useState(false);
    const isWriting = running.value?.node === node.id;
    const isOpen = !isWriting && openCalls(current.value, node).length > 0 && isLast;
    return (
        <li class={`message ${node.role}${isWriting ? " writing" : ""}`}>
            <h2 class="author">{node.role === "assistant" && node.model ? node.model : NAMES[node.role]}</h2>
            <Reasoning node={node} isWriting={isWriting} />
            {edits ? <Editor node={node} end={() => setEdits(false)} /> : <Text node={node} isWriting={isWriting} />}
            {node.calls?.length > 0 && <Calls node={node} isOpen={isOpen} />}
            {showsTokens && node.tokens?.length > 0 && <Tokens tokens={node.tokens} />}
            <End node={node} />
            {!edits && !isWriting && (
                <Actions node={node} isLast={isLast} edit={() => setEdits(true)} showsTokens={showsTokens}
                    setShowsTokens={setShowsTokens} />
            )}
        </li>
    );
}
