// SPDX-License-Identifier: MIT
// The box for the next message, its files and its pictures.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { openCalls } from "../conversation.js";
import { draftKey, draftOf, setDraft } from "../drafts.js";
import { readFiles } from "../files.js";
import { send, stop } from "../generate.js";
import { readPictures, splitPictures } from "../pictures.js";
import { announced, current, path, running, say, whyNoPictures } from "../store.js";
import { FileChips } from "./files.jsx";
import { IconButton } from "./icon.jsx";
import { Meters } from "./meters.jsx";
import { PictureButton, Thumbnails } from "./pictures.jsx";

const draft = signal(draftOf(draftKey(current.value)));

function change(fields) {
    draft.value = { ...draft.value, ...fields };
    setDraft(draftKey(current.value), draft.value);
}

const NO_PICTURES = { pictures: [], problems: [] };

// Reads files into the draft that is shown when it is called.
async function addAll(texts, images) {
    const key = draftKey(current.value);
    const n_there = [...path.value, draft.value].reduce((n, { pictures = [] }) => n + pictures.length, 0);
    const why = images.length > 0 ? whyNoPictures() : null;
    const { files, problems } = await readFiles(texts, draft.value.files);
    const read = why ? { ...NO_PICTURES, problems: [`${images.map(({ name }) => name).join(", ")}: ${why}`] }
                     : await readPictures(images, n_there);
    const all = [...problems, ...read.problems];
    if (all.length > 0) say(all.slice(0, 3).join(" "));
    const before = draftOf(key);
    setDraft(key, { ...before, files: [...before.files, ...files], pictures: [...before.pictures, ...read.pictures] });
    if (key === draftKey(current.value)) draft.value = draftOf(key);
    if (read.pictures.length > 0) announced.value = `Added ${read.pictures.map(({ name }) => name).join(", ")}.`;
}

async function addFiles(list) {
    const { pictures, others } = await splitPictures(list);
    await addAll(others, pictures);
}

// Files that are dropped anywhere in the window.
function useDrops() {
    const [isOver, setOver] = useState(false);
    useEffect(() => {
        const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
        const over = (event) => {
            if (!hasFiles(event)) return;
            event.preventDefault();
            setOver(true);
        };
        const leave = (event) => { if (event.relatedTarget === null) setOver(false); };
        const drop = (event) => {
            if (!hasFiles(event)) return;
            event.preventDefault();
            setOver(false);
            addFiles([...event.dataTransfer.files]);
        };
        const events = { dragover: over, dragleave: leave, drop };
        for (const [name, act] of Object.entries(events)) addEventListener(name, act);
        return () => { for (const [name, act] of Object.entries(events)) removeEventListener(name, act); };
    }, []);
    return isOver;
}

function AttachButton() {
    const input = useRef();
    return (
        <>
            <IconButton icon="attach" label="Add text files" class="attach" onClick={() => input.current.click()} />
            <input ref={input} class="hidden" type="file" multiple tabIndex={-1} aria-label="Text files to add"
                onChange={(event) => { addFiles([...event.target.files]); event.target.value = ""; }} />
        </>
    );
}

export function Composer() {
    const { text, files, pictures } = draft.value, why = whyNoPictures();
    const box = useRef(), isOver = useDrops();
    const isRunning = running.value !== null, isEmpty = !text.trim() && files.length === 0 && pictures.length === 0;
    const last = path.value.at(-1), key = draftKey(current.value);
    const waits = last?.role === "assistant" && openCalls(current.value, last).length > 0;
    const takes = why ? "Drop text files" : "Drop text files or pictures";
    useLayoutEffect(() => { draft.value = draftOf(key); }, [key]);
    useLayoutEffect(() => {
        box.current.style.height = "auto";
        box.current.style.height = `${box.current.scrollHeight}px`;
    }, [text]);
    useEffect(() => {
        if (matchMedia("(pointer: fine)").matches) box.current.focus();   // a phone would open its keyboard
    }, [current.value.id]);
    const submit = (event) => {
        event?.preventDefault();
        if (isRunning || isEmpty) return;
        if (pictures.length > 0 && why) {   // the model was changed
            say(why);
            return;
        }
        change({ text: "", files: [], pictures: [] });
        send(text, last?.id, { files, pictures });
    };
    const removePicture = (at) => {
        change({ pictures: pictures.filter((_, i) => i !== at) });
        box.current.focus();
    };
    const onKeyDown = (event) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    };
    const onPaste = (event) => {
        const pasted = [...event.clipboardData.files];
        if (pasted.length === 0 || event.clipboardData.types.includes("text/plain")) return;
        event.preventDefault();
        addFiles(pasted);
    };
    return (
        <form class="composer" onSubmit={submit}>
            <div class={`composer-box${isOver ? " over" : ""}`}>
                <FileChips files={files} remove={(at) => change({ files: files.filter((_, i) => i !== at) })} />
                <div class="composer-row">
                    <AttachButton />
                    {!why && <PictureButton add={(list) => addAll([], list)} />}
                    <textarea id="prompt" ref={box} rows={1} value={text} aria-label="Message"
                        placeholder={isOver ? takes : waits ? "The model waits for the results above" : "Write a message"}
                        onInput={(event) => change({ text: event.target.value })} onKeyDown={onKeyDown} onPaste={onPaste} />
                    {isRunning ? <IconButton icon="stop" label="Stop the answer" class="send" onClick={stop} />
                               : <IconButton icon="send" label="Send" class="send" type="submit" disabled={isEmpty} />}
                </div>
                <Thumbnails pictures={pictures} remove={removePicture} />
            </div>
            <Meters />
        </form>
    );
}
