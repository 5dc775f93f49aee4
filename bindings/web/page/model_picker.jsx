// SPDX-License-Identifier: MIT
// The choice of a model on a page that runs it itself: what there is, how large it is, and if it fits.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { changeSettings, chosenModel, refreshModels, say } from "../store.js";
import { addModel, catalogue, closeEngine, engine, loadModel, problemOf, refreshCatalogue, removeModel, sizeText } from "../api.js";
import { Icon, IconButton } from "./icon.jsx";

function Progress({ progress }) {
    return (
        <span class="loading">
            <progress value={progress.done} max="1" aria-label={progress.text} />
            <small>{progress.text}</small>
        </span>
    );
}

function Entry({ model, space, choose }) {
    const problem = problemOf(model, space), isLoaded = engine.value.id === model.id && engine.value.frit !== null;
    const isLoading = engine.value.id === model.id && engine.value.progress !== null;
    const state = isLoaded ? "loaded" : model.file ? "a file" : model.stored ? "stored" : model.partial ? "partly downloaded" : "to download";
    const remove = () => removeModel(model).then(refreshCatalogue).catch((error) => say(error.message));
    return (
        <li class={isLoaded ? "current" : ""}>
            <button type="button" class="choose" disabled={problem !== null} onClick={() => choose(model)} aria-current={isLoaded || undefined}>
                <span class="model-name">{model.id}</span>
                <span class="quiet">{model.size ? sizeText(model.size) : ""} · {state}</span>
                {model.note && <small>{model.note}</small>}
                {problem && <small class="wrong">{problem}</small>}
            </button>
            {isLoading && <IconButton icon="stop" label={`Stop loading ${model.id}`} onClick={closeEngine} />}
            {(model.stored || model.partial) && !isLoading && <IconButton icon="trash" label={`Delete the stored file of ${model.id}`} onClick={remove} />}
        </li>
    );
}

function Models({ close }) {
    const box = useRef(), input = useRef(), [space, setSpace] = useState(null), [url, setUrl] = useState("");
    useLayoutEffect(() => {
        box.current.showModal();
        refreshCatalogue().then(setSpace);
    }, []);
    const choose = (model) => {
        changeSettings({ model: model.id });
        close();
        loadModel(model.id).then(refreshModels).catch((error) => { if (error.name !== "AbortError") say(error.message); });
    };
    const open = (file) => {
        const model = { id: file.name.replace(/\.gguf$/, ""), size: file.size, stored: true, file };
        addModel(model);
        choose(model);
    };
    const fetchUrl = (event) => {
        event.preventDefault();
        const model = { id: decodeURIComponent(url.split("/").at(-1)).replace(/\.gguf$/, "") || url, url, size: 0, stored: false, file: null };
        addModel(model);
        choose(model);
    };
    return (
        <dialog ref={box} class="switcher models" aria-label="Models" onClose={close} onClick={(event) => { if (event.target === box.current) close(); }}>
            <div class="models-top">
                <h2>Models</h2>
                <IconButton icon="close" label="Close" onClick={close} />
            </div>
            <ul>
                {catalogue.value.map((model) => <Entry key={model.id} model={model} space={space} choose={choose} />)}
                {catalogue.value.length === 0 && <li class="quiet">No models are listed.</li>}
            </ul>
            <form class="models-url" onSubmit={fetchUrl}>
                <input type="url" required placeholder="https://… .gguf" aria-label="Address of a GGUF file" value={url} onInput={(event) => setUrl(event.target.value)} />
                <button type="submit">Download</button>
                <button type="button" onClick={() => input.current.click()}><Icon name="upload" />Open a file</button>
                <input ref={input} class="hidden" type="file" accept=".gguf" tabIndex={-1} aria-label="GGUF file"
                    onChange={(event) => { if (event.target.files[0]) open(event.target.files[0]); event.target.value = ""; }} />
            </form>
            <small>Models run on this device: nothing that you write leaves it.
                {space && ` Stored: ${sizeText(space.usage)} of ${sizeText(space.quota)}.`}
                {!crossOriginIsolated && " The page is not isolated, so one thread runs."}</small>
        </dialog>
    );
}

export function ModelPicker() {
    const [open, setOpen] = useState(false), chosen = chosenModel(), { progress } = engine.value;
    return (
        <span class="model">
            <button type="button" class="model-button" aria-haspopup="dialog" onClick={() => setOpen(true)}>{chosen?.id ?? "Choose a model"}</button>
            {progress && <Progress progress={progress} />}
            {open && <Models close={() => setOpen(false)} />}
        </span>
    );
}
