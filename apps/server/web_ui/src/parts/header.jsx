// SPDX-License-Identifier: MIT
// The top of the window: the model, and buttons for the list and the panel.
import { setTheme, theme, THEMES } from "../theme.js";
import { IconButton } from "./icon.jsx";
import { ModelPicker } from "./model_picker.jsx";

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
