// SPDX-License-Identifier: MIT
// The list of conversations: opens, imports and deletes them.
import { useRef, useState } from "preact/hooks";

import {
    addConversations, allConversations, conversations, current, deleteConversation, openIfNeeded, renameConversation, runs, say,
    startConversation,
} from "../store.js";
import { download, exportJson, exportMarkdown, importJson } from "../transfer.js";
import { Icon, IconButton } from "./icon.jsx";

function Rename({ title, end }) {
    const [text, setText] = useState(title);
    const onKeyDown = (event) => {
        if (event.key === "Escape") {
            event.preventDefault();
            end(null);
        }
    };
    return (
        <form onSubmit={(event) => { event.preventDefault(); end(text); }}>
            <input class="rename" aria-label="Title" value={text} ref={(input) => input?.focus()}
                onInput={(event) => setText(event.target.value)} onKeyDown={onKeyDown} onBlur={() => end(text)} />
        </form>
    );
}

function Entry({ entry, done }) {
    const [renames, setRenames] = useState(false);
    const isCurrent = entry.id === current.value.id;
    const rename = async () => {
        await openIfNeeded(entry.id);
        setRenames(true);
    };
    const end = (title) => {
        if (renames && title !== null) renameConversation(entry.id, title);
        setRenames(false);
    };
    if (renames) return <li class="entry"><Rename title={entry.title} end={end} /></li>;
    return (
        <li class={`entry${isCurrent ? " current" : ""}`}>
            <a class="entry-open" href={`#${entry.id}`} aria-current={isCurrent ? "page" : undefined} onClick={done}>
                {runs.value.has(entry.id) && <span class="busy" aria-label="answering" role="img" />}
                <span>{entry.title || "Untitled"}</span>
            </a>
            <span class="entry-actions">
                <IconButton icon="edit" label={`Rename ${entry.title}`} onClick={rename} />
                <IconButton icon="trash" label={`Delete ${entry.title}`} onClick={() => deleteConversation(entry.id)} />
            </span>
        </li>
    );
}

async function importFiles(files) {
    try {
        const found = [];
        for (const file of files) found.push(...importJson(await file.text()));
        await addConversations(found);
        say(`Imported ${found.length} conversation${found.length === 1 ? "" : "s"}.`);
    } catch (error) {
        say(`Nothing was imported: ${error.message}`);
    }
}

function Transfer() {
    const input = useRef();
    const isEmpty = conversations.value.length === 0;
    const hasOne = Object.keys(current.value.nodes).length > 0;
    const exportAll = async () =>
        download("frit-conversations.json", exportJson(await allConversations()), "application/json");
    const exportThis = () => download("conversation.md", exportMarkdown(current.value), "text/markdown");
    return (
        <div class="transfer">
            <button type="button" onClick={() => input.current.click()}><Icon name="upload" />Import</button>
            <button type="button" disabled={isEmpty} title="All conversations as a file" onClick={exportAll}><Icon name="download" />Export</button>
            <button type="button" disabled={!hasOne} title="This conversation as Markdown" onClick={exportThis}><Icon name="download" />Markdown</button>
            <a href="docs"><Icon name="book" />API</a>
            <input ref={input} class="hidden" type="file" accept=".json,application/json" multiple tabIndex={-1}
                aria-label="File to import"
                onChange={(event) => { importFiles([...event.target.files]); event.target.value = ""; }} />
        </div>
    );
}

export function Sidebar({ close, done }) {
    const [wanted, setWanted] = useState("");
    const shown = conversations.value.filter((one) => one.title.toLowerCase().includes(wanted.trim().toLowerCase()));
    const start = () => {
        startConversation();
        done();
        requestAnimationFrame(() => document.querySelector("#prompt")?.focus());
    };
    return (
        <nav id="sidebar" class="sidebar" aria-label="Conversations" tabIndex={-1}>
            <div class="sidebar-top">
                <span class="name">frit</span>
                <IconButton icon="close" label="Close the list" onClick={close} />
            </div>
            <button type="button" class="new-chat" title="Ctrl+Shift+O" onClick={start}><Icon name="plus" />New conversation</button>
            <input class="filter" type="search" aria-label="Find a conversation" placeholder="Find" value={wanted}
                onInput={(event) => setWanted(event.target.value)} />
            <ul class="entries">
                {shown.map((entry) => <Entry key={entry.id} entry={entry} done={done} />)}
                {shown.length === 0 && <li class="quiet">{wanted ? "Nothing found." : "Nothing here yet."}</li>}
            </ul>
            <Transfer />
        </nav>
    );
}
