// SPDX-License-Identifier: MIT
// A message: its text, its branches, and its buttons.
import { useState } from "preact/hooks";

import { copyText } from "../clipboard.js";
import { addNode, changeNode, childrenOf, choose, openCalls, removeNode } from "../conversation.js";
import { answerTo, continueAnswer, regenerate, retry, send } from "../generate.js";
import { describe } from "../problems.js";
import { contextSize, current, put, running, say } from "../store.js";
import { Calls } from "./calls.jsx";
import { SentFiles } from "./files.jsx";
import { IconButton } from "./icon.jsx";
import { Markdown } from "./markdown.jsx";
import { SentPictures } from "./pictures.jsx";
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

// Edits a message: a message of the user is sent again as a new branch, an answer becomes a branch with the new text.
function Editor({ node, end }) {
    const [text, setText] = useState(node.content);
    const isUser = node.role === "user";
    const save = () => {
        end();
        if (isUser) send(text, node.parent, node);
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
                <button type="button" class="primary" disabled={running.value !== null || (isUser && !text.trim() && !node.files && !node.pictures)}
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
    if (node.role === "user") return node.content && <p class="said">{node.content}</p>;
    if (node.role === "tool") return <pre class="result" tabIndex={0}>{node.content}</pre>;
    if (!node.content && isWriting && !node.reasoning) return <Waiting />;
    return node.content && <Markdown text={node.content} />;
}

// Shown until the first word, as a long prompt takes a while.
function Waiting() {
    const { total, processed } = running.value?.progress ?? {};
    const percent = total > 0 && processed < total ? Math.floor(100 * processed / total) : null;
    return (
        <p class="waiting">
            {percent === null ? <span class="hidden">Waiting</span> : (
                <span class="late"><progress max={100} value={percent} aria-label="Prompt read" /> Reading the prompt: {percent} %</span>
            )}
        </p>
    );
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

// Buttons after an answer that is not complete.
function WaysOn({ node }) {
    const isRunning = running.value !== null, goesOn = node.content !== "" && !node.calls?.length;
    return (
        <span class="ways-on">
            {goesOn && <button type="button" disabled={isRunning} onClick={() => continueAnswer(node)}>Continue</button>}
            <button type="button" disabled={isRunning} onClick={() => (goesOn ? regenerate(node) : retry(node))}>
                {goesOn ? "Answer anew" : "Try again"}</button>
            {node.code === "invalid_api_key" && <button type="button" onClick={() => location.reload()}>Load the page again</button>}
        </span>
    );
}

function endOf(node) {
    const size = contextSize(current.value), { n_prompt, n_answer } = node.stats ?? {};
    if (node.finish === "content_filter") return "The answer was filtered.";
    if (node.finish !== "length") return null;
    return size && n_prompt + n_answer >= size ? `The answer ended because the context of ${size} tokens is full.`
                                               : "The answer ended at its limit of tokens.";
}

function End({ node, isLast, isWriting }) {
    if (isWriting) return null;
    const problem = node.error ? { text: node.error, detail: node.detail } : node.unfinished ? describe({ code: "unfinished" }) : null;
    if (problem) {
        return (
            <div class="problem" role="alert">
                <p>{problem.text}</p>
                {problem.detail && <small>{problem.detail}</small>}
                {isLast && <WaysOn node={node} />}
            </div>
        );
    }
    const text = node.stopped ? "Stopped." : endOf(node);
    return text && <p class="end">{text}{isLast && <WaysOn node={node} />}</p>;
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
            {node.files && <SentFiles files={node.files} />}
            {node.pictures && <SentPictures pictures={node.pictures} />}
            {edits ? <Editor node={node} end={() => setEdits(false)} /> : <Text node={node} isWriting={isWriting} />}
            {node.calls?.length > 0 && <Calls node={node} isOpen={isOpen} />}
            {showsTokens && node.tokens?.length > 0 && <Tokens tokens={node.tokens} />}
            <End node={node} isLast={isLast} isWriting={isWriting} />
            {!edits && !isWriting && (
                <Actions node={node} isLast={isLast} edit={() => setEdits(true)} showsTokens={showsTokens}
                    setShowsTokens={setShowsTokens} />
            )}
        </li>
    );
}
