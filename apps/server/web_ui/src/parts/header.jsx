// SPDX-License-Identifier: MIT
// The top of the window: the model, and buttons for the list and the panel.
import { setTheme, theme, THEMES } from "../theme.js";
import { changeSettings, chosenModel, models, refreshModels } from "../store.js";
import { IconButton } from "./icon.jsx";

function ModelPicker() {
    const chosen = chosenModel();
    return (
        <span class="model">
            <select aria-label="Model" value={chosen?.id} onFocus={() => refreshModels().catch(() => {})}
                onChange={(event) => changeSettings({ model: event.target.value })}>
                {models.value.map(({ id }) => <option key={id} value={id}>{id}</option>)}
            </select>
        </span>
    );
}

export function Header({ view, toggle, search }) {
    const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
    return (
        <header class="top">
            <IconButton icon="menu" label="Conversations" data-opens="sidebar" aria-expanded={view.sidebar.value}
                onClick={() => toggle("sidebar")} />
            <ModelPicker />
            <span class="space" />
            <IconButton icon="search" label="Search (Ctrl+K)" onClick={search} />
            <IconButton icon="theme" label={`Colours: ${theme.value}; switch to ${next}`} onClick={() => setTheme(next)} />
            <IconButton icon="sliders" label="Settings" data-opens="panel" aria-expanded={view.panel.value}
                onClick={() => toggle("panel")} />
        </header>
    );
}
