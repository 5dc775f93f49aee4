// SPDX-License-Identifier: MIT
// The whole UI: a list of conversations, the thread, a panel of settings.
import { effect, signal } from "@preact/signals";
import { render } from "preact";

import { startAddresses } from "./address.js";
import { startGauge } from "./gauge.js";
import { stop } from "./generate.js";
import { Composer } from "./parts/composer.jsx";
import { Header } from "./parts/header.jsx";
import { Notice } from "./parts/notice.jsx";
import { Panel } from "./parts/panel.jsx";
import { Sidebar } from "./parts/sidebar.jsx";
import { Switcher } from "./parts/switcher.jsx";
import { Thread } from "./parts/thread.jsx";
import { announced, current, load, running, startConversation } from "./store.js";

const narrow = matchMedia("(max-width: 52rem)");
const view = { sidebar: signal(!narrow.matches), panel: signal(false), switcher: signal(false) };

// On a narrow screen the list or the panel lies over the thread, which cannot be reached then.
function toggle(name) {
    const open = !view[name].value;
    if (narrow.matches) view.sidebar.value = view.panel.value = false;
    view[name].value = open;
    const target = open ? `#${name}` : `[data-opens=${name}]`;
    requestAnimationFrame(() => document.querySelector(target)?.focus());
}

function closeOverlays() {
    for (const name of ["sidebar", "panel"]) if (narrow.matches && view[name].value) toggle(name);
}

const showSwitcher = (shown) => { view.switcher.value = shown; };

// The part after # names a conversation (address.js).
function skip(event) {
    event.preventDefault();
    document.querySelector("#prompt").focus();
}

function App() {
    const covered = narrow.matches && (view.sidebar.value || view.panel.value);
    return (
        <div class={`page${view.sidebar.value ? " with-sidebar" : ""}${view.panel.value ? " with-panel" : ""}`}>
            <a class="skip" href="#prompt" onClick={skip}>Skip to the message box</a>
            {view.sidebar.value && <Sidebar close={() => toggle("sidebar")} done={closeOverlays} />}
            <main inert={covered || undefined}>
                <Header view={view} toggle={toggle} search={() => showSwitcher(true)} />
                <Thread />
                <Composer />
            </main>
            {view.panel.value && <Panel close={() => toggle("panel")} />}
            {covered && <div class="backdrop" onClick={closeOverlays} />}
            {view.switcher.value && <Switcher close={() => showSwitcher(false)} />}
            <Notice />
            <p class="hidden" role="status">{announced.value}</p>
        </div>
    );
}

function onEscape() {
    if (view.switcher.value) return;   // which closes itself
    if (narrow.matches && (view.sidebar.value || view.panel.value)) closeOverlays();
    else if (running.value) stop();
}

function onNew() {
    showSwitcher(false);
    startConversation();
    closeOverlays();
    requestAnimationFrame(() => document.querySelector("#prompt").focus());
}

addEventListener("keydown", (event) => {
    if (event.defaultPrevented) return;
    const key = event.key.toLowerCase(), control = (event.ctrlKey || event.metaKey) && !event.altKey;
    if (key === "escape") {
        onEscape();
    } else if (control && key === "k" && !event.shiftKey) {
        event.preventDefault();
        showSwitcher(!view.switcher.value);
    } else if (control && key === "o" && event.shiftKey) {
        event.preventDefault();
        onNew();
    }
});
narrow.addEventListener("change", () => {
    view.sidebar.value = !narrow.matches;
    if (narrow.matches) view.panel.value = false;
});
effect(() => { document.title = current.value.title ? `${current.value.title} – frit` : "frit"; });

render(<App />, document.querySelector("#app"));
startAddresses();
startGauge();
load();
