// SPDX-License-Identifier: MIT
// A dialog that finds conversations by their titles and texts (Ctrl+K).
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { searchConversations } from "../database.js";
import { conversations, flush, startConversation } from "../store.js";
import { Icon } from "./icon.jsx";

const MAX_SHOWN = 50, WAIT_MS = 120;

// Conversations with the words in their titles, then those with the words in a message.
function useFound(wanted) {
    const [said, setSaid] = useState([]);
    const words = wanted.trim().toLowerCase();
    const titled = conversations.value.filter((one) => one.title.toLowerCase().includes(words));
    useEffect(() => {
        setSaid([]);
        if (words.length < 2) return undefined;
        let isOld = false;
        const timer = setTimeout(async () => {
            await flush();
            const found = await searchConversations(words, MAX_SHOWN).catch(() => []);
            if (!isOld) setSaid(found);
        }, WAIT_MS);
        return () => {
            isOld = true;
            clearTimeout(timer);
        };
    }, [words]);
    const others = said.filter(({ id }) => !titled.some((one) => one.id === id));
    return [...titled, ...others].slice(0, MAX_SHOWN);
}

export function Switcher({ close }) {
    const box = useRef(), [wanted, setWanted] = useState(""), [at, setAt] = useState(0);
    const found = useFound(wanted);
    const rows = [...found.map((one) => ({ ...one, run: () => { location.hash = one.id; } })),
                  { id: "new", title: "New conversation", icon: "plus", run: startConversation }];
    const chosen = Math.min(at, rows.length - 1);
    useLayoutEffect(() => {
        const before = document.activeElement;
        box.current.showModal();
        return () => before?.focus?.();
    }, []);
    const pick = (row) => {
        close();
        row.run();
    };
    const onKeyDown = (event) => {
        const step = { ArrowDown: 1, ArrowUp: rows.length - 1 }[event.key];
        if (step) {
            event.preventDefault();
            setAt((chosen + step) % rows.length);
            document.querySelector(`#found-${(chosen + step) % rows.length}`)?.scrollIntoView({ block: "nearest" });
        } else if (event.key === "Enter" && !event.isComposing) {
            event.preventDefault();
            pick(rows[chosen]);
        }
    };
    return (
        <dialog ref={box} class="switcher" aria-label="Find a conversation" onCancel={(event) => { event.preventDefault(); close(); }}
            onClick={(event) => { if (event.target === box.current) close(); }}>
            <input type="text" role="combobox" aria-label="Words of a conversation" aria-expanded="true" aria-controls="found"
                aria-activedescendant={`found-${chosen}`} aria-autocomplete="list" placeholder="Find a conversation" value={wanted}
                autoFocus onInput={(event) => { setWanted(event.target.value); setAt(0); }} onKeyDown={onKeyDown} />
            <ul id="found" role="listbox" aria-label="Conversations">
                {rows.map((row, i) => (
                    <li key={row.id} id={`found-${i}`} role="option" aria-selected={i === chosen} class={i === chosen ? "chosen" : ""}
                        onMouseMove={() => setAt(i)} onClick={() => pick(row)}>
                        {row.icon && <Icon name={row.icon} />}
                        <span class="found-title">{row.title || "Untitled"}</span>
                        {row.text && <small>{row.text}</small>}
                    </li>
                ))}
            </ul>
            <p class="keys"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span><span><kbd>Enter</kbd> opens</span><span><kbd>Esc</kbd> closes</span>
                <span><kbd>Ctrl</kbd> <kbd>Shift</kbd> <kbd>O</kbd> new conversation</span></p>
        </dialog>
    );
}
